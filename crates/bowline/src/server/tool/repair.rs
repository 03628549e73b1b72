//! Arguments that are right but spelled in another way, rewritten as their schema has them.
//!
//! Always: `5.0` is an integer, as JSON Schema says, and `null` for an optional member is an absent
//! one. On request, because it guesses: JSON inside strings, and members that nobody asked for.

use bowline_proto::json::Json;
use bowline_proto::members::RawMembers;
use serde_json::{Map, Number, Value};

use crate::server::schema::{is_closed, properties};

/// How many schemas may be applied, so that one that refers to itself comes to an end.
const MAX_STEPS: u32 = 100_000;

/// How deep schemas may nest.
const MAX_DEPTH: u32 = 64;

/// Rewrites a value. Returns whether anything changed.
pub(super) fn repair(schema: &Value, value: &mut Value, is_lenient: bool) -> bool {
    let mut repair = Repair::new(schema, is_lenient);
    if is_lenient {
        repair.drop_unknown(value);
    }
    repair.apply(schema, value);
    repair.has_changed
}

/// The arguments that a schema allows to be absent, but not null.
///
/// For definitions of others, whose arguments are passed on to the letter otherwise.
pub(super) struct Absent(Vec<String>);

impl Absent {
    pub(super) fn of(schema: &Value) -> Self {
        let repair = Repair::new(schema, false);
        let properties = properties(schema).into_iter();
        let absent = properties.filter(|it| !it.is_required && !repair.allows(it.schema, "null"));
        Self(absent.map(|it| it.name.to_owned()).collect())
    }

    /// Drops the arguments that are null and may be absent instead.
    pub(super) fn without_null(&self, arguments: Json) -> Json {
        if self.0.is_empty() || !arguments.as_str().contains("null") {
            return arguments;
        }
        self.dropped(&arguments).unwrap_or(arguments)
    }

    fn dropped(&self, arguments: &Json) -> Option<Json> {
        let members: RawMembers<'_> = arguments.parse().ok()?;
        let is_absent =
            |name: &str, text: &str| text == "null" && self.0.iter().any(|it| it == name);
        let mut kept = RawMembers::default();
        for (name, value) in members.iter().filter(|(name, it)| !is_absent(name, it.get())) {
            kept.push(name, value);
        }
        Json::new(&kept).ok()
    }
}

struct Repair<'a> {
    root: &'a Value,
    is_lenient: bool,
    steps_left: u32,
    depth: u32,
    has_changed: bool,
}

impl<'a> Repair<'a> {
    fn new(root: &'a Value, is_lenient: bool) -> Self {
        Self { root, is_lenient, steps_left: MAX_STEPS, depth: 0, has_changed: false }
    }

    fn apply(&mut self, schema: &'a Value, value: &mut Value) {
        let Value::Object(schema) = schema else { return };
        let Some(steps_left) = self.steps_left.checked_sub(1) else { return };
        if self.depth >= MAX_DEPTH {
            return;
        }
        self.steps_left = steps_left;
        self.depth += 1;
        if let Some(meant) = self.meant(schema, value) {
            *value = meant;
            self.has_changed = true;
        }
        match value {
            Value::Object(members) => self.members(schema, members),
            Value::Array(items) => self.items(schema, items),
            _ => {}
        }
        if let Some(target) = self.target(schema) {
            self.apply(target, value);
        }
        for branch in branches(schema) {
            // Where text is allowed, it is meant as text.
            if !value.is_string() || !self.allows_in_any(schema, "string") {
                self.apply(branch, value);
            }
        }
        self.depth -= 1;
    }

    /// What a flat value means in the eyes of the schema, if that is something else.
    fn meant(&self, schema: &Map<String, Value>, value: &Value) -> Option<Value> {
        let kinds = kinds(schema)?;
        let allows = |kind: &str| kinds.contains(&kind);
        match value {
            Value::Number(number) if allows("integer") && !allows("number") => whole(number),
            Value::String(text) if self.is_lenient && !allows("string") => {
                let inner: Value = serde_json::from_str(text.trim()).ok()?;
                let inner = match &inner {
                    Value::Number(number) if !allows("number") => whole(number).unwrap_or(inner),
                    _ => inner,
                };
                kinds.iter().any(|kind| is_of(&inner, kind)).then_some(inner)
            }
            _ => None,
        }
    }

    fn members(&mut self, schema: &'a Map<String, Value>, members: &mut Map<String, Value>) {
        let required = schema.get("required").and_then(Value::as_array);
        let is_required =
            |name: &str| required.is_some_and(|names| names.iter().any(|it| it == name));
        for (name, property) in
            schema.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            let Some(value) = members.get_mut(name) else { continue };
            if value.is_null() && !is_required(name) && !self.allows(property, "null") {
                members.remove(name);
                self.has_changed = true;
            } else {
                self.apply(property, value);
            }
        }
        let Some(others) = schema.get("additionalProperties") else { return };
        let named = schema.get("properties").and_then(Value::as_object);
        for (name, value) in members {
            if !named.is_some_and(|named| named.contains_key(name)) {
                self.apply(others, value);
            }
        }
    }

    fn items(&mut self, schema: &'a Map<String, Value>, items: &mut [Value]) {
        let first = schema.get("prefixItems").and_then(Value::as_array);
        let first = first.map(Vec::as_slice).unwrap_or_default();
        for (number, item) in items.iter_mut().enumerate() {
            if let Some(schema) = first.get(number).or_else(|| schema.get("items")) {
                self.apply(schema, item);
            }
        }
    }

    /// Drops arguments that the schema does not allow.
    fn drop_unknown(&mut self, value: &mut Value) {
        let (Value::Object(members), true) = (value, is_closed(self.root)) else { return };
        let named = self.root.get("properties").and_then(Value::as_object);
        let before = members.len();
        members.retain(|name, _| named.is_some_and(|named| named.contains_key(name)));
        self.has_changed |= members.len() < before;
    }

    /// The schema that `$ref` names, within the same document.
    fn target(&self, schema: &Map<String, Value>) -> Option<&'a Value> {
        bowline_schema::target(self.root, schema.get("$ref")?.as_str()?)
    }

    /// Whether the schema allows values of this type, as far as it says.
    fn allows(&self, schema: &Value, kind: &str) -> bool {
        match schema {
            Value::Object(schema) => self.allows_in_any(schema, kind),
            other => *other != Value::Bool(false),
        }
    }

    fn allows_in_any(&self, schema: &Map<String, Value>, kind: &str) -> bool {
        let referred = |schema: &Map<String, Value>| says(self.target(schema)?.as_object()?, kind);
        let allows = |schema: &Value| match schema {
            Value::Object(schema) => {
                says(schema, kind).or_else(|| referred(schema)).unwrap_or(true)
            }
            other => *other != Value::Bool(false),
        };
        if let Some(is_allowed) = says(schema, kind) {
            return is_allowed;
        }
        match self.target(schema) {
            Some(target) => allows(target),
            None => branches(schema).any(allows) || branches(schema).next().is_none(),
        }
    }
}

/// Whether a schema itself allows values of this type; `None` if it does not say.
fn says(schema: &Map<String, Value>, kind: &str) -> Option<bool> {
    match kinds(schema) {
        Some(kinds) => Some(kinds.contains(&kind)),
        None => match (schema.get("const"), schema.get("enum")) {
            (Some(only), _) => Some(is_of(only, kind)),
            (None, Some(Value::Array(words))) => Some(words.iter().any(|it| is_of(it, kind))),
            _ => None,
        },
    }
}

fn branches(schema: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let lists =
        ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|key| schema.get(key)?.as_array());
    lists.flatten()
}

/// The words in `type`.
fn kinds(schema: &Map<String, Value>) -> Option<Vec<&str>> {
    match schema.get("type")? {
        Value::String(kind) => Some(vec![kind]),
        Value::Array(kinds) => Some(kinds.iter().filter_map(Value::as_str).collect()),
        _ => None,
    }
}

fn is_of(value: &Value, kind: &str) -> bool {
    match value {
        Value::Null => kind == "null",
        Value::Bool(_) => kind == "boolean",
        Value::Number(number) => kind == "number" || (kind == "integer" && !number.is_f64()),
        Value::String(_) => kind == "string",
        Value::Array(_) => kind == "array",
        Value::Object(_) => kind == "object",
    }
}

/// A whole number that is spelled with a fraction or an exponent, as an integer.
fn whole(number: &Number) -> Option<Value> {
    let float = number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0)?;
    let digits = format!("{float:.0}");
    let digits = if digits == "-0" { "0" } else { digits.as_str() };
    let integer = digits.parse::<i64>().map(Value::from);
    integer.or_else(|_| digits.parse::<u64>().map(Value::from)).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["count"],
            "properties": {
                "count": { "type": "integer" },
                "rate": { "type": "number" },
                "word": { "type": "string" },
                "flag": { "type": ["boolean", "null"] },
                "list": { "type": "array", "items": { "type": "integer" } },
                "either": { "anyOf": [{ "type": "string" }, { "type": "integer" }] },
                "maybe": { "anyOf": [{ "$ref": "#/$defs/Point" }, { "type": "null" }] }
            },
            "$defs": { "Point": { "type": "object", "properties": {
                "x": { "type": "integer" }, "next": { "$ref": "#/%24defs/Point" } } } }
        })
    }

    #[expect(clippy::needless_pass_by_value, reason = "`json!` at the call reads best")]
    fn check(is_lenient: bool, value: Value, expected: Value) {
        let mut repaired = value.clone();
        let has_changed = repair(&schema(), &mut repaired, is_lenient);
        // As text, because `5` and `5.0` are to be told apart.
        let [before, after, expected] = [&value, &repaired, &expected].map(Value::to_string);
        assert_eq!(after, expected, "{value}");
        assert_eq!(has_changed, before != expected, "{value}");
    }

    #[test]
    fn whole_numbers_are_integers_and_null_is_absent() {
        check(false, json!({ "count": 5.0 }), json!({ "count": 5 }));
        check(false, json!({ "count": -1e3 }), json!({ "count": -1000 }));
        check(false, json!({ "count": 5.5 }), json!({ "count": 5.5 }));
        check(false, json!({ "count": 1e300 }), json!({ "count": 1e300 }));
        check(false, json!({ "rate": 5.0 }), json!({ "rate": 5.0 }));
        check(false, json!({ "list": [1.0, 2] }), json!({ "list": [1, 2] }));
        check(false, json!({ "word": null, "rate": null }), json!({}));
        check(
            false,
            json!({ "count": null, "flag": null }),
            json!({ "count": null, "flag": null }),
        );
        let deep = json!({ "maybe": { "x": 1.0, "next": { "x": 2.0 } } });
        check(false, deep, json!({ "maybe": { "x": 1, "next": { "x": 2 } } }));
    }

    #[test]
    fn null_is_absent_where_definitions_of_others_do_not_allow_it() {
        fn check(arguments: &str, expected: &str) {
            let schema = json!({
                "type": "object",
                "required": ["must"],
                "properties": {
                    "must": { "type": "string" },
                    "word": { "type": "string" },
                    "choice": { "enum": ["a", "b"] },
                    "maybe": { "type": ["string", "null"] },
                    "any": {},
                    "large": { "type": "integer" }
                }
            });
            let arguments = Json::from_text(arguments.to_owned()).unwrap();
            assert_eq!(Absent::of(&schema).without_null(arguments).as_str(), expected);
        }
        check(r#"{"word":null,"choice":null}"#, "{}");
        let kept = r#"{ "must":null, "maybe":null,"any":null, "other":null,"word":"null"}"#;
        check(kept, &kept.replace(' ', ""));
        check(
            r#"{"large":123456789012345678901234567890,"word":null}"#,
            r#"{"large":123456789012345678901234567890}"#,
        );
        check(r#"{ "word": "x" }"#, r#"{ "word": "x" }"#);
        check("[null]", "[null]");
    }

    #[test]
    fn json_in_strings_is_read_on_request() {
        let text = json!({ "count": "5", "flag": "true", "list": "[1, 2.0]", "rate": " 1.5 " });
        check(false, text.clone(), text.clone());
        check(true, text, json!({ "count": 5, "flag": true, "list": [1, 2], "rate": 1.5 }));
        check(true, json!({ "maybe": "{\"x\": 1}" }), json!({ "maybe": { "x": 1 } }));
        check(true, json!({ "count": "five" }), json!({ "count": "five" }));
        check(true, json!({ "count": "5.5" }), json!({ "count": "5.5" }));
        check(true, json!({ "word": "5", "either": "5" }), json!({ "word": "5", "either": "5" }));
        check(true, json!({ "count": 1, "other": 2 }), json!({ "count": 1 }));
        check(false, json!({ "count": 1, "other": 2 }), json!({ "count": 1, "other": 2 }));
    }

    #[test]
    fn a_schema_that_refers_to_itself_comes_to_an_end() {
        let schema = json!({ "anyOf": [{ "$ref": "#" }, { "$ref": "#" }] });
        assert!(!repair(&schema, &mut json!({ "a": 1.0 }), true));
    }
}
