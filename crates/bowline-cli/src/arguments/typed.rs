//! Text as the value that a schema wants.

use serde_json::Value;

use crate::schema::View;

/// The value that text stands for, where a schema says what is wanted. Where it could be several,
/// the one that is no string wins if the text is exactly how it is written; `key:=` is there for
/// the rest.
///
/// # Errors
/// When it stands for nothing that is wanted.
pub(crate) fn typed(text: &str, view: View<'_>) -> Result<Value, ()> {
    if let Some(values) = view.values() {
        let same = |value: &&&Value| match value {
            Value::String(word) => word == text,
            other => other.to_string() == text,
        };
        return values.iter().find(same).map(|value| (*value).clone()).ok_or(());
    }
    let kinds = view.kinds();
    if kinds.is_any() {
        return Ok(Value::String(text.to_owned()));
    }
    let is_only_choice = !kinds.string;
    if kinds.boolean {
        match text {
            "true" => return Ok(Value::Bool(true)),
            "false" => return Ok(Value::Bool(false)),
            "yes" | "on" if is_only_choice => return Ok(Value::Bool(true)),
            "no" | "off" if is_only_choice => return Ok(Value::Bool(false)),
            _ => {}
        }
    }
    if (kinds.integer || kinds.number)
        && let Some(number) = number(text, kinds.number)
        && (is_only_choice || is_written_so(&number, text))
    {
        return Ok(number);
    }
    if kinds.null && is_only_choice && text == "null" {
        return Ok(Value::Null);
    }
    let open = text.trim_start().chars().next();
    if kinds.array && open == Some('[') || kinds.object && open == Some('{') {
        if let Ok(value) = serde_json::from_str(text) {
            return Ok(value);
        }
        return if kinds.string { Ok(Value::String(text.to_owned())) } else { Err(()) };
    }
    if kinds.string {
        return Ok(Value::String(text.to_owned()));
    }
    if kinds.array {
        let any = Value::Bool(true);
        let item = typed(text, view.items().unwrap_or_else(|| View::new(&any)))?;
        return Ok(Value::Array(vec![item]));
    }
    Err(())
}

/// Whether this is how a number is written. `01234` is none, though it could be read as one.
fn is_written_so(number: &Value, text: &str) -> bool {
    number.to_string().as_str() == text
}

/// A number as JSON writes it.
fn number(text: &str, takes_fractions: bool) -> Option<Value> {
    let value: Value = serde_json::from_str(text.trim()).ok()?;
    let number = value.as_number()?;
    let is_whole = !number.is_f64() || number.as_f64().is_some_and(|it| it.fract() == 0.0);
    (takes_fractions || is_whole).then_some(value)
}
