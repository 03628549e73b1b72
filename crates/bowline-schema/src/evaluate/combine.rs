//! Rules that combine subschemas for the same value.

use super::marks::Marks;
use super::place::Place;
use super::report::{Finding, Report};
use super::{Evaluation, Stop};
use crate::node::{If, NodeId};
use crate::words::list;

impl<'s> Evaluation<'s> {
    pub(super) fn all_of<'v>(
        &mut self,
        nodes: &'s [NodeId],
        place: &Place<'_, 'v>,
        mut marks: Option<&mut Marks<'v>>,
    ) -> Result<bool, Stop> {
        let mut passes = true;
        for node in nodes {
            passes &= self.apply(*node, place, marks.as_deref_mut())?;
            if !passes && self.report.is_none() {
                return Ok(false);
            }
        }
        Ok(passes)
    }

    pub(super) fn any_of<'v>(
        &mut self,
        nodes: &'s [NodeId],
        place: &Place<'_, 'v>,
        mut marks: Option<&mut Marks<'v>>,
    ) -> Result<bool, Stop> {
        let mut passes = false;
        for node in nodes {
            passes |= self.quietly(*node, place, marks.as_deref_mut())?;
            // With marks to be made, every alternative that passes has some to add.
            if passes && marks.is_none() {
                return Ok(true);
            }
        }
        if !passes {
            self.explain_alternatives(nodes, place)?;
        }
        Ok(passes)
    }

    pub(super) fn one_of<'v>(
        &mut self,
        nodes: &'s [NodeId],
        place: &Place<'_, 'v>,
        mut marks: Option<&mut Marks<'v>>,
    ) -> Result<bool, Stop> {
        let mut passing = None;
        for (number, node) in nodes.iter().enumerate() {
            if !self.quietly(*node, place, marks.as_deref_mut())? {
                continue;
            }
            if let Some(first) = passing {
                let both = [first + 1, number + 1].map(|number| number.to_string());
                self.find(|root| {
                    let message = format!(
                        " and matches alternatives {} of {}, exactly one must match",
                        list(both.iter()).replace(", ", " and "),
                        nodes.len()
                    );
                    Finding::about(place, root).saying(message)
                });
                return Ok(false);
            }
            passing = Some(number);
        }
        if passing.is_none() {
            self.explain_alternatives(nodes, place)?;
        }
        Ok(passing.is_some())
    }

    /// Tells how the value could have passed, if anybody wants to know.
    fn explain_alternatives(
        &mut self,
        nodes: &'s [NodeId],
        place: &Place<'_, '_>,
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
            verdict = self.apply(*node, place, None);
            alternatives.extend(self.report.take().filter(|report| !report.is_empty()));
            if verdict.is_err() {
                break;
            }
        }
        outer.add_closest(alternatives, place.depth);
        self.report = Some(outer);
        verdict.map(|_| ())
    }

    pub(super) fn not(&mut self, node: NodeId, place: &Place<'_, '_>) -> Result<bool, Stop> {
        let passes = !self.quietly(node, place, None)?;
        if !passes {
            let schema = self.schema;
            self.find(|root| {
                let what = schema.nodes[node.0].description.as_deref();
                let what = what.map(|what| format!(": {what}")).unwrap_or_default();
                Finding::about(place, root).saying(format!(", which is excluded{what}"))
            });
        }
        Ok(passes)
    }

    pub(super) fn conditional<'v>(
        &mut self,
        rule: &'s If,
        place: &Place<'_, 'v>,
        mut marks: Option<&mut Marks<'v>>,
    ) -> Result<bool, Stop> {
        let holds = self.quietly(rule.condition, place, marks.as_deref_mut())?;
        let branch = if holds { rule.then } else { rule.otherwise };
        branch.map_or(Ok(true), |node| self.apply(node, place, marks))
    }
}
