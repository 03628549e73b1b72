//! Rules that look at one value and at nothing inside it.

use serde_json::{Number, Value};

use super::location::Location;
use super::report::Finding;
use super::{Evaluation, STEPS_TO_FIND_CLOSEST, Stop};
use crate::node::{Bound, Counted, Rule};
use crate::number::{compare, is_multiple};
use crate::words::{closest, counted, show_choice};

/// How many choices are written out at most.
const MAX_CHOICES: usize = 256;

impl<'s> Evaluation<'s> {
    /// Applies a rule for flat values. Any other rule that arrives here says nothing about this
    /// type.
    pub(super) fn flat(
        &mut self,
        rule: &'s Rule,
        location: &Location<'_, '_>,
    ) -> Result<bool, Stop> {
        match (rule, location.value) {
            (Rule::Never, _) => {
                self.find(|root| Finding::at(location, root).saying("is not allowed here"));
                Ok(false)
            }
            (Rule::OneOfValues(choices), _) => self.one_of_values(choices, location),
            (Rule::Bound(bound, limit), Value::Number(number)) => {
                Ok(self.bound(*bound, limit, number, location))
            }
            (Rule::MultipleOf(divisor), Value::Number(number)) => {
                // Decimal arithmetic takes a while.
                self.spend(8)?;
                let passes = is_multiple(number, divisor);
                if !passes {
                    let message = format!("; expected a multiple of {divisor}");
                    self.find(|root| Finding::about(location, root).saying(message));
                }
                Ok(passes)
            }
            (Rule::Count(what, bound, limit), value) => {
                self.count(*what, *bound, *limit, (value, location))
            }
            (Rule::Pattern(pattern), Value::String(text)) => {
                self.spend(pattern.steps(text))?;
                let passes = pattern.is_match(text);
                if !passes {
                    let message =
                        format!("; expected a match for the pattern {}", pattern.as_str());
                    self.find(|root| Finding::about(location, root).saying(message));
                }
                Ok(passes)
            }
            _ => Ok(true),
        }
    }

    fn one_of_values(
        &mut self,
        choices: &'s [Value],
        location: &Location<'_, '_>,
    ) -> Result<bool, Stop> {
        self.spend(choices.len() as u64 / 4)?;
        for choice in choices {
            if self.equal(choice, location.value)? {
                return Ok(true);
            }
        }
        let shown = choices.len().min(MAX_CHOICES) as u64;
        self.find_at_cost(STEPS_TO_FIND_CLOSEST + 8 * shown, |root| {
            let texts = choices.iter().filter_map(Value::as_str);
            let meant = location.value.as_str().and_then(|text| closest(text, texts));
            let meant = meant.filter(|_| choices.len() > 1);
            let hint = meant.map(|meant| format!(" (did you mean {}?)", Value::from(meant)));
            let allowed = choices.iter().take(MAX_CHOICES).map(show_choice);
            Finding::about(location, root)
                .of_choice()
                .allowing(allowed)
                .saying(hint.unwrap_or_default())
        });
        Ok(false)
    }

    fn bound(
        &mut self,
        bound: Bound,
        limit: &Number,
        number: &Number,
        location: &Location<'_, '_>,
    ) -> bool {
        let order = compare(number, limit);
        let (passes, words) = match bound {
            Bound::AtLeast => (order.is_ge(), "at least"),
            Bound::MoreThan => (order.is_gt(), "more than"),
            Bound::AtMost => (order.is_le(), "at most"),
            Bound::LessThan => (order.is_lt(), "less than"),
        };
        if !passes {
            self.find(|root| {
                Finding::about(location, root).saying(format!("; expected {words} {limit}"))
            });
        }
        passes
    }

    fn count(
        &mut self,
        what: Counted,
        bound: Bound,
        limit: u64,
        (value, location): (&Value, &Location<'_, '_>),
    ) -> Result<bool, Stop> {
        let (number, one, many) = match (what, value) {
            (Counted::Characters, Value::String(text)) => {
                self.spend_on_text(text)?;
                (text.chars().count(), "character", "characters")
            }
            (Counted::Items, Value::Array(items)) => (items.len(), "item", "items"),
            (Counted::Properties, Value::Object(map)) => (map.len(), "member", "members"),
            _ => return Ok(true),
        };
        let number = number as u64;
        let passes = if bound == Bound::AtLeast { number >= limit } else { number <= limit };
        if !passes {
            let words = if bound == Bound::AtLeast { "at least" } else { "at most" };
            let message = format!("has {}; expected {words} {limit}", counted(number, one, many));
            self.find(|root| Finding::at(location, root).saying(message));
        }
        Ok(passes)
    }
}
