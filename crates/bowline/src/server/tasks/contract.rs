//! What every store must keep, as a test that any store can run.

use std::sync::Arc;

use bowline_proto::json::Json;
use bowline_proto::revision::Revision;
use tokio::task::JoinSet;

use super::record::{Lease, State, TaskClient, TaskRecord};
use super::store::{Quota, StoreError, TaskStore};

/// Checks that a store keeps the promises of [`TaskStore`]. `make` returns an empty store.
///
/// Whether writes survive the process is not checked here: that depends on how the store is opened
/// again.
///
/// ```
/// use bowline::tasks::TaskStore;
///
/// // Call it in a test with `#[tokio::test(flavor = "multi_thread")]`: `async || MyStore::new()`.
/// async fn keeps_the_contract<MyStore: TaskStore>(empty: impl AsyncFn() -> MyStore) {
///     bowline::testing::task_store_contract(empty).await;
/// }
/// ```
///
/// # Panics
/// When the store breaks a promise. The message says which.
pub async fn task_store_contract<S: TaskStore>(make: impl AsyncFn() -> S) {
    keeps_whole_records(&make().await).await;
    replaces_by_version(&make().await).await;
    removes(&make().await).await;
    limits_numbers(&make().await).await;
    pages_in_order(&make().await).await;
    finds_what_is_due(&make().await).await;
    one_of_many_swaps_succeeds(Arc::new(make().await)).await;
    quotas_hold_under_load(Arc::new(make().await)).await;
}

/// Checks that a store also bounds the bytes of tasks, as [`TaskStore::swap_within`] says. `make`
/// returns an empty store.
///
/// # Panics
/// When the store breaks a promise. The message says which.
pub async fn task_store_bytes_contract<S: TaskStore>(make: impl AsyncFn() -> S) {
    limits_bytes(&make().await).await;
}

/// More than any of these tests needs.
const ROOM: Quota = Quota::of(1_000, 1_000);

/// A task that is due at some time.
fn record(id: &str, owner: Option<&str>, created: u64, due: u64) -> TaskRecord {
    TaskRecord {
        id: id.to_owned(),
        version: 0,
        owner: owner.map(str::to_owned),
        party: None,
        revision: Revision::LATEST,
        tool: "build".to_owned(),
        arguments: Json::from_text(r#"{"release":true}"#.to_owned()).ok(),
        client: TaskClient::default(),
        state: State::Working,
        message: Some("compiling “α”\n".to_owned()),
        created,
        updated: created,
        ttl: u64::MAX,
        past: Default::default(),
        lease: Lease { holder: "contract".to_owned(), fence: 1, until: due },
        is_queued: false,
    }
}

/// The next version of a task, due at another time.
fn next(record: &TaskRecord, due: u64) -> Arc<TaskRecord> {
    let mut next = record.clone();
    next.version += 1;
    next.lease.until = due;
    Arc::new(next)
}

fn text(record: &TaskRecord) -> String {
    let bytes = record.encode().expect("a record can be written");
    String::from_utf8(bytes).expect("JSON is text")
}

/// A store, whose failures end the test.
struct Tested<'a, S>(&'a S);

impl<S: TaskStore> Tested<'_, S> {
    async fn create(&self, record: &TaskRecord) {
        let created = self.0.create(Arc::new(record.clone()), ROOM).await;
        created.unwrap_or_else(|error| panic!("create({}): {error:?}", record.id));
    }

    async fn load(&self, id: &str) -> Option<String> {
        let found = self.0.load(id).await.unwrap_or_else(|error| panic!("load({id}): {error:?}"));
        found.map(|found| text(&found))
    }

    async fn swap(&self, id: &str, version: u64, next: Option<Arc<TaskRecord>>) -> bool {
        let swapped = self.0.swap(id, version, next).await;
        swapped.unwrap_or_else(|error| panic!("swap({id}): {error:?}"))
    }

    async fn page(
        &self,
        owner: Option<&str>,
        after: Option<(u64, &str)>,
        limit: usize,
    ) -> Vec<String> {
        let found = self.0.page(owner, after, limit).await;
        let found = found.unwrap_or_else(|error| panic!("page({owner:?}): {error:?}"));
        found.iter().map(|found| found.id.clone()).collect()
    }

    async fn due(&self, now: u64, limit: usize) -> Vec<String> {
        let found = self.0.due(now, limit).await;
        found.unwrap_or_else(|error| panic!("due({now}): {error:?}"))
    }
}

async fn keeps_whole_records(store: &impl TaskStore) {
    let store = Tested(store);
    assert_eq!(store.load("unknown").await, None, "an unknown id is not an error");
    let mut long = record("long", Some("ada"), u64::MAX, u64::MAX);
    let result = format!("{{\"text\":\"{}\"}}", "long ".repeat(200_000));
    let result = Json::from_text(result).expect("valid JSON");
    long.state = State::Completed { result, is_error: false };
    let records = [
        record("a", None, 0, 0),
        record("b/ä\u{0}c", Some(""), 1, u64::MAX),
        record(&"d".repeat(200), Some(&"owner".repeat(50)), 2, 3),
        long,
    ];
    for record in &records {
        store.create(record).await;
    }
    for record in &records {
        let found = store.load(&record.id).await;
        assert_eq!(found.as_ref(), Some(&text(record)), "a record comes back as it was");
    }
    let again = next(&records[0], 9);
    let created = store.0.create(again, ROOM).await;
    assert!(matches!(created, Err(StoreError::Failed(_))), "an id exists once: {created:?}");
    let found = store.load("a").await;
    assert_eq!(found, Some(text(&records[0])), "`create` does not replace a task");
}

async fn replaces_by_version(store: &impl TaskStore) {
    let store = Tested(store);
    let first = record("a", Some("ada"), 1, 1);
    let second = next(&first, 2);
    let third = next(&second, 3);
    assert!(!store.swap("a", 0, Some(Arc::clone(&second))).await, "an unknown task has no version");
    assert_eq!(store.load("a").await, None, "`swap` does not create a task");
    store.create(&first).await;
    for wrong in [1, 2, u64::MAX] {
        let swapped = store.swap("a", wrong, Some(Arc::clone(&third))).await;
        assert!(!swapped, "version {wrong} is not that of the task");
        assert_eq!(store.load("a").await, Some(text(&first)), "nothing has changed");
    }
    assert!(store.swap("a", 0, Some(Arc::clone(&second))).await, "the version was right");
    assert_eq!(store.load("a").await, Some(text(&second)), "the task was replaced");
    assert!(!store.swap("a", 0, Some(Arc::clone(&third))).await, "a version is used once");
    assert!(store.swap("a", 1, Some(Arc::clone(&third))).await, "the version was right");
    assert_eq!(store.load("a").await, Some(text(&third)), "the task was replaced again");
    assert_eq!(store.page(Some("ada"), None, 9).await, ["a"], "it is on its page once");
    assert_eq!(store.due(u64::MAX, 9).await, ["a"], "it is due once");
}

async fn removes(store: &impl TaskStore) {
    let store = Tested(store);
    let task = record("a", Some("ada"), 1, 1);
    store.create(&task).await;
    store.create(&record("b", Some("ada"), 2, 2)).await;
    assert!(!store.swap("a", 7, None).await, "a task of another version is not removed");
    assert!(store.load("a").await.is_some(), "a task of another version is not removed");
    assert!(store.swap("a", 0, None).await, "the version was right");
    assert_eq!(store.load("a").await, None, "a removed task is gone");
    assert_eq!(store.page(Some("ada"), None, 9).await, ["b"], "a removed task is on no page");
    assert_eq!(store.due(u64::MAX, 9).await, ["b"], "a removed task is never due");
    assert!(!store.swap("a", 0, None).await, "a removed task has no version");
    assert!(!store.swap("a", 0, Some(next(&task, 1))).await, "a removed task does not come back");
    assert_eq!(store.load("a").await, None, "a removed task does not come back");
    let after = store.page(Some("ada"), Some((1, "a")), 9).await;
    assert_eq!(after, ["b"], "a page may begin after a task that was removed");
}

async fn limits_numbers(store: &impl TaskStore) {
    let create = async |id: &str, owner: Option<&str>, quota: Quota| {
        let created = store.create(Arc::new(record(id, owner, 1, 1)), quota).await;
        match created {
            Ok(()) => true,
            Err(StoreError::Full) => {
                assert_eq!(Tested(store).load(id).await, None, "nothing is kept beyond a quota");
                false
            }
            Err(error) => panic!("create({id}): {error:?}"),
        }
    };
    let quota = Quota::of(5, 2);
    assert!(!create("none", None, Quota::of(0, 1)).await, "a quota may be 0");
    assert!(!create("none", None, Quota::of(1, 0)).await, "a quota may be 0");
    assert!(create("a1", Some("ada"), quota).await, "there is room");
    assert!(create("a2", Some("ada"), quota).await, "there is room");
    assert!(!create("a3", Some("ada"), quota).await, "an owner has two");
    assert!(create("n1", None, quota).await, "others have room");
    assert!(create("n2", None, quota).await, "others have room");
    assert!(!create("n3", None, quota).await, "tasks without an owner count together");
    assert!(create("e1", Some(""), quota).await, "an empty name is an owner of its own");
    assert!(!create("e2", Some(""), quota).await, "there are five in all");
    let store = Tested(store);
    assert_eq!(store.due(u64::MAX, 9).await.len(), 5, "what was not kept is never due");
    assert_eq!(store.page(Some("ada"), None, 9).await, ["a1", "a2"], "it is on no page either");
    let changed = next(&record("a1", Some("ada"), 1, 1), 2);
    assert!(store.swap("a1", 0, Some(changed)).await, "the version was right");
    assert!(!create("a3", Some("ada"), quota).await, "a change does not make room");
    assert!(store.swap("a1", 1, None).await, "the version was right");
    assert!(create("a3", Some("ada"), quota).await, "a removal makes room");
}

/// A task with a message of this length.
fn long(id: &str, owner: &str, version: u64, length: usize) -> Arc<TaskRecord> {
    let mut long = record(id, Some(owner), 1, 1);
    (long.message, long.version) = (Some("x".repeat(length)), version);
    Arc::new(long)
}

async fn limits_bytes(store: &impl TaskStore) {
    const LONG: usize = 100_000;
    let quota = Quota { bytes: 450_000, bytes_each: 250_000, ..ROOM };
    let create = async |id: &str, owner: &str| {
        let created = store.create(long(id, owner, 0, LONG), quota).await;
        assert!(matches!(created, Ok(()) | Err(StoreError::Full)), "create({id}): {created:?}");
        created.is_ok()
    };
    assert!(create("a1", "ada").await && create("a2", "ada").await, "there is room");
    assert!(!create("a3", "ada").await, "an owner has a share of the bytes");
    assert!(create("e1", "eve").await && create("e2", "eve").await, "others have theirs");
    assert!(!create("b1", "bob").await, "and there is an end for all");
    let swap = async |next: Arc<TaskRecord>, quota: Quota| {
        let (id, before) = (next.id.clone(), next.version - 1);
        let swapped = store.swap_within(&id, before, Some(next), quota).await;
        assert!(matches!(swapped, Ok(true) | Err(StoreError::Full)), "swap({id}): {swapped:?}");
        swapped.is_ok()
    };
    assert!(!swap(long("a1", "ada", 1, 2 * LONG), quota).await, "growing counts, too");
    let found = store.load("a1").await.expect("a store that works").expect("the task");
    assert_eq!(found.version, 0, "what finds no room changes nothing");
    let nothing = Quota { bytes: 0, bytes_each: 0, ..ROOM };
    assert!(swap(long("a1", "ada", 1, LONG), nothing).await, "what does not grow fits");
    assert!(swap(long("a1", "ada", 2, 10), nothing).await, "nor does what shrinks need room");
    assert!(swap(long("a1", "ada", 3, LONG), quota).await, "and then there is room again");
    let mut ended = long("a1", "ada", 4, LONG + 500).as_ref().clone();
    ended.state = State::Cancelled;
    assert!(swap(Arc::new(ended), nothing).await, "a task can always end");
    let removed = store.swap_within("e1", 0, None, nothing).await;
    assert!(removed.is_ok_and(|it| it), "a removal needs no room");
    assert!(create("b1", "bob").await, "a removal makes room");
}

async fn pages_in_order(store: &impl TaskStore) {
    let store = Tested(store);
    let ada = [("b", 1), ("c", 1), ("a", 2), ("a10", 3), ("a2", 3), ("z", u64::MAX)];
    // In another order than that of the pages, and among others.
    for at in [3, 0, 5, 2, 4, 1] {
        let (id, created) = ada[at];
        store.create(&record(id, Some("ada"), created, 1)).await;
        store.create(&record(&format!("{id}-of-adam"), Some("adam"), created, 1)).await;
        store.create(&record(&format!("{id}-of-none"), None, created, 1)).await;
    }
    let all = ada.map(|(id, _)| id);
    assert_eq!(store.page(Some("ada"), None, 100).await, all, "by creation, then by id");
    assert_eq!(store.page(Some("ad"), None, 100).await, [""; 0], "an unknown owner has none");
    assert_eq!(store.page(Some(""), None, 100).await, [""; 0], "no owner is not an empty name");
    let none = store.page(None, None, 100).await;
    assert_eq!(none, all.map(|id| format!("{id}-of-none")), "tasks without an owner are a page");
    for (at, (id, created)) in ada.into_iter().enumerate() {
        let rest = store.page(Some("ada"), Some((created, id)), 100).await;
        assert_eq!(rest, all[at + 1..], "what comes after {id:?}");
        assert_eq!(store.page(Some("ada"), None, at).await, all[..at], "the first {at}");
    }
    let between = store.page(Some("ada"), Some((2, "zz")), 2).await;
    assert_eq!(between, ["a10", "a2"], "a page may begin after what does not exist");
    let older = record("b", Some("ada"), 1, 1);
    assert!(store.swap("b", 0, Some(next(&older, 9))).await, "the version was right");
    let found = store.0.page(Some("ada"), None, 1).await.expect("a page");
    assert_eq!(found[0].version, 1, "a page has tasks as they are now");
}

async fn finds_what_is_due(store: &impl TaskStore) {
    let store = Tested(store);
    for (id, due) in [("d", 40), ("a", 10), ("never", u64::MAX), ("c", 30), ("b", 20)] {
        store.create(&record(id, None, 1, due)).await;
    }
    assert_eq!(store.due(9, 9).await, [""; 0], "nothing is due yet");
    assert_eq!(store.due(10, 9).await, ["a"], "due by now, not only before");
    assert_eq!(store.due(39, 9).await, ["a", "b", "c"], "the earliest first");
    assert_eq!(store.due(39, 2).await, ["a", "b"], "as many as are wanted, the earliest");
    assert_eq!(store.due(39, 0).await, [""; 0], "as many as are wanted");
    let all = store.due(u64::MAX, usize::MAX).await;
    assert_eq!(all, ["a", "b", "c", "d", "never"], "everything is due at the end of time");
    let moved = next(&record("a", None, 1, 10), 35);
    assert!(store.swap("a", 0, Some(moved)).await, "the version was right");
    assert_eq!(store.due(39, 9).await, ["b", "c", "a"], "a change may change when it is due");
}

async fn one_of_many_swaps_succeeds<S: TaskStore>(store: Arc<S>) {
    Tested(&*store).create(&record("a", None, 1, 1)).await;
    for version in 0..8 {
        let mut swaps = JoinSet::new();
        for number in 0..16 {
            let store = Arc::clone(&store);
            swaps.spawn(async move {
                let mut next = record("a", None, 1, 1);
                next.version = version + 1;
                next.message = Some(number.to_string());
                Tested(&*store).swap("a", version, Some(Arc::new(next))).await.then_some(number)
            });
        }
        let done = swaps.join_all().await;
        let won: Vec<_> = done.into_iter().flatten().collect();
        assert_eq!(won.len(), 1, "of several swaps with the same version, one succeeds");
        let found = store.load("a").await.expect("a store that works").expect("the task");
        let message = Some(won[0].to_string());
        assert_eq!((found.version, &found.message), (version + 1, &message), "it is the one");
    }
}

async fn quotas_hold_under_load<S: TaskStore>(store: Arc<S>) {
    let mut creates = JoinSet::new();
    for number in 0..32 {
        let store = Arc::clone(&store);
        creates.spawn(async move {
            let record = Arc::new(record(&format!("{number}"), None, 1, 1));
            store.create(record, Quota::of(20, 10)).await.is_ok()
        });
    }
    let created = creates.join_all().await.into_iter().filter(|is_created| *is_created).count();
    assert_eq!(created, 10, "a quota holds for tasks that are created at the same time");
    assert_eq!(Tested(&*store).due(u64::MAX, 99).await.len(), 10, "and that many are kept");
}

#[cfg(test)]
mod tests {
    use super::super::store::InMemory;
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn the_store_in_memory_keeps_the_contract() {
        task_store_contract(async || InMemory::default()).await;
        task_store_bytes_contract(async || InMemory::default()).await;
    }
}
