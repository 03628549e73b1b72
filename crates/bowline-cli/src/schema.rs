//! JSON Schema as a form sees it: properties, their types and choices. The only place in the
//! program that follows `$ref` and merges `allOf`. It describes; `bowline_schema` validates.

mod format;
mod kinds;

use std::sync::Arc;

use bowline_schema::Schema;
use serde_json::{Map, Value, json};

pub(crate) use self::kinds::Kinds;

/// Schemas merged into one, and unions expanded for one question: 64. What refers to itself ends
/// there.
const MOST_PARTS: usize = 64;

/// A schema with its references followed and its `allOf` merged in.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct View {
    /// The document that references point into.
    root: Arc<Value>,
    members: Map<String, Value>,
}

/// A property of an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Property {
    pub(crate) name: String,
    pub(crate) view: View,
    pub(crate) is_required: bool,
}

/// A value that a schema lists.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Choice {
    pub(crate) value: Value,
    pub(crate) label: Option<String>,
}

impl View {
    pub(crate) fn new(root: &Value) -> Self {
        let members = flattened(root, root, &mut MOST_PARTS.clone());
        Self { root: Arc::new(root.clone()), members }
    }

    fn at(&self, schema: &Value) -> Self {
        let members = flattened(&self.root, schema, &mut MOST_PARTS.clone());
        Self { root: Arc::clone(&self.root), members }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.members.get(name)
    }

    /// A member that is a string.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str)
    }

    /// What it is for.
    pub(crate) fn about(&self) -> Option<&str> {
        self.text("description").or_else(|| self.text("title"))
    }

    /// The members of `anyOf` and `oneOf`, each with everything that holds for all of them.
    pub(crate) fn variants(&self) -> Vec<Self> {
        let all = ["anyOf", "oneOf"].iter().filter_map(|name| self.get(name)?.as_array());
        let mut base = self.members.clone();
        for name in ["anyOf", "oneOf", "title", "description"] {
            base.remove(name);
        }
        let variant = |schema| {
            let mut view = self.at(schema);
            let own = std::mem::replace(&mut view.members, base.clone());
            merge(&mut view.members, own);
            view
        };
        all.flatten().map(variant).collect()
    }

    /// Itself, or its variants, and theirs in turn.
    pub(crate) fn leaves(&self) -> Vec<Self> {
        let mut leaves = Vec::new();
        let mut waiting = vec![self.clone()];
        let mut expanded = 0;
        while let Some(view) = waiting.pop() {
            if view.get("anyOf").or_else(|| view.get("oneOf")).is_none() {
                leaves.push(view);
            } else if expanded < MOST_PARTS {
                expanded += 1;
                waiting.extend(view.variants().into_iter().rev());
            }
        }
        leaves
    }

    /// The types that a value can have.
    pub(crate) fn kinds(&self) -> Kinds {
        let leaves = self.leaves();
        if leaves.is_empty() {
            return Kinds::ANY;
        }
        leaves.iter().fold(Kinds::NONE, |all, leaf| {
            all.union(match (leaf.listed(), leaf.get("type")) {
                (Some(values), _) => values.iter().map(Kinds::of).fold(Kinds::NONE, Kinds::union),
                (None, Some(named)) => Kinds::named(named),
                (None, None) => Kinds::ANY,
            })
        })
    }

    /// The values of `enum` or `const`.
    fn listed(&self) -> Option<&[Value]> {
        let values = self.get("enum").and_then(|values| values.as_array().map(Vec::as_slice));
        values.or_else(|| self.get("const").map(std::slice::from_ref))
    }

    /// The values that are allowed, where all of them are listed.
    pub(crate) fn choices(&self) -> Option<Vec<Choice>> {
        let mut all = Vec::new();
        for leaf in self.leaves() {
            let Some(values) = leaf.listed() else {
                if leaf.kinds() != Kinds::NULL {
                    return None;
                }
                all.push(Choice { value: Value::Null, label: None });
                continue;
            };
            // Elicitation before 2025-11-25 has `enumNames`; later revisions title each constant.
            let names = leaf.get("enumNames").and_then(Value::as_array);
            let own = leaf.about().filter(|_| leaf != *self && values.len() == 1);
            all.extend(values.iter().enumerate().map(|(index, value)| {
                let name = names.and_then(|names| names.get(index)?.as_str());
                Choice { value: value.clone(), label: name.or(own).map(str::to_owned) }
            }));
        }
        all.iter().any(|choice| !choice.value.is_null()).then_some(all)
    }

    /// Values that can be completed.
    pub(crate) fn suggestions(&self) -> Vec<String> {
        match self.choices() {
            Some(choices) => choices.iter().map(|choice| unquoted(&choice.value)).collect(),
            None if self.kinds() == Kinds::BOOLEAN => vec!["true".to_owned(), "false".to_owned()],
            None => Vec::new(),
        }
    }

    /// The items of an array.
    pub(crate) fn items(&self) -> Option<Self> {
        self.leaves().iter().find_map(|leaf| Some(leaf.at(leaf.get("items")?)))
    }

    /// The properties of an object without those of its variants.
    pub(crate) fn own_properties(&self) -> Vec<Property> {
        let required = self.get("required").and_then(Value::as_array);
        let properties = self.get("properties").and_then(Value::as_object);
        let property = |(name, schema): (&String, &Value)| Property {
            name: name.clone(),
            view: self.at(schema),
            is_required: required.is_some_and(|all| all.iter().any(|it| it == name)),
        };
        properties.into_iter().flatten().map(property).collect()
    }

    /// The properties of an object, including those of its variants.
    pub(crate) fn properties(&self) -> Vec<Property> {
        let mut all = self.own_properties();
        let leaves = self.leaves();
        let is_only = leaves.iter().filter(|it| it.kinds() != Kinds::NULL).count() == 1;
        for property in leaves.iter().flat_map(Self::own_properties) {
            if !all.iter().any(|known| known.name == property.name) {
                // One of several forms may be another; beside null, there is only one.
                let is_required = property.is_required && is_only;
                all.push(Property { is_required, ..property });
            }
        }
        all
    }

    /// A property, listed or covered by a rule; `None` if it is unknown.
    pub(crate) fn property(&self, name: &str) -> Option<Self> {
        let listed = self.properties().into_iter().find(|property| property.name == name);
        listed.map(|property| property.view).or_else(|| {
            self.leaves().iter().find_map(|leaf| match leaf.get("additionalProperties") {
                Some(rule @ (Value::Bool(true) | Value::Object(_))) => Some(leaf.at(rule)),
                _ => leaf.get("patternProperties").map(|_| leaf.at(&Value::Bool(true))),
            })
        })
    }

    /// Whether the schema lists properties at all. One that does not accepts any.
    pub(crate) fn lists_properties(&self) -> bool {
        self.leaves().iter().any(|leaf| leaf.get("properties").is_some())
    }

    /// Checks a value. A schema that does not compile accepts everything: the server will judge.
    ///
    /// # Errors
    /// What is wrong with the value.
    pub(crate) fn check(&self, name: &str, value: &Value) -> Result<(), String> {
        let mut schema = self.members.clone();
        for shared in ["$defs", "definitions"] {
            if let Some(definitions) = self.root.get(shared) {
                schema.entry(shared).or_insert_with(|| definitions.clone());
            }
        }
        let Ok(compiled) = Schema::compile(&Value::Object(schema)) else { return Ok(()) };
        compiled.validate(name, value).map_err(|invalid| invalid.to_string())
    }

    /// Checks the format of what a person typed, if it is one of those that questions may have.
    /// Validators treat `format` as a comment.
    ///
    /// # Errors
    /// What the format wants.
    pub(crate) fn check_format(&self, name: &str, value: &Value) -> Result<(), String> {
        let leaves = self.leaves();
        let format = leaves.iter().find_map(|leaf| leaf.text("format"));
        let (Some(format), Some(text)) = (format, value.as_str()) else { return Ok(()) };
        let problem = format::problem(format, text);
        problem.map_or(Ok(()), |wanted| Err(format!("{name}: expected {wanted}, got {text:?}")))
    }
}

/// A value for people: a string without its quotes.
pub(crate) fn unquoted(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The members of a schema, of what its `$ref` points to, and of its `allOf`. A reference that
/// leads nowhere is ignored.
fn flattened(root: &Value, schema: &Value, parts: &mut usize) -> Map<String, Value> {
    let (Some(members), Some(left)) = (schema.as_object(), parts.checked_sub(1)) else {
        return Map::new();
    };
    *parts = left;
    let mut whole = members.clone();
    let reference = whole.remove("$ref");
    let target = reference.as_ref().and_then(|it| bowline_schema::target(root, it.as_str()?));
    let all_of = whole.remove("allOf");
    let all_of = all_of.as_ref().and_then(Value::as_array).into_iter().flatten();
    for part in target.into_iter().chain(all_of) {
        merge(&mut whole, flattened(root, part, parts));
    }
    whole
}

/// Merges two schemas that both hold. Where they cannot be merged, the first one stands.
fn merge(into: &mut Map<String, Value>, from: Map<String, Value>) {
    for (name, value) in from {
        match (into.get_mut(&name), value) {
            (None, value) => drop(into.insert(name, value)),
            (Some(Value::Object(known)), Value::Object(more)) if name == "properties" => {
                for (name, schema) in more {
                    let both = match known.remove(&name) {
                        Some(first) if first == schema => first,
                        Some(first) => json!({ "allOf": [first, schema] }),
                        None => schema,
                    };
                    known.insert(name, both);
                }
            }
            (Some(Value::Array(known)), Value::Array(more)) if name == "required" => {
                known.extend(more);
            }
            (Some(known), value) if name == "type" => {
                *known = Kinds::named(known).common(Kinds::named(&value)).names();
            }
            (Some(_), _) => {}
        }
    }
}

/// Undoes percent-encoding.
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
    fn what_an_object_requires_is_required_beside_null() {
        let point =
            json!({ "type": "object", "required": ["x"], "properties": { "x": {}, "y": {} } });
        let other = json!({ "type": "object", "properties": { "z": {} } });
        for (schema, expected) in [
            (json!({ "anyOf": [point, { "type": "null" }] }), "x"),
            (json!({ "oneOf": [{ "type": "null" }, point] }), "x"),
            (point.clone(), "x"),
            (json!({ "anyOf": [point, other] }), ""),
        ] {
            let all = View::new(&schema).properties();
            let required: Vec<_> =
                all.iter().filter(|it| it.is_required).map(|it| &*it.name).collect();
            assert_eq!(required.join(" "), expected, "{schema}");
        }
    }

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
                (Kinds::STRING, "s"),
                (Kinds::INTEGER, "i"),
                (Kinds::NUMBER, "n"),
                (Kinds::BOOLEAN, "b"),
                (Kinds::NULL, "0"),
                (Kinds::ARRAY, "a"),
                (Kinds::OBJECT, "o"),
            ];
            let found: String =
                all.iter().filter(|(kind, _)| kinds.has(*kind)).map(|(_, it)| *it).collect();
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
        let properties = view.properties();
        let found: Vec<_> =
            properties.iter().map(|it| (it.name.as_str(), it.is_required)).collect();
        assert_eq!(found, [("a", true), ("b", true), ("c", true)]);
        assert!(view.property("d").is_none());
        let open = json!({ "properties": {}, "additionalProperties": { "type": "string" } });
        assert!(View::new(&open).property("d").unwrap().kinds().has(Kinds::STRING));
    }

    #[test]
    fn what_stands_beside_a_reference_and_in_several_parts_is_merged() {
        let schema = json!({
            "$defs": { "Size": { "enum": ["s", "l"], "description": "any size" } },
            "properties": { "size": { "$ref": "#/$defs/Size", "description": "yours" } },
            "allOf": [
                { "properties": { "n": { "type": "number" } } },
                { "properties": { "n": { "type": "integer", "minimum": 1 } } }
            ]
        });
        let view = View::new(&schema);
        let size = view.property("size").unwrap();
        assert_eq!(size.about(), Some("yours"));
        assert_eq!(size.suggestions(), ["s", "l"]);
        let n = view.property("n").unwrap();
        assert_eq!((n.kinds(), n.get("minimum")), (Kinds::INTEGER, Some(&json!(1))));
    }

    #[test]
    fn a_schema_that_grows_without_end_is_cut() {
        let many = vec![json!({ "$ref": "#" }); 50];
        for name in ["allOf", "anyOf", "oneOf"] {
            let schema = json!({ name: many, "properties": { "a": { "$ref": "#" } } });
            let view = View::new(&schema);
            assert_eq!(view.kinds(), Kinds::ANY, "{name}");
            assert_eq!(view.properties().len(), 1, "{name}");
        }
    }
}
