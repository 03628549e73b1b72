//! Rules that combine subschemas for the same value.

use super::location::Location;
use super::marks::Marks;
use super::report::{Finding, Report};
use super::{Evaluation, Stop};
use crate::node::{If, NodeId};
use crate::words::list;

impl<'s> Evaluation<'s> {
    pub(super) fn all_of<'v>(
        &mut self,
        nodes: &'s [NodeId],
        location: &Location<'_, 'v>,
        mut marks: Option<&mut Marks<'v>>,
    ) -> Result<bool, Stop> {
        let mut passes = true;
        for node in nodes {
            passes &= self.apply(*node, location, marks.as_deref_mut())?;
            if !passes && self.report.is_none() {
                return Ok(false);
            }
        }
        Ok(passes)
    }

    pub(super) fn any_of<'v>(
        &mut self,
        nodes: &'s [NodeId],
        location: &Location<'_, 'v>,
        mut marks: Option<&mut Marks<'v>>,
    ) -> Result<bool, Stop> {
        let mut passes = false;
        for node in nodes {
            passes |= self.quietly(*node, location, marks.as_deref_mut())?;
            // When marks are collected, every alternative that passes adds its own.
            if passes && marks.is_none() {
                return Ok(true);
            }
        }
        if !passes {
            self.explain_alternatives(nodes, location)?;
        }
        Ok(passes)
    }

    pub(super) fn one_of<'v>(
        &mut self,
        nodes: &'s [NodeId],
        location: &Location<'_, 'v>,
        mut marks: Option<&mut Marks<'v>>,
    ) -> Result<bool, Stop> {
        let mut passing = None;
        for (number, node) in nodes.iter().enumerate() {
            if !self.quietly(*node, location, marks.as_deref_mut())? {
                continue;
            }
            if let Some(first) = passing {
                let both = [first + 1, number + 1].map(|number| number.to_string());
                self.find(|root| {
                    let message = format!(
                        "; it matches alternatives {} of {}, but must match exactly one",
                        list(both.iter()).replace(", ", " and "),
                        nodes.len()
                    );
                    Finding::about(location, root).saying(message)
                });
                return Ok(false);
            }
            passing = Some(number);
        }
        if passing.is_none() {
            self.explain_alternatives(nodes, location)?;
        }
        Ok(passing.is_some())
    }

    /// Reports how the value could have passed, if this run reports.
    fn explain_alternatives(
        &mut self,
        nodes: &'s [NodeId],
        location: &Location<'_, '_>,
    ) -> Result<(), Stop> {
        let Some(mut outer) = self.report.take() else { return Ok(()) };
        if outer.is_full() {
            outer.count();
            self.report = Some(outer);
            return Ok(());
        }
        let mut alternatives = Vec::with_capacity(nodes.len());
        let mut verdict = Ok(true);
        for node in nodes {
            self.report = Some(Report::default());
            verdict = self.apply(*node, location, None);
            alternatives.extend(self.report.take().filter(|report| !report.is_empty()));
            if verdict.is_err() {
                break;
            }
        }
        outer.add_closest(alternatives, location.depth);
        self.report = Some(outer);
        verdict.map(|_| ())
    }

    pub(super) fn not(&mut self, node: NodeId, location: &Location<'_, '_>) -> Result<bool, Stop> {
        let passes = !self.quietly(node, location, None)?;
        if !passes {
            let schema = self.schema;
            self.find(|root| {
                let what = schema.nodes[node.0].description.as_deref();
                let what = what.map(|what| format!(": {what}")).unwrap_or_default();
                Finding::about(location, root).saying(format!(", which is not allowed{what}"))
            });
        }
        Ok(passes)
    }

    pub(super) fn conditional<'v>(
        &mut self,
        rule: &'s If,
        location: &Location<'_, 'v>,
        mut marks: Option<&mut Marks<'v>>,
    ) -> Result<bool, Stop> {
        let holds = self.quietly(rule.condition, location, marks.as_deref_mut())?;
        let branch = if holds { rule.then } else { rule.otherwise };
        branch.map_or(Ok(true), |node| self.apply(node, location, marks))
    }
}
