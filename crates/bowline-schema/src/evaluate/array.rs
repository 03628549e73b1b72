//! Rules for arrays.

use serde_json::Value;

use super::location::Location;
use super::marks::Marks;
use super::report::Finding;
use super::{Evaluation, Stop};
use crate::node::{Contains, Items, NodeId};
use crate::words::counted;

impl<'s> Evaluation<'s> {
    pub(super) fn items<'v>(
        &mut self,
        rule: &'s Items,
        items: &'v [Value],
        location: &Location<'_, 'v>,
        marks: Option<&mut Marks<'v>>,
    ) -> Result<bool, Stop> {
        let mut passes = true;
        for (index, item) in items.iter().enumerate() {
            let Some(node) = rule.prefix.get(index).copied().or(rule.rest) else { break };
            passes &= self.apply(node, &location.item(index, item), None)?;
            if !passes && self.report.is_none() {
                return Ok(false);
            }
        }
        if let Some(marks) = marks {
            let seen = if rule.rest.is_some() { items.len() } else { rule.prefix.len() };
            marks.mark_items_before(seen);
        }
        Ok(passes)
    }

    pub(super) fn contains<'v>(
        &mut self,
        rule: &'s Contains,
        items: &'v [Value],
        location: &Location<'_, 'v>,
        mut marks: Option<&mut Marks<'v>>,
    ) -> Result<bool, Stop> {
        let mut number = 0;
        for (index, item) in items.iter().enumerate() {
            if self.quietly(rule.node, &location.item(index, item), None)? {
                number += 1;
                if let Some(marks) = &mut marks {
                    marks.mark_item(index);
                } else if number >= rule.least && rule.most == u64::MAX {
                    return Ok(true);
                }
            }
        }
        let (words, limit) = if number < rule.least {
            ("at least", rule.least)
        } else if number > rule.most {
            ("at most", rule.most)
        } else {
            return Ok(true);
        };
        self.find(|root| {
            let number = counted(number, "matching item", "matching items");
            let message = format!("has {number}; expected {words} {limit}");
            Finding::at(location, root).saying(message)
        });
        Ok(false)
    }

    pub(super) fn unique_items(
        &mut self,
        items: &[Value],
        location: &Location<'_, '_>,
    ) -> Result<bool, Stop> {
        let Some((first, second)) = self.twins(items)? else { return Ok(true) };
        let message = format!("has equal items [{first}] and [{second}]; items must be unique");
        self.find(|root| Finding::at(location, root).saying(message));
        Ok(false)
    }

    pub(super) fn unevaluated_items<'v>(
        &mut self,
        rest: NodeId,
        location: &Location<'_, 'v>,
        marks: &mut Marks<'v>,
    ) -> Result<bool, Stop> {
        let Value::Array(items) = location.value else { return Ok(true) };
        let mut passes = true;
        for (index, item) in items.iter().enumerate() {
            if marks.has_item(index) {
                continue;
            }
            passes &= self.apply(rest, &location.item(index, item), None)?;
            if !passes && self.report.is_none() {
                return Ok(false);
            }
        }
        marks.mark_items_before(items.len());
        Ok(passes)
    }
}
