//! Where records are, and what may become of them: every change passes here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bowline::tasks::{Quota, TaskRecord};
use serde_json::Value;

/// The records of all servers of a world.
#[derive(Default)]
pub(crate) struct Disk {
    tasks: BTreeMap<String, Arc<TaskRecord>>,
    /// The keys of questions that have been answered, by task. They are never asked again.
    answered: BTreeMap<String, BTreeSet<String>>,
    /// Every task that there ever was.
    pub(crate) created: BTreeSet<String>,
}

pub(crate) fn to_value(record: &TaskRecord) -> Value {
    serde_json::from_slice(&record.encode().unwrap()).unwrap()
}

/// How far a task is: `Working`, `Waiting`, …
fn state(record: &Value) -> &str {
    match &record["state"] {
        Value::String(name) => name,
        other => other.as_object().unwrap().keys().next().unwrap(),
    }
}

fn is_final(record: &Value) -> bool {
    ["Completed", "Failed", "Cancelled"].contains(&state(record))
}

/// The keys of open questions.
fn open(record: &Value) -> BTreeSet<String> {
    let open = record["state"]["Waiting"]["open"].as_object();
    open.into_iter().flat_map(|open| open.keys().cloned()).collect()
}

impl Disk {
    pub(crate) fn load(&self, id: &str) -> Option<Arc<TaskRecord>> {
        self.tasks.get(id).cloned()
    }

    /// The value that `once` has recorded.
    pub(crate) fn memo(&self, id: &str, key: &str) -> Option<Value> {
        let record = to_value(self.tasks.get(id)?);
        record["past"]["memo"].get(key).cloned()
    }

    pub(crate) fn create(&mut self, record: Arc<TaskRecord>) {
        let id = record.id().to_owned();
        assert!(self.created.insert(id.clone()), "{id} exists");
        self.tasks.insert(id, record);
    }

    pub(crate) fn due(&self, now: u64, limit: usize) -> Vec<String> {
        let due = self.tasks.values().filter(|task| task.due() <= now);
        let mut due: Vec<_> = due.map(|task| (task.due(), task.id().to_owned())).collect();
        due.sort();
        due.into_iter().take(limit).map(|(_, id)| id).collect()
    }

    pub(crate) fn page(
        &self,
        owner: Option<&str>,
        after: Option<(u64, &str)>,
    ) -> Vec<Arc<TaskRecord>> {
        let is_next = |task: &&Arc<TaskRecord>| {
            task.owner() == owner && after.is_none_or(|it| (task.created(), task.id()) > it)
        };
        let mut page: Vec<_> = self.tasks.values().filter(is_next).cloned().collect();
        page.sort_by_key(|task| (task.created(), task.id().to_owned()));
        page
    }

    /// Whether a record fits: a new one, or one in place of another.
    pub(crate) fn has_room(&self, next: &TaskRecord, quota: Quota) -> bool {
        let sum = |is_counted: &dyn Fn(&TaskRecord) -> bool| {
            self.tasks.values().filter(|it| is_counted(it)).map(|it| it.size()).sum::<usize>()
        };
        let (all, own) = (sum(&|_| true), sum(&|it| it.owner() == next.owner()));
        match self.tasks.get(next.id()) {
            Some(found) => quota.has_room_for_change((all, own), (found.size(), next.size()), next),
            None => self.len() < quota.all && quota.has_room(all, own, next.size()),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Those that have not ended.
    pub(crate) fn unfinished(&self) -> Vec<Value> {
        self.tasks.values().map(|task| to_value(task)).filter(|task| !is_final(task)).collect()
    }

    /// Replaces a record. `holder` is the name under which the writer runs tasks, once it has one.
    pub(crate) fn swap(
        &mut self,
        id: &str,
        version: u64,
        next: Option<Arc<TaskRecord>>,
        holder: &mut Option<String>,
    ) -> bool {
        let Some(before) = self.tasks.get(id).filter(|it| it.version() == version) else {
            return false;
        };
        let before = to_value(before);
        let Some(next) = next else {
            assert!(is_final(&before), "forgotten before its end: {before}");
            self.tasks.remove(id);
            return true;
        };
        let after = to_value(&next);
        assert_eq!(next.version(), version + 1, "versions are counted");
        assert!(!is_final(&before), "changed after its end: {before} to {after}");
        check_fence(&before, &after, holder);
        check_past(&before, &after);
        self.check_keys(id, &before, &after);
        self.tasks.insert(id.to_owned(), next);
        true
    }

    fn check_keys(&mut self, id: &str, before: &Value, after: &Value) {
        let answered = self.answered.entry(id.to_owned()).or_default();
        let (was_open, is_open) = (open(before), open(after));
        answered.extend(was_open.difference(&is_open).cloned());
        let again: Vec<_> = is_open.intersection(answered).collect();
        assert!(again.is_empty(), "keys are used again: {again:?} in {after}");
    }
}

/// Only the process that runs a task writes what its run finds out.
fn check_fence(before: &Value, after: &Value, holder: &mut Option<String>) {
    let fence = |record: &Value| record["lease"]["fence"].as_u64().unwrap();
    let of = |record: &Value| record["lease"]["holder"].as_str().unwrap().to_owned();
    if fence(after) != fence(before) {
        assert_eq!(fence(after), fence(before) + 1, "fences are counted: {before} to {after}");
        assert_eq!(state(after), "Working", "a new fence is a new run");
        assert_eq!(*holder.get_or_insert_with(|| of(after)), of(after), "a run for another");
        return;
    }
    assert_eq!(of(before), of(after), "a lease changes hands with its fence");
    // Anybody may end a task.
    let is_result = state(before) == "Working" && !["Failed", "Cancelled"].contains(&state(after));
    if is_result {
        assert_eq!(
            holder.as_deref(),
            Some(&*of(before)),
            "a stale run writes: {before} to {after}"
        );
    }
}

/// What was recorded stays until the end, and a result is made of it.
fn check_past(before: &Value, after: &Value) {
    if !is_final(after) {
        for part in ["memo", "answers"] {
            for (key, value) in before["past"][part].as_object().unwrap() {
                assert_eq!(after["past"][part].get(key), Some(value), "{key} of {part} is lost");
            }
        }
        return;
    }
    let text = after["state"]["Completed"]["result"]["content"][0]["text"].as_str();
    let values: Value = text.and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default();
    for (key, value) in values.as_object().into_iter().flatten() {
        if let Some(recorded) = before["past"]["memo"].get(key) {
            assert_eq!(value, recorded, "the result has another value than was recorded");
        }
    }
}
