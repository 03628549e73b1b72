//! Text as the value that a schema wants.

use serde_json::{Number, Value};

use crate::loose;
use crate::schema::{Kinds, View, unquoted};

/// The value that text stands for under a schema. Where it could be a string and something else,
/// the other type wins if the text is exactly how it is written; `key:=` settles the rest.
///
/// # Errors
/// When the schema accepts no such value.
pub(crate) fn typed(text: &str, view: &View) -> Result<Value, ()> {
    if let Some(choices) = view.choices() {
        let mut values = choices.into_iter().map(|choice| choice.value);
        return values.find(|value| unquoted(value) == text).ok_or(());
    }
    let kinds = view.kinds();
    let can_be_text = kinds.has(Kinds::STRING);
    if kinds == Kinds::ANY {
        return Ok(Value::String(text.to_owned()));
    }
    if kinds.has(Kinds::BOOLEAN) {
        match text.to_ascii_lowercase().as_str() {
            "true" if !can_be_text || text == "true" => return Ok(Value::Bool(true)),
            "false" if !can_be_text || text == "false" => return Ok(Value::Bool(false)),
            "yes" | "y" | "on" if !can_be_text => return Ok(Value::Bool(true)),
            "no" | "n" | "off" if !can_be_text => return Ok(Value::Bool(false)),
            _ => {}
        }
    }
    if let Some(number) = number(text, kinds)
        && (!can_be_text || number.to_string() == text)
    {
        return Ok(Value::Number(number));
    }
    if kinds.has(Kinds::NULL) && !can_be_text && text == "null" {
        return Ok(Value::Null);
    }
    let open = text.trim_start().chars().next();
    let is_array = kinds.has(Kinds::ARRAY) && open == Some('[');
    let is_object = kinds.has(Kinds::OBJECT) && open == Some('{');
    if can_be_text {
        let json = if is_array || is_object { serde_json::from_str(text).ok() } else { None };
        return Ok(json.unwrap_or_else(|| Value::String(text.to_owned())));
    }
    if is_array || is_object {
        return loose::parse_value(text).map_err(drop);
    }
    if kinds.has(Kinds::ARRAY) {
        let any = || View::new(&Value::Bool(true));
        let item = typed(text, &view.items().unwrap_or_else(any))?;
        return Ok(Value::Array(vec![item]));
    }
    Err(())
}

fn number(text: &str, kinds: Kinds) -> Option<Number> {
    let number: Number = serde_json::from_str(text.trim()).ok()?;
    let is_whole = !number.is_f64() || number.as_f64().is_some_and(|it| it.fract() == 0.0);
    let fits = kinds.has(Kinds::NUMBER) || kinds.has(Kinds::INTEGER) && is_whole;
    fits.then_some(number)
}
