//! Findings on their way to becoming messages.

use std::collections::HashSet;

use super::location::{Location, push_name};
use crate::violation::{Violation, Violations};
use crate::words::{either, kind, show};

/// The findings of one run, or of one alternative in it.
#[derive(Debug, Default)]
pub(super) struct Report {
    findings: Vec<Finding>,
    more: usize,
}

/// One rule that the value at one location breaks.
#[derive(Debug)]
pub(super) struct Finding {
    path: String,
    depth: usize,
    /// The value and its type, in words; `None` if the message does not start with them.
    value: Option<(String, &'static str)>,
    message: String,
    /// What the schema allows, where that is a list.
    allowed: Vec<String>,
    /// How strongly this suggests that the value was meant for another schema.
    weight: usize,
}

/// The value has the wrong type.
const OTHER_TYPE: usize = 100;

/// The value is not among those that the schema lists, such as the tag of an alternative.
const OTHER_CHOICE: usize = 10;

impl Finding {
    /// A finding about the value at a location. The message starts with the value: `is 3`.
    pub(super) fn about(location: &Location<'_, '_>, root: &str) -> Self {
        let value = Some((show(location.value), kind(location.value)));
        Self { value, ..Self::at(location, root) }
    }

    /// A finding at a location, with a message that does not repeat the value.
    pub(super) fn at(location: &Location<'_, '_>, root: &str) -> Self {
        Self {
            path: location.path(root),
            depth: location.depth,
            value: None,
            message: String::new(),
            allowed: Vec::new(),
            weight: 1,
        }
    }

    /// A finding about a member that is missing or must not be there.
    pub(super) fn at_member(location: &Location<'_, '_>, root: &str, name: &str) -> Self {
        let mut finding = Self::at(location, root);
        push_name(&mut finding.path, name);
        finding.depth += 1;
        finding.weight = 2;
        finding
    }

    pub(super) fn saying(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    pub(super) fn allowing(mut self, allowed: impl Iterator<Item = impl Into<String>>) -> Self {
        self.allowed = allowed.map(Into::into).collect();
        self
    }

    pub(super) fn of_type(mut self) -> Self {
        self.weight = OTHER_TYPE;
        self
    }

    pub(super) fn of_choice(mut self) -> Self {
        self.weight = OTHER_CHOICE;
        self
    }

    fn into_violation(self, is_secret: bool) -> Violation {
        let mut message = String::new();
        if let Some((value, kind)) = &self.value {
            message.push_str("is ");
            message.push_str(if is_secret { kind } else { value });
        }
        match self.allowed.as_slice() {
            [] => {}
            [only] => message.push_str(&format!("; expected {only}")),
            many => message.push_str(&format!("; expected {}", either(many.iter()))),
        }
        message.push_str(&self.message);
        Violation { path: self.path, message }
    }
}

impl Report {
    pub(super) fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.findings.len() >= Violations::MAX
    }

    pub(super) fn add(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Counts a finding that does not fit.
    pub(super) fn count(&mut self) {
        self.more += 1;
    }

    pub(super) fn into_violations(self, is_secret: impl Fn(&str) -> bool) -> Violations {
        let tell = |finding: Finding| {
            let is_secret = is_secret(&finding.path);
            finding.into_violation(is_secret)
        };
        Violations { list: self.findings.into_iter().map(tell).collect(), more: self.more }
    }

    /// Adds the most useful findings of alternatives that all failed.
    ///
    /// If each alternative only expects another type or choice of this value, they become one
    /// longer list. Otherwise the alternative that the value was most likely meant for is
    /// described.
    pub(super) fn add_closest(&mut self, alternatives: Vec<Self>, depth: usize) {
        let number = alternatives.len();
        let fits = |report: &Self| report.findings.iter().all(|finding| !finding.is_type_at(depth));
        let fitting = alternatives.iter().filter(|report| fits(report)).count();
        if alternatives.iter().all(|report| report.only_choice_at(depth).is_some()) {
            self.add_choices(alternatives);
            return;
        }
        let Some(mut best) = alternatives.into_iter().min_by_key(Self::weight) else { return };
        if let Some(first) = best.findings.first_mut()
            && fitting != 1
        {
            first.message.push_str(&format!(" (the closest of {number} alternatives)"));
        }
        self.more += best.more;
        for finding in best.findings {
            if self.is_full() {
                self.count();
            } else {
                self.add(finding);
            }
        }
    }

    fn add_choices(&mut self, alternatives: Vec<Self>) {
        let mut findings = alternatives.into_iter().filter_map(|mut report| report.findings.pop());
        let Some(mut first) = findings.next() else { return };
        let mut told: HashSet<String> = first.allowed.iter().cloned().collect();
        for choice in findings.flat_map(|other| other.allowed) {
            if told.insert(choice.clone()) {
                first.allowed.push(choice);
            }
        }
        first.message = String::new();
        self.add(first);
    }

    fn only_choice_at(&self, depth: usize) -> Option<&Finding> {
        match self.findings.as_slice() {
            [only] if only.depth == depth && !only.allowed.is_empty() => Some(only),
            _ => None,
        }
    }

    fn weight(&self) -> usize {
        self.findings.iter().map(|finding| finding.weight).sum::<usize>() + self.more
    }
}

impl Finding {
    fn is_type_at(&self, depth: usize) -> bool {
        self.depth == depth && self.weight == OTHER_TYPE
    }
}
