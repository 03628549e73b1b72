//! A value and the way to it from the root.

use std::fmt::Write as _;

use serde_json::Value;

use crate::words::{cut, shorten};

/// How much of a name is shown in a path.
const MAX_NAME: usize = 60;

/// One value within the instance. Places are linked on the stack, so that a path costs nothing
/// until somebody asks for it.
#[derive(Clone, Copy)]
pub(super) struct Place<'p, 'v> {
    pub(super) value: &'v Value,
    step: Option<(&'p Self, Step<'v>)>,
    pub(super) depth: usize,
}

#[derive(Clone, Copy)]
pub(super) enum Step<'v> {
    Member(&'v str),
    Item(usize),
}

impl<'p, 'v> Place<'p, 'v> {
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
        let mut place = self;
        while let Some((parent, step)) = &place.step {
            steps.push(*step);
            place = parent;
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

/// Appends a member's name, in brackets if it is not a plain word.
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

/// Whether `path` is `place` or within it.
pub(super) fn is_within(path: &str, place: &str) -> bool {
    path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}
