//! Which members and items of one value a rule has evaluated: `unevaluated…` skips those.

use std::collections::HashSet;

/// Marks for one value. Allocates nothing until the first mark.
#[derive(Debug, Default)]
pub(super) struct Marks<'v> {
    names: HashSet<&'v str>,
    /// All items before this one.
    items_before: usize,
    items: HashSet<usize>,
}

impl<'v> Marks<'v> {
    pub(super) fn mark_name(&mut self, name: &'v str) {
        self.names.insert(name);
    }

    pub(super) fn mark_items_before(&mut self, index: usize) {
        self.items_before = self.items_before.max(index);
    }

    pub(super) fn mark_item(&mut self, index: usize) {
        self.items.insert(index);
    }

    pub(super) fn has_name(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    pub(super) fn has_item(&self, index: usize) -> bool {
        index < self.items_before || self.items.contains(&index)
    }

    /// How many marks there are to copy.
    pub(super) fn len(&self) -> usize {
        self.names.len() + self.items.len()
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.names.extend(other.names);
        self.items_before = self.items_before.max(other.items_before);
        self.items.extend(other.items);
    }
}
