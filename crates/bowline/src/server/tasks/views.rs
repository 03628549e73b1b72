//! The tasks of legacy sessions, as their status notifications show them: a few words each, and no
//! results.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use bowline_proto::model;

use super::super::call::Progress;
use super::record::{KEPT, TaskRecord};
use super::shared::lock;
use crate::outbox::Outbox;

/// The tasks of legacy sessions.
#[derive(Default)]
pub(super) struct Views(Mutex<HashMap<String, View>>);

struct View {
    task: model::Task,
    is_final: bool,
    /// Until when the task is kept, at least.
    until: u64,
    /// Where the progress of later runs goes.
    reporting: Option<Reporting>,
}

/// Where the progress of a call goes, as long as its client is there.
pub(super) type Reporting = (Weak<Outbox>, Arc<Progress>);

impl View {
    fn update(&mut self, record: &TaskRecord, now: u64) {
        self.task = record.to_legacy(now);
        self.is_final = record.state.is_final();
        self.until = record.expires().saturating_add(KEPT);
    }
}

impl Views {
    /// Begins to show the task that a call of a legacy session has become.
    pub(super) fn add(&self, record: &TaskRecord, now: u64, reporting: Option<Reporting>) {
        let mut view = View { task: model::Task::default(), is_final: false, until: 0, reporting };
        view.update(record, now);
        lock(&self.0).insert(record.id.clone(), view);
    }

    /// Takes in how a task is now.
    pub(super) fn update(&self, record: &TaskRecord, now: u64) {
        if let Some(view) = lock(&self.0).get_mut(&record.id) {
            view.update(record, now);
        }
    }

    /// What a notification shows, and whether it is the last one about this task.
    pub(super) fn show(&self, id: &str) -> Option<(model::Task, bool)> {
        let mut views = lock(&self.0);
        let view = views.get(id)?;
        if !view.is_final {
            return Some((view.task.clone(), false));
        }
        views.remove(id).map(|view| (view.task, true))
    }

    /// Where the progress of another run goes. 2025-11-25, basic/utilities/tasks: the token of the
    /// request is valid until the task has ended.
    pub(super) fn reporting(&self, id: &str) -> Option<(Arc<Outbox>, Arc<Progress>)> {
        let views = lock(&self.0);
        let (outbox, progress) = views.get(id)?.reporting.as_ref()?;
        Some((outbox.upgrade()?, Arc::clone(progress)))
    }

    pub(super) fn forget(&self, id: &str) {
        lock(&self.0).remove(id);
    }

    /// Forgets what is so old that its task is gone, whoever has removed that.
    pub(super) fn prune(&self, now: u64) {
        let mut views = lock(&self.0);
        views.retain(|_, view| view.until > now);
        if views.capacity() > 64 && views.len() * 4 < views.capacity() {
            views.shrink_to_fit();
        }
    }

    pub(super) fn contains(&self, id: &str) -> bool {
        lock(&self.0).contains_key(id)
    }

    pub(super) fn ids(&self) -> Vec<String> {
        lock(&self.0).keys().cloned().collect()
    }
}

#[cfg(feature = "http")]
#[cfg(test)]
mod tests {
    use bowline_proto::json::Json;

    use super::super::record::State;
    use super::*;

    #[test]
    fn views_end_with_their_tasks() {
        let views = Views::default();
        let record = |id: &str| TaskRecord::kept("t", id, None, 1_000, Json::empty_object());
        let mut ending = record("ending");
        views.add(&ending, 0, None);
        views.add(&record("gone"), 0, None);
        assert!(views.show("ending").is_some_and(|(_, is_last)| !is_last));
        ending.finish(10, State::Cancelled);
        views.update(&ending, 10);
        assert!(views.show("ending").is_some_and(|(_, is_last)| is_last));
        assert!(views.show("ending").is_none(), "the end is shown once, and then forgotten");
        // Another process has removed the other one.
        views.prune(999 + KEPT);
        assert!(views.contains("gone"));
        views.prune(1_000 + KEPT);
        assert!(!views.contains("gone") && views.ids().is_empty());
    }
}
