//! Compares messages with expectations.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The values of names.
pub(crate) type Bindings = BTreeMap<String, Value>;

/// Compares, and binds names if everything matches.
pub(crate) fn matches(
    expected: &Value,
    got: &Value,
    is_subset: bool,
    bindings: &mut Bindings,
) -> bool {
    let mut found = bindings.clone();
    let does = Comparison { is_subset, bindings: &mut found }.value(expected, got);
    if does {
        *bindings = found;
    }
    does
}

struct Comparison<'a> {
    is_subset: bool,
    bindings: &'a mut Bindings,
}

impl Comparison<'_> {
    fn value(&mut self, expected: &Value, got: &Value) -> bool {
        match (expected, got) {
            (Value::String(text), _) if text.starts_with('<') => self.placeholder(text, got),
            (Value::Object(expected), Value::Object(got)) => self.object(expected, got),
            (Value::Array(expected), Value::Array(got)) => self.array(expected, got),
            _ => expected == got,
        }
    }

    fn placeholder(&mut self, text: &str, got: &Value) -> bool {
        match text {
            "<any>" => true,
            "<string>" => got.is_string(),
            _ => match name(text) {
                None => got.as_str() == Some(text),
                Some(name) => {
                    let kept = self.bindings.entry(name.to_owned()).or_insert_with(|| got.clone());
                    kept == got
                }
            },
        }
    }

    fn object(&mut self, expected: &Map<String, Value>, got: &Map<String, Value>) -> bool {
        let has = |(key, value): (&String, &Value)| {
            got.get(key).is_some_and(|found| self.value(value, found))
        };
        expected.iter().all(has) && (self.is_subset || expected.len() == got.len())
    }

    /// A part of a list stands there in the same order.
    fn array(&mut self, expected: &[Value], got: &[Value]) -> bool {
        if !self.is_subset {
            let pairs = expected.iter().zip(got);
            return expected.len() == got.len()
                && pairs.fold(true, |is, (a, b)| is && self.value(a, b));
        }
        let mut rest = got.iter();
        expected.iter().all(|wanted| rest.any(|found| self.value(wanted, found)))
    }
}

/// The name in `<$name>`.
fn name(text: &str) -> Option<&str> {
    text.strip_prefix("<$")?.strip_suffix('>')
}

/// The message, with the placeholders of the expectation wherever they still match, and names in
/// place of the objects they are bound to.
pub(crate) fn with_placeholders(expected: Option<&Value>, got: &Value, names: &Bindings) -> Value {
    match (expected, got) {
        (Some(Value::String(text)), _) if is_placeholder(text) => Value::String(text.clone()),
        _ if got.is_object() && names.values().any(|value| value == got) => {
            let name = names.iter().find(|(_, value)| *value == got).map(|(name, _)| name);
            Value::String(format!("<${}>", name.unwrap()))
        }
        (expected, Value::Object(members)) => {
            let member = |(key, value): (&String, &Value)| {
                let expected = expected.and_then(|expected| expected.get(key));
                (key.clone(), with_placeholders(expected, value, names))
            };
            Value::Object(members.iter().map(member).collect())
        }
        (expected, Value::Array(items)) => {
            let item = |(index, value): (usize, &Value)| {
                let expected = expected.and_then(|expected| expected.get(index));
                with_placeholders(expected, value, names)
            };
            Value::Array(items.iter().enumerate().map(item).collect())
        }
        (_, got) => got.clone(),
    }
}

fn is_placeholder(text: &str) -> bool {
    matches!(text, "<any>" | "<string>") || name(text).is_some()
}
