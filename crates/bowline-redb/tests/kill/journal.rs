//! What handlers have done, in a file that survives them: a line for each effect, with its task.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(Clone)]
pub(crate) struct Journal(PathBuf);

/// What the journal says about one task.
#[derive(Debug, Default)]
pub(crate) struct Story {
    /// The values that `once` has returned, by key.
    pub(crate) kept: BTreeMap<String, String>,
}

impl Journal {
    pub(crate) fn new(folder: &Path) -> Self {
        Self(folder.join("journal"))
    }

    pub(crate) fn append(&self, line: &str) {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.0).unwrap();
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// How often a line with this beginning was written.
    pub(crate) fn count(&self, beginning: &str) -> usize {
        self.read().lines().filter(|line| line.starts_with(beginning)).count()
    }

    /// The task that was begun last.
    pub(crate) fn last_task(&self) -> Option<String> {
        let text = self.read();
        text.lines().filter_map(|line| line.strip_prefix("begin ")).next_back().map(str::to_owned)
    }

    /// What happened in a task. Panics if a recorded value was made again, or has changed.
    pub(crate) fn story(&self, task: &str) -> Story {
        let text = self.read();
        let mut story = Story::default();
        for line in text.lines() {
            let words: Vec<_> = line.split(' ').collect();
            match words[..] {
                ["effect", of, key] if of == task => {
                    assert!(!story.kept.contains_key(key), "{key} is done again:\n{text}");
                }
                ["kept", of, key, value] if of == task => {
                    let before = story.kept.insert(key.to_owned(), value.to_owned());
                    assert!(before.is_none_or(|before| before == value), "{key} changes:\n{text}");
                }
                _ => {}
            }
        }
        story
    }

    fn read(&self) -> String {
        fs::read_to_string(&self.0).unwrap_or_default()
    }
}
