//! Formulas that become tools: the list of tools changes while the server runs.
//!
//! Every connected client sees them. That is harmless: a formula is arithmetic, and the tool's
//! description consists of names and an expression that have been checked.

use bowline::{Context, HandlerError, Json, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::expression::{Angles, Expression};
use super::shown;

/// The most formulas in the whole server.
const MAX_FORMULAS: usize = 32;
/// The most variables of one formula.
const MAX_VARIABLES: usize = 8;
/// The prefix of tools made from formulas.
const PREFIX: &str = "calculator_";
/// Names of the calculator's own tools.
const TAKEN: [&str; 3] = ["arithmetic", "define", "forget"];

/// A formula that is to become a tool.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Define {
    /// Its name, such as `circle_area`: lower case letters, digits and underscores
    name: String,
    /// The formula, such as 'pi * radius ^ 2'
    expression: String,
    /// Its variables, such as ["radius"], in the order of the tool's arguments
    variables: Vec<String>,
    /// The unit of angles
    #[serde(default)]
    angles: Angles,
}

/// A formula that is to be removed.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Forget {
    /// The name it was defined with, without calculator_
    name: String,
}

/// Turns a formula into a tool.
pub(super) fn define(context: &Context, define: Define) -> Result<String, HandlerError> {
    let Define { name, expression, variables, angles } = define;
    let refused = |reason: String| Err(HandlerError::failed(reason));
    if let Err(reason) = check_name("name", &name) {
        return refused(reason);
    }
    if TAKEN.contains(&name.as_str()) {
        return refused(format!(
            "{name} is one of the calculator's own tools: choose another name"
        ));
    }
    if variables.len() > MAX_VARIABLES {
        return refused(format!(
            "{} variables, at most {MAX_VARIABLES} are allowed",
            variables.len()
        ));
    }
    for (index, variable) in variables.iter().enumerate() {
        check_name("a variable", variable).map_err(HandlerError::failed)?;
        if variables[..index].contains(variable) {
            return refused(format!("the variable {variable} is listed twice"));
        }
    }
    let formula = Expression::parse_with(&expression, &variables)
        .map_err(|error| HandlerError::failed(error.to_string()))?;
    let tool_name = format!("{PREFIX}{name}");
    let registry = context.registry();
    let names = registry.tool_names();
    let made = names.iter().filter(|it| is_formula(it)).count();
    if made >= MAX_FORMULAS && !names.iter().any(|it| it.ends_with(&tool_name)) {
        return refused(format!("there are already {made} formulas: forget one first"));
    }
    let tool = tool(&tool_name, &expression, formula, variables, angles);
    registry.replace(tool).map_err(|error| HandlerError::failed(error.to_string()))?;
    Ok(format!("{tool_name} is now a tool: {}", expression.trim()))
}

/// Removes a formula's tool.
pub(super) fn forget(context: &Context, forget: &Forget) -> Result<String, HandlerError> {
    let name = format!("{PREFIX}{}", forget.name);
    if is_formula(&name) && context.registry().remove_tool(&name) {
        return Ok(format!("{name} was removed"));
    }
    let names = context.registry().tool_names();
    let formulas: Vec<_> = names
        .iter()
        .filter(|name| is_formula(name))
        .filter_map(|name| Some(name.split_once(PREFIX)?.1))
        .collect();
    let known = if formulas.is_empty() { "none".to_owned() } else { formulas.join(", ") };
    Err(HandlerError::failed(format!(
        "there is no formula called {:?}; available: {known}",
        forget.name
    )))
}

/// Whether a tool with this name was made from a formula. Inside another server it has a prefix.
fn is_formula(name: &str) -> bool {
    name.split_once(PREFIX).is_some_and(|(_, rest)| !TAKEN.contains(&rest))
}

fn check_name(what: &str, name: &str) -> Result<(), String> {
    let is_part =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
    let begins = name.starts_with(|letter: char| letter.is_ascii_lowercase());
    if begins && name.len() <= 32 && name.chars().all(is_part) {
        return Ok(());
    }
    Err(format!(
        "{what} is {name:?}: expected a lower case letter followed by lower case letters, digits \
         or underscores, at most 32 characters in all"
    ))
}

fn tool(
    name: &str,
    text: &str,
    formula: Expression,
    variables: Vec<String>,
    angles: Angles,
) -> Tool {
    let properties: Map<String, Value> =
        variables.iter().map(|name| (name.clone(), json!({ "type": "number" }))).collect();
    let schema = json!({
        "type": "object",
        "properties": properties,
        "required": variables,
        "additionalProperties": false,
    });
    let note = if formula.has_angles() { format!(", angles in {angles}") } else { String::new() };
    let description = format!("Calculate {}{note}", text.trim());
    let handler = move |_: Context, arguments: Json| {
        let given = arguments.to_value();
        // The schema guarantees that all of them are present, and numbers.
        let values: Vec<f64> =
            variables.iter().filter_map(|name| given.get(name)?.as_f64()).collect();
        let result = formula.evaluate(angles, &values).map(shown);
        async move { result }
    };
    Tool::raw(name, schema, handler)
        .description(description)
        .read_only()
        .idempotent()
        .open_world(false)
}
