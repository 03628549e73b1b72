//! A value and the path to it from the root.

use std::fmt::Write as _;

use serde_json::Value;

use crate::words::{cut, shorten};

/// How much of a name is shown in a path.
const MAX_NAME: usize = 60;

/// One value within the instance. Locations are linked on the stack, so a path costs nothing until
/// a message needs it.
#[derive(Clone, Copy)]
pub(super) struct Location<'p, 'v> {
    pub(super) value: &'v Value,
    step: Option<(&'p Self, Step<'v>)>,
    pub(super) depth: usize,
}

#[derive(Clone, Copy)]
pub(super) enum Step<'v> {
    Member(&'v str),
    Item(usize),
}

impl<'p, 'v> Location<'p, 'v> {
    pub(super) fn root(value: &'v Value) -> Self {
        Self { value, step: None, depth: 0 }
    }

    pub(super) fn member(&'p self, name: &'v str, value: &'v Value) -> Self {
        Self { value, step: Some((self, Step::Member(name))), depth: self.depth + 1 }
    }

    pub(super) fn item(&'p self, index: usize, value: &'v Value) -> Self {
        Self { value, step: Some((self, Step::Item(index))), depth: self.depth + 1 }
    }

    /// `arguments.items[2].size`.
    pub(super) fn path(&self, root: &str) -> String {
        let mut steps = Vec::with_capacity(self.depth);
        let mut location = self;
        while let Some((parent, step)) = &location.step {
            steps.push(*step);
            location = parent;
        }
        let mut path = root.to_owned();
        for step in steps.iter().rev() {
            match step {
                Step::Member(name) => push_name(&mut path, name),
                Step::Item(index) => {
                    let _ = write!(path, "[{index}]");
                }
            }
        }
        path
    }
}

/// Appends the name of a member, in brackets unless it is a plain word.
pub(super) fn push_name(path: &mut String, name: &str) {
    let is_plain = !name.is_empty()
        && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '$'));
    if is_plain {
        path.push('.');
        path.push_str(&cut(name, MAX_NAME));
    } else {
        let _ = write!(path, "[{}]", shorten(name));
    }
}

/// Whether `path` is `location` or within it.
pub(super) fn is_within(path: &str, location: &str) -> bool {
    path.strip_prefix(location).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}
