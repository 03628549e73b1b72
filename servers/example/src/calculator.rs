//! The calculator's tools, and the tools made from formulas.

pub(crate) mod expression;
mod formula;
mod functions;
mod parser;

use bowline::{Context, Described, HandlerError, Parts, Resource, Structured, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::expression::{Angles, Expression};
use self::formula::{Define, Forget, Formulas};

/// The calculator's tools and resources.
pub(crate) fn tools() -> Parts {
    let arithmetic = Tool::new("calculator_arithmetic", arithmetic)
        .title("Calculator")
        .description(
            "Perform mathematical calculations including basic arithmetic, trigonometric \
             functions, and algebraic operations",
        )
        .read_only()
        .idempotent()
        .open_world(false);
    let formulas = Formulas::default();
    let kept = formulas.clone();
    let define = Tool::new("calculator_define", move |context: Context, define: Define| {
        let defined = kept.define(&context, define);
        async move { defined }
    })
    .title("Define a formula")
    .description(
        "Turn a formula that is needed often into a tool: it appears in the list of tools as \
         calculator_ followed by its name, and takes the formula's variables as arguments. Only \
         you can see and use it. Your formula with the same name is replaced",
    )
    .destructive(false)
    .idempotent()
    .open_world(false);
    let forget = Tool::new("calculator_forget", move |context: Context, forget: Forget| {
        let forgotten = formulas.forget(&context, &forget);
        async move { forgotten }
    })
    .title("Forget a formula")
    .description("Remove a tool that was made with calculator_define")
    .open_world(false);
    let functions = Resource::text("calculator://functions", "functions", functions::description())
        .title("Functions and constants")
        .description("Everything that an expression may contain");
    let mut parts = Parts::default();
    parts.add((arithmetic, define, forget, functions));
    parts
}

#[derive(Deserialize, JsonSchema)]
struct Arithmetic {
    /// Mathematical expression to evaluate (e.g., '2 + 3 * 4', 'sin(30)', 'sqrt(16)')
    expression: String,
    /// The unit of angles for sin, cos, tan, asin, acos, atan and atan2
    #[serde(default)]
    angles: Angles,
}

#[derive(Serialize, JsonSchema)]
struct Calculated {
    /// The expression
    expression: String,
    /// Its value
    result: f64,
    /// The unit of angles, if the expression has any
    angles: Option<Angles>,
}

async fn arithmetic(arguments: Arithmetic) -> Result<Described<Calculated>, HandlerError> {
    let expression = Expression::parse(&arguments.expression)?;
    let angles = arguments.angles;
    let result = expression.evaluate(angles, &[])?;
    let angles = expression.has_angles().then_some(angles);
    let note = angles.map_or_else(String::new, |angles| format!(" (angles in {angles})"));
    let calculated = Calculated { expression: arguments.expression, result, angles };
    let text = format!("{} = {}{note}", calculated.expression.trim(), shown(result));
    Ok(Structured(calculated).with_text(text))
}

/// A number to fifteen digits, the precision of doubles: 0.1 + 0.2 is 0.3.
fn shown(number: f64) -> String {
    let rounded: f64 = format!("{number:.14e}").parse().unwrap_or(number);
    let size = rounded.abs();
    if size != 0.0 && !(1e-6..1e15).contains(&size) {
        return format!("{rounded:e}");
    }
    rounded.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_as_people_write_them() {
        for (number, text) in [
            (14.0, "14"),
            (0.1 + 0.2, "0.3"),
            (-0.5, "-0.5"),
            (0.0, "0"),
            (1e15, "1e15"),
            (1.5e-7, "1.5e-7"),
            (123_456_789.25, "123456789.25"),
        ] {
            assert_eq!(shown(number), text);
        }
    }
}
