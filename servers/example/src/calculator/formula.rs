//! Formulas that become tools: the list of tools changes while the server runs.
//!
//! A formula belongs to the client that defined it: to its session or, where there are no sessions,
//! to its principal. No other client sees it, and it goes with its owner. Modern clients without a
//! principal cannot be told apart and share one owner; on stdio there is only one client.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bowline::{Caller, Context, HandlerError, Json, Registry, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::expression::{Angles, Expression};
use super::shown;

/// The most formulas of one owner.
const MAX_FORMULAS: usize = 32;
/// The most formulas of all owners together.
const MAX_IN_ALL: usize = 1_024;
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

/// The formulas of all clients. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Formulas {
    all: Arc<Names>,
    /// The owner of what modern clients without a principal define.
    anyone: Arc<OnceLock<Arc<Owner>>>,
}

/// The owner of each formula, by the formula's name.
#[derive(Default)]
struct Names(Mutex<BTreeMap<String, u64>>);

/// A client that defines formulas; they are removed when it is dropped.
struct Owner {
    id: u64,
    all: Arc<Names>,
    /// Set with its first formula.
    registry: OnceLock<Registry>,
}

impl Formulas {
    /// Turns a formula into a tool of the caller.
    pub(super) fn define(&self, context: &Context, define: Define) -> Result<String, HandlerError> {
        let Define { name, expression, variables, angles } = define;
        let formula = check(&name, &expression, &variables).map_err(HandlerError::failed)?;
        let tool_name = format!("{PREFIX}{name}");
        let owner = self.owner(context.caller());
        let registry = owner.registry.get_or_init(|| context.registry());
        // Locked until the tool is there, so that no two calls pass the same limit.
        let mut names = self.all.lock();
        check_room(&names, &name, owner.id).map_err(HandlerError::failed)?;
        let (formulas, id) = (self.clone(), owner.id);
        let tool = tool(&tool_name, &expression, formula, variables, angles)
            .visible_to(move |caller| formulas.owner(caller).id == id);
        registry.replace(tool).map_err(|error| HandlerError::failed(error.to_string()))?;
        names.insert(name, owner.id);
        Ok(format!("{tool_name} is now a tool: {}", expression.trim()))
    }

    /// Removes a tool of the caller.
    pub(super) fn forget(
        &self,
        context: &Context,
        forget: &Forget,
    ) -> Result<String, HandlerError> {
        let owner = self.owner(context.caller());
        let mut names = self.all.lock();
        if names.get(&forget.name) == Some(&owner.id) {
            names.remove(&forget.name);
            let name = format!("{PREFIX}{}", forget.name);
            context.registry().remove_tool(&name);
            return Ok(format!("{name} was removed"));
        }
        let own = names.iter().filter(|(_, id)| **id == owner.id).map(|(name, _)| name.as_str());
        let own: Vec<&str> = own.collect();
        let known = if own.is_empty() { "none".to_owned() } else { own.join(", ") };
        Err(HandlerError::failed(format!(
            "there is no formula called {:?}; available: {known}",
            forget.name
        )))
    }

    fn owner(&self, caller: &Caller) -> Arc<Owner> {
        match caller.session_state(|| Arc::new(self.new_owner())) {
            Some(owner) => Arc::clone(&owner),
            None => Arc::clone(self.anyone.get_or_init(|| Arc::new(self.new_owner()))),
        }
    }

    fn new_owner(&self) -> Owner {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let id = COUNT.fetch_add(1, Ordering::Relaxed);
        Owner { id, all: Arc::clone(&self.all), registry: OnceLock::new() }
    }
}

impl Names {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let Some(registry) = self.registry.get() else { return };
        self.all.lock().retain(|name, owner| {
            let is_other = *owner != self.id;
            if !is_other {
                registry.remove_tool(&format!("{PREFIX}{name}"));
            }
            is_other
        });
    }
}

/// Whether an owner may have a formula with this name.
fn check_room(names: &BTreeMap<String, u64>, name: &str, owner: u64) -> Result<(), String> {
    match names.get(name) {
        Some(id) if *id == owner => return Ok(()),
        Some(_) => {
            return Err(format!("another client has a formula called {name}: choose another name"));
        }
        None => {}
    }
    let own = names.values().filter(|id| **id == owner).count();
    if own >= MAX_FORMULAS {
        return Err(format!("there are already {own} formulas: forget one first"));
    }
    if names.len() >= MAX_IN_ALL {
        return Err(format!("all clients together already have {MAX_IN_ALL} formulas: try later"));
    }
    Ok(())
}

/// Checks a definition, and parses its expression.
fn check(name: &str, expression: &str, variables: &[String]) -> Result<Expression, String> {
    check_name("name", name)?;
    if TAKEN.contains(&name) {
        return Err(format!("{name} is one of the calculator's own tools: choose another name"));
    }
    if variables.len() > MAX_VARIABLES {
        return Err(format!("{} variables, at most {MAX_VARIABLES} are allowed", variables.len()));
    }
    for (index, variable) in variables.iter().enumerate() {
        check_name("a variable", variable)?;
        if variables[..index].contains(variable) {
            return Err(format!("the variable {variable} is listed twice"));
        }
    }
    Expression::parse_with(expression, variables).map_err(|error| error.to_string())
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
