//! Rules for objects.

use serde_json::{Map, Value};

use super::location::Location;
use super::marks::Marks;
use super::report::Finding;
use super::{Evaluation, STEPS_TO_FIND_CLOSEST, Stop};
use crate::node::{Dependency, Node, NodeId, Properties, Rule};
use crate::words::{closest, cut, list, show_choice};

/// How much of a name is shown in a list of names.
const MAX_NAME: usize = 40;

impl<'s> Evaluation<'s> {
    pub(super) fn required(
        &mut self,
        names: &'s [(Box<str>, Option<NodeId>)],
        map: &Map<String, Value>,
        location: &Location<'_, '_>,
    ) -> Result<bool, Stop> {
        self.spend_on_lookups(names.len(), map)?;
        let mut passes = true;
        for (name, node) in names.iter().filter(|(name, _)| !map.contains_key(name.as_ref())) {
            passes = false;
            let schema = self.schema;
            self.find(|root| {
                let hint = node.map(|node| hint(&schema.nodes, node)).unwrap_or_default();
                Finding::at_member(location, root, name).saying(format!("is missing{hint}"))
            });
            if self.report.is_none() {
                break;
            }
        }
        Ok(passes)
    }

    /// Spends the steps for looking up names in an object; a big one costs more.
    fn spend_on_lookups(&mut self, names: usize, map: &Map<String, Value>) -> Result<(), Stop> {
        let quarters = if map.len() <= 32 { 1 } else { 8 };
        self.spend(names as u64 * quarters / 4)
    }

    pub(super) fn properties<'v>(
        &mut self,
        rule: &'s Properties,
        map: &'v Map<String, Value>,
        location: &Location<'_, 'v>,
        mut marks: Option<&mut Marks<'v>>,
    ) -> Result<bool, Stop> {
        let mut passes = true;
        for (name, value) in map {
            self.spend(1)?;
            let inner = location.member(name, value);
            let mut is_known = false;
            if let Some(node) = rule.find(name) {
                is_known = true;
                passes &= self.apply(node, &inner, None)?;
            }
            for (pattern, node) in &rule.patterns {
                self.spend(pattern.steps(name))?;
                if pattern.is_match(name) {
                    is_known = true;
                    passes &= self.apply(*node, &inner, None)?;
                }
            }
            if let (Some(node), false) = (rule.additional, is_known) {
                is_known = true;
                passes &= self.additional(node, name, &inner, Some(rule))?;
            }
            if !passes && self.report.is_none() {
                return Ok(false);
            }
            if let (Some(marks), true) = (&mut marks, is_known) {
                marks.mark_name(name);
            }
        }
        Ok(passes)
    }

    /// Applies a subschema to a member that no other subschema names. If it is `false`, the name is
    /// wrong.
    fn additional(
        &mut self,
        node: NodeId,
        name: &str,
        inner: &Location<'_, '_>,
        rule: Option<&Properties>,
    ) -> Result<bool, Stop> {
        if !self.schema.nodes[node.0].is_never() {
            return self.apply(node, inner, None);
        }
        self.find_at_cost(STEPS_TO_FIND_CLOSEST, |root| {
            let names = rule.map_or(&[] as &[_], |rule| &rule.named).iter();
            let names = names.map(|(name, _)| name.as_ref());
            let mut message = "is unknown".to_owned();
            if names.len() > 0 {
                let known = names.clone().map(|name| cut(name, MAX_NAME));
                message.push_str(&format!("; the known names are {}", list(known)));
            } else if rule.is_some() {
                message.push_str("; no members are allowed");
            }
            if let Some(meant) = closest(name, names) {
                message.push_str(&format!(" (did you mean {meant}?)"));
            }
            Finding::at(inner, root).saying(message)
        });
        Ok(false)
    }

    pub(super) fn unevaluated_properties<'v>(
        &mut self,
        rest: NodeId,
        location: &Location<'_, 'v>,
        marks: &mut Marks<'v>,
    ) -> Result<bool, Stop> {
        let Value::Object(map) = location.value else { return Ok(true) };
        let mut passes = true;
        for (name, value) in map {
            if marks.has_name(name) {
                continue;
            }
            passes &= self.additional(rest, name, &location.member(name, value), None)?;
            if !passes && self.report.is_none() {
                return Ok(false);
            }
            marks.mark_name(name);
        }
        Ok(passes)
    }

    pub(super) fn property_names(
        &mut self,
        node: NodeId,
        map: &Map<String, Value>,
        location: &Location<'_, '_>,
    ) -> Result<bool, Stop> {
        let mut passes = true;
        for name in map.keys() {
            self.spend_on_text(name)?;
            // The name is checked as a value, and values own their text.
            let value = Value::from(name.as_str());
            if !self.quietly(node, &Location::root(&value), None)? {
                passes = false;
                self.find(|root| {
                    Finding::at_member(location, root, name)
                        .saying("has a name that is not allowed")
                });
            }
            if !passes && self.report.is_none() {
                return Ok(false);
            }
        }
        Ok(passes)
    }

    pub(super) fn dependent_required(
        &mut self,
        list: &'s [Dependency],
        map: &Map<String, Value>,
        location: &Location<'_, '_>,
    ) -> Result<bool, Stop> {
        let mut passes = true;
        for Dependency { name, needs } in list {
            self.spend(2)?;
            if !map.contains_key(name.as_ref()) {
                continue;
            }
            self.spend_on_lookups(needs.len(), map)?;
            for missing in needs.iter().filter(|name| !map.contains_key(name.as_ref())) {
                passes = false;
                self.find(|root| {
                    let message = format!("is missing; {} requires it", cut(name, MAX_NAME));
                    Finding::at_member(location, root, missing).saying(message)
                });
            }
        }
        Ok(passes)
    }

    pub(super) fn dependent_schemas<'v>(
        &mut self,
        list: &'s [(Box<str>, NodeId)],
        location: &Location<'_, 'v>,
        mut marks: Option<&mut Marks<'v>>,
    ) -> Result<bool, Stop> {
        let mut passes = true;
        for (name, node) in list {
            self.spend(2)?;
            if location.value.get(name.as_ref()).is_some() {
                passes &= self.apply(*node, location, marks.as_deref_mut())?;
            }
        }
        Ok(passes)
    }
}

/// Describes a missing member: ` (a string: City name)`.
fn hint(nodes: &[Node], mut id: NodeId) -> String {
    let mut description = nodes[id.0].description.as_deref();
    // Compiling rejects endless chains of references.
    while let [Rule::Ref(target)] = nodes[id.0].rules.as_slice() {
        id = *target;
        description = description.or(nodes[id.0].description.as_deref());
    }
    let node = &nodes[id.0];
    let choices = node.rules.iter().find_map(|rule| match rule {
        Rule::OneOfValues(choices) => Some(choices),
        _ => None,
    });
    let what = match choices {
        Some(choices) if choices.len() == 1 => show_choice(&choices[0]),
        Some(choices) => format!("one of {}", list(choices.iter().map(show_choice))),
        None => node.types.words().collect::<Vec<_>>().join(" or "),
    };
    match (what.as_str(), description) {
        ("", None) => String::new(),
        ("", Some(text)) => format!(" ({text})"),
        (what, None) => format!(" ({what})"),
        (what, Some(text)) => format!(" ({what}: {text})"),
    }
}
