//! What a node has changed and not announced yet.

use std::collections::HashSet;

use bowline::fleet::Change;

/// How many changes wait at most. Those of tasks are dropped beyond it, because whoever waits for
/// one looks; instead of others, it is announced that anything has changed.
const PENDING: usize = 10_000;
/// The topic that says that anything may have changed. Releases that do not know it ignore it.
pub(crate) const EVERYTHING: &str = "everything";

/// Changes that are not announced yet.
#[derive(Default)]
pub(crate) struct Pending {
    pub(crate) tasks: HashSet<String>,
    /// All other changes, as they are written.
    pub(crate) topics: HashSet<String>,
    /// There were too many.
    is_everything: bool,
    /// When the first of them happened, by the database.
    pub(crate) since: Option<u64>,
}

impl Pending {
    pub(crate) fn add(&mut self, change: &Change, now: u64) {
        self.since.get_or_insert(now);
        match change.task() {
            Some(id) if self.tasks.len() < PENDING => drop(self.tasks.insert(id.to_owned())),
            Some(_) => {}
            None => self.add_topic(change.to_string()),
        }
    }

    fn add_topic(&mut self, topic: String) {
        if topic.contains('\0') {
            tracing::warn!(
                topic,
                "Postgres cannot keep NUL, so other nodes do not hear of a change"
            );
        } else if self.topics.len() < PENDING && !self.is_everything {
            self.topics.insert(topic);
        } else {
            self.is_everything = true;
            self.topics = HashSet::from([EVERYTHING.to_owned()]);
        }
    }

    /// Takes back what could not be announced.
    pub(crate) fn restore(&mut self, topics: impl IntoIterator<Item = String>, since: u64) {
        self.since = Some(since);
        topics.into_iter().for_each(|topic| self.add_topic(topic));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_changes_are_announced_as_everything() {
        let resource = |number| Change::parse(&format!("resource test://{number}")).unwrap();
        let mut pending = Pending::default();
        (0..PENDING).for_each(|number| pending.add(&resource(number), 1));
        assert_eq!(pending.topics.len(), PENDING);
        pending.add(&Change::of_task("task"), 1);
        (0..9).for_each(|number| pending.add(&resource(PENDING + number), 1));
        assert_eq!(pending.topics, HashSet::from([EVERYTHING.to_owned()]));
        assert_eq!(pending.tasks.len(), 1);
        // What could not be announced counts with what came since.
        let mut later = Pending::default();
        later.add(&resource(0), 2);
        later.restore(pending.topics, 1);
        assert!(later.topics.contains(EVERYTHING));
    }
}
