//! JSON Schema as a form sees it: fields, their types, what stands behind references and
//! combinations. It reads, it does not judge; `bowline_schema` judges.

use serde_json::Value;

/// How often a reference may lead on to another.
const HOPS: usize = 16;

/// A schema, and the document that its references point into.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    root: &'a Value,
    pub(crate) schema: &'a Value,
}

/// A property of an object.
#[derive(Debug, Clone)]
pub(crate) struct Field<'a> {
    pub(crate) name: &'a str,
    pub(crate) view: View<'a>,
    pub(crate) is_required: bool,
}

/// What a value can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Kinds {
    pub(crate) string: bool,
    pub(crate) integer: bool,
    pub(crate) number: bool,
    pub(crate) boolean: bool,
    pub(crate) null: bool,
    pub(crate) array: bool,
    pub(crate) object: bool,
}

impl Kinds {
    const ANY: Self = Self {
        string: true,
        integer: true,
        number: true,
        boolean: true,
        null: true,
        array: true,
        object: true,
    };

    fn union(self, other: Self) -> Self {
        self.zip(other, |one, two| one || two)
    }

    fn common(self, other: Self) -> Self {
        let mut both = self.zip(other, |one, two| one && two);
        // Every integer is a number.
        both.integer |= self.integer && other.number || self.number && other.integer;
        both
    }

    fn zip(self, other: Self, with: impl Fn(bool, bool) -> bool) -> Self {
        Self {
            string: with(self.string, other.string),
            integer: with(self.integer, other.integer),
            number: with(self.number, other.number),
            boolean: with(self.boolean, other.boolean),
            null: with(self.null, other.null),
            array: with(self.array, other.array),
            object: with(self.object, other.object),
        }
    }

    fn named(name: &str) -> Self {
        let none = Self::default();
        match name {
            "string" => Self { string: true, ..none },
            "integer" => Self { integer: true, ..none },
            "number" => Self { number: true, integer: true, ..none },
            "boolean" => Self { boolean: true, ..none },
            "null" => Self { null: true, ..none },
            "array" => Self { array: true, ..none },
            "object" => Self { object: true, ..none },
            _ => none,
        }
    }

    fn of(value: &Value) -> Self {
        Self::named(match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(number) if number.is_f64() => "number",
            Value::Number(_) => "integer",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        })
    }

    /// Whether anything goes.
    pub(crate) fn is_any(self) -> bool {
        self == Self::ANY
    }
}

impl<'a> View<'a> {
    pub(crate) fn new(root: &'a Value) -> Self {
        Self { root, schema: root }.resolved()
    }

    fn at(self, schema: &'a Value) -> Self {
        Self { root: self.root, schema }.resolved()
    }

    /// Follows a reference, if this is nothing else. What leads nowhere stays as it is.
    fn resolved(self) -> Self {
        let mut schema = self.schema;
        for _ in 0..HOPS {
            let Some(reference) = schema.get("$ref").and_then(Value::as_str) else { break };
            let Some(found) = find(self.root, reference) else { break };
            schema = found;
        }
        Self { root: self.root, schema }
    }

    /// A member, as text.
    pub(crate) fn text(self, name: &str) -> Option<&'a str> {
        self.schema.get(name).and_then(Value::as_str)
    }

    /// The parts of which one or any must fit.
    pub(crate) fn choices(self) -> Vec<Self> {
        let parts = ["anyOf", "oneOf"].iter().filter_map(|name| self.schema.get(name)?.as_array());
        parts.flatten().map(|part| self.at(part)).collect()
    }

    /// The parts of which all must fit.
    fn parts(self) -> impl Iterator<Item = Self> {
        let parts = self.schema.get("allOf").and_then(Value::as_array);
        parts.into_iter().flatten().map(move |part| self.at(part))
    }

    /// What a value can be.
    pub(crate) fn kinds(self) -> Kinds {
        self.kinds_within(HOPS)
    }

    fn kinds_within(self, depth: usize) -> Kinds {
        if depth == 0 {
            return Kinds::ANY;
        }
        let mut kinds = match self.schema.get("type") {
            Some(Value::String(name)) => Kinds::named(name),
            Some(Value::Array(names)) => names
                .iter()
                .filter_map(Value::as_str)
                .fold(Kinds::default(), |all, name| all.union(Kinds::named(name))),
            _ => Kinds::ANY,
        };
        if let Some(values) = self.values() {
            let of_values =
                values.iter().fold(Kinds::default(), |all, it| all.union(Kinds::of(it)));
            kinds = kinds.common(of_values);
        }
        let choices = self.choices();
        if !choices.is_empty() {
            let any = choices.into_iter().map(|choice| choice.kinds_within(depth - 1));
            kinds = kinds.common(any.fold(Kinds::default(), Kinds::union));
        }
        self.parts().fold(kinds, |all, part| all.common(part.kinds_within(depth - 1)))
    }

    /// The values that are allowed, where they are listed: an enum, a constant, or a choice of
    /// constants.
    pub(crate) fn values(self) -> Option<Vec<&'a Value>> {
        if let Some(values) = self.schema.get("enum").and_then(Value::as_array) {
            return Some(values.iter().collect());
        }
        if let Some(value) = self.schema.get("const") {
            return Some(vec![value]);
        }
        let choices = self.choices();
        if choices.is_empty() {
            return None;
        }
        let mut all = Vec::new();
        for choice in choices {
            // `null` beside an enum is a value like the others.
            match choice.schema.get("const").or_else(|| choice.schema.get("enum")) {
                Some(Value::Array(values)) if choice.schema.get("enum").is_some() => {
                    all.extend(values);
                }
                Some(value) => all.push(value),
                None if choice.text("type") == Some("null") => all.push(&Value::Null),
                None => return None,
            }
        }
        (!all.is_empty()).then_some(all)
    }

    /// What the items of an array must be.
    pub(crate) fn items(self) -> Option<Self> {
        let of = |view: Self| view.schema.get("items").map(|items| view.at(items));
        of(self).or_else(|| self.parts().chain(self.choices()).find_map(of))
    }

    /// The properties of an object, those of all its parts and choices included.
    pub(crate) fn fields(self) -> Vec<Field<'a>> {
        let mut fields = Vec::new();
        self.add_fields(&mut fields, true, HOPS);
        fields
    }

    fn add_fields(self, fields: &mut Vec<Field<'a>>, is_whole: bool, depth: usize) {
        let required = self.schema.get("required").and_then(Value::as_array);
        let is_required = |name: &str| {
            is_whole && required.is_some_and(|all| all.iter().any(|it| it.as_str() == Some(name)))
        };
        let own = self.schema.get("properties").and_then(Value::as_object);
        for (name, schema) in own.into_iter().flatten() {
            match fields.iter_mut().find(|field| field.name == name) {
                Some(field) => field.is_required |= is_required(name),
                None => fields.push(Field {
                    name,
                    view: self.at(schema),
                    is_required: is_required(name),
                }),
            }
        }
        if depth > 0 {
            for part in self.parts() {
                part.add_fields(fields, is_whole, depth - 1);
            }
            for choice in self.choices() {
                choice.add_fields(fields, false, depth - 1);
            }
        }
        // A field may be required here and described in another part.
        for field in fields.iter_mut() {
            field.is_required |= is_required(field.name);
        }
    }

    /// What a property is, whether it is listed or falls under a rule; `None` if it is unknown.
    pub(crate) fn property(self, name: &str) -> Option<Self> {
        let listed = self.fields().into_iter().find(|field| field.name == name);
        if let Some(field) = listed {
            return Some(field.view);
        }
        match self.schema.get("additionalProperties") {
            Some(Value::Bool(true)) => Some(self.at(&Value::Bool(true))),
            Some(schema @ Value::Object(_)) => Some(self.at(schema)),
            _ if self.schema.get("patternProperties").is_some() => {
                Some(self.at(&Value::Bool(true)))
            }
            _ => self.choices().into_iter().chain(self.parts()).find_map(|it| it.property(name)),
        }
    }

    /// Whether the schema lists properties at all. One that does not takes any.
    pub(crate) fn lists_properties(self) -> bool {
        self.schema.get("properties").is_some()
            || self.parts().chain(self.choices()).any(Self::lists_properties)
    }
}

/// What a reference within a document points to.
fn find<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = reference.strip_prefix('#')?;
    root.pointer(&decoded(pointer))
}

/// Percent-encoding undone.
pub(crate) fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = tail.get(..2).filter(|_| *first == b'%');
        let byte = hex
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kinds_see_through_references_and_combinations() {
        let defs = json!({ "S": { "type": "string" }, "Loop": { "$ref": "#/$defs/Loop" } });
        for (schema, expected) in [
            (json!({ "type": "string" }), "s"),
            (json!({ "type": ["integer", "null"] }), "i0"),
            (json!({ "$ref": "#/$defs/S" }), "s"),
            (json!({ "anyOf": [{ "$ref": "#/$defs/S" }, { "type": "null" }] }), "s0"),
            (json!({ "allOf": [{ "type": "number" }, { "type": "integer" }] }), "i"),
            (json!({ "enum": ["a", 1] }), "si"),
            (json!({ "oneOf": [{ "const": "a" }, { "const": "b" }] }), "s"),
            (json!({ "$ref": "#/$defs/Loop" }), "sinb0ao"),
            (json!(true), "sinb0ao"),
        ] {
            let root = json!({ "$defs": defs, "properties": { "x": schema } });
            let kinds = View::new(&root).property("x").unwrap().kinds();
            let all = [
                (kinds.string, "s"),
                (kinds.integer, "i"),
                (kinds.number, "n"),
                (kinds.boolean, "b"),
                (kinds.null, "0"),
                (kinds.array, "a"),
                (kinds.object, "o"),
            ];
            let found: String = all.iter().filter(|(is, _)| *is).map(|(_, it)| *it).collect();
            assert_eq!(found, expected, "{schema}");
        }
    }

    #[test]
    fn fields_are_gathered_from_all_parts() {
        let schema = json!({
            "properties": { "a": {} },
            "required": ["a", "b"],
            "allOf": [{ "properties": { "b": {} } }],
            "oneOf": [{ "properties": { "c": {} }, "required": ["c"] }]
        });
        let view = View::new(&schema);
        let found: Vec<_> = view.fields().iter().map(|it| (it.name, it.is_required)).collect();
        assert_eq!(found, [("a", true), ("b", true), ("c", false)]);
        assert!(view.property("d").is_none());
        let open = json!({ "properties": {}, "additionalProperties": { "type": "string" } });
        assert!(View::new(&open).property("d").unwrap().kinds().string);
    }
}
