//! From the schemas of a document to those of tools: JSON Schema 2020-12, with everything that they
//! refer to in `$defs`.
//!
//! Arguments keep what the document demands. Of answers, documents promise more than APIs keep, so
//! only types and members stay, and anything may be null.

use std::collections::{BTreeMap, VecDeque};

use bowline_schema::Schema;
use serde_json::{Map, Value, json};

use super::document::{Document, reference};

type Members = Map<String, Value>;

/// The most schemas within the schema of one tool. What is beyond may be anything.
const MOST: usize = 2_000;

/// Keywords that are the same everywhere.
const SAME: [&str; 6] =
    ["type", "title", "description", "format", "contentEncoding", "contentMediaType"];

/// Keywords that demand something of a value.
const DEMANDS: [&str; 18] = [
    "enum",
    "const",
    "default",
    "examples",
    "deprecated",
    "multipleOf",
    "maximum",
    "minimum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "maxItems",
    "minItems",
    "uniqueItems",
    "maxProperties",
    "minProperties",
    "dependentRequired",
];

/// Rewrites schemas of one document for one tool.
pub(super) struct Schemas<'a> {
    document: &'a Document,
    is_answer: bool,
    /// The names of definitions, by references.
    names: BTreeMap<&'a str, String>,
    waiting: VecDeque<&'a str>,
    left: usize,
}

impl<'a> Schemas<'a> {
    pub(super) fn of_arguments(document: &'a Document) -> Self {
        let (names, waiting) = (BTreeMap::new(), VecDeque::new());
        Self { document, is_answer: false, names, waiting, left: MOST }
    }

    pub(super) fn of_answers(document: &'a Document) -> Self {
        Self { is_answer: true, ..Self::of_arguments(document) }
    }

    /// How many schemas there are.
    pub(super) fn count(&self) -> usize {
        MOST - self.left
    }

    /// Rewrites a schema.
    ///
    /// # Errors
    /// When it is not a schema, or refers to nothing.
    pub(super) fn convert(&mut self, schema: &'a Value) -> Result<Value, String> {
        let members = match schema {
            Value::Bool(_) => return Ok(schema.clone()),
            Value::Object(members) => members,
            _ => return Err("a schema is not an object".to_owned()),
        };
        if self.left == 0 {
            return Ok(json!({}));
        }
        self.left -= 1;
        let mut out = Members::new();
        if let Some(reference) = reference(schema) {
            // Also makes sure that it leads somewhere.
            self.document.follow(schema)?;
            let name = self.name_of(reference);
            out.insert("$ref".to_owned(), format!("#/$defs/{name}").into());
            if self.document.is_old {
                out.extend(
                    members.get("description").map(|it| ("description".to_owned(), it.clone())),
                );
                return Ok(Value::Object(out));
            }
        }
        for (key, value) in members {
            self.keyword(key, value, &mut out)?;
        }
        self.tidy(members, &mut out);
        Ok(Value::Object(out))
    }

    /// The definitions that the schemas so far refer to.
    ///
    /// # Errors
    /// As [`convert`](Self::convert).
    pub(super) fn definitions(&mut self) -> Result<Members, String> {
        let mut definitions = Members::new();
        while let Some(reference) = self.waiting.pop_front() {
            let converted = self.document.at(reference).and_then(|it| self.convert(it));
            let converted = converted.map_err(|why| format!("{reference}: {why}"))?;
            definitions.insert(self.names[reference].clone(), converted);
        }
        Ok(definitions)
    }

    fn name_of(&mut self, reference: &'a str) -> String {
        if let Some(name) = self.names.get(reference) {
            return name.clone();
        }
        let last = reference.rsplit('/').next().unwrap_or_default();
        let fits = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
        let stem: String =
            last.chars().map(|it| if fits(it) { it } else { '_' }).take(80).collect();
        let is_taken = |name: &String| self.names.values().any(|it| it == name);
        let mut name = stem.clone();
        if is_taken(&name) {
            name = format!("{stem}-{}", self.names.len());
        }
        self.names.insert(reference, name.clone());
        self.waiting.push_back(reference);
        name
    }

    fn keyword(&mut self, key: &str, value: &'a Value, out: &mut Members) -> Result<(), String> {
        let converted = match (key, value) {
            ("$dynamicRef" | "$recursiveRef", _) => {
                return Err(format!("{key} is not supported"));
            }
            ("properties", Value::Object(all)) => self.properties(all)?,
            ("items" | "additionalProperties", Value::Object(_)) => self.convert(value)?,
            ("allOf" | "anyOf", Value::Array(all)) => self.list(all)?,
            // Loosened, several fit.
            ("oneOf", Value::Array(all)) if self.is_answer => {
                let list = self.list(all)?;
                out.entry("anyOf").or_insert(list);
                return Ok(());
            }
            (key, value) if SAME.contains(&key) => value.clone(),
            _ if self.is_answer => return Ok(()),
            ("oneOf" | "prefixItems", Value::Array(all)) => {
                let list = self.list(all)?;
                // What was cut fits all values.
                let key = if key == "oneOf" && self.left == 0 { "anyOf" } else { key };
                out.entry(key).or_insert(list);
                return Ok(());
            }
            ("items" | "additionalProperties" | "unevaluatedProperties", Value::Bool(_)) => {
                value.clone()
            }
            ("not" | "if" | "then" | "else" | "contains" | "propertyNames", _) => {
                let converted = self.convert(value)?;
                if self.left == 0 {
                    return Ok(());
                }
                converted
            }
            ("pattern", Value::String(_)) => match Schema::compile(&json!({ "pattern": value })) {
                Ok(_) => value.clone(),
                // One that takes unbounded time: the API checks it.
                Err(_) => return Ok(()),
            },
            ("example", _) => {
                out.entry("examples").or_insert_with(|| json!([value]));
                return Ok(());
            }
            ("required", Value::Array(_)) => value.clone(),
            (key, value) if DEMANDS.contains(&key) => value.clone(),
            _ => return Ok(()),
        };
        out.insert(key.to_owned(), converted);
        Ok(())
    }

    /// The members of an object; of arguments those that can be written.
    fn properties(&mut self, all: &'a Members) -> Result<Value, String> {
        let mut out = Members::new();
        for (name, schema) in all {
            if self.is_answer || !is_read_only(schema) {
                out.insert(name.clone(), self.convert(schema)?);
            }
        }
        Ok(Value::Object(out))
    }

    fn list(&mut self, all: &'a [Value]) -> Result<Value, String> {
        let all: Result<Vec<_>, _> = all.iter().map(|it| self.convert(it)).collect();
        Ok(Value::Array(all?))
    }

    /// Says in the words of JSON Schema what 3.0 has words of its own for.
    fn tidy(&self, members: &Members, out: &mut Members) {
        let of_members = members.get("properties").and_then(Value::as_object);
        if let (Some(all), Some(Value::Array(names))) = (of_members, out.get_mut("required")) {
            let is_gone =
                |it: &Value| it.as_str().and_then(|it| all.get(it)).is_some_and(is_read_only);
            names.retain(|it| !is_gone(it));
        }
        for (bound, limit) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
            match out.get(bound) {
                Some(Value::Bool(true)) => {
                    out.remove(bound);
                    let limit = out.remove(limit);
                    out.extend(limit.map(|it| (bound.to_owned(), it)));
                }
                Some(Value::Bool(false)) => drop(out.remove(bound)),
                _ => {}
            }
        }
        let says_null = self.document.is_old && members.get("nullable") == Some(&Value::Bool(true));
        // What answers are made of may be null already.
        let may_be_null = if self.is_answer { out.contains_key("type") } else { says_null };
        if may_be_null {
            allow_null(out);
        }
        if members.contains_key("patternProperties") {
            // They are not kept, so what else there may be is open.
            out.remove("additionalProperties");
        }
    }
}

fn is_read_only(schema: &Value) -> bool {
    schema.get("readOnly") == Some(&Value::Bool(true))
}

fn allow_null(out: &mut Members) {
    if let Some(Value::Array(words)) = out.get_mut("enum")
        && !words.contains(&Value::Null)
    {
        words.push(Value::Null);
    }
    match out.get_mut("type") {
        Some(kind @ Value::String(_)) if kind != "null" => *kind = json!([kind.take(), "null"]),
        Some(Value::Array(kinds)) if !kinds.contains(&"null".into()) => kinds.push("null".into()),
        Some(_) => {}
        None => {
            let applies = ["$ref", "allOf", "anyOf", "oneOf"];
            if applies.iter().any(|it| out.contains_key(*it)) {
                let whole = Value::Object(std::mem::take(out));
                out.insert("anyOf".to_owned(), json!([whole, { "type": "null" }]));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A schema for arguments and for answers, with its definitions.
    fn check(version: &str, schema: &Value, arguments: &Value, answers: &Value) {
        let document = json!({
            "openapi": version,
            "components": { "schemas": {
                "Pet": { "type": "object", "required": ["id", "name"], "properties": {
                    "id": { "type": "integer", "readOnly": true },
                    "name": { "type": "string" },
                    "friends": { "type": "array", "items": { "$ref": "#/components/schemas/Pet" } },
                }},
                "Word": { "type": "string" },
            }},
        });
        let document = Document::parse(document.to_string().as_bytes()).unwrap();
        for (mut schemas, expected) in [
            (Schemas::of_arguments(&document), arguments),
            (Schemas::of_answers(&document), answers),
        ] {
            let mut converted = schemas.convert(schema).unwrap();
            let definitions = schemas.definitions().unwrap();
            if !definitions.is_empty() {
                converted["$defs"] = definitions.into();
            }
            assert_eq!(converted, *expected, "{schema}");
            assert!(Schema::compile(&converted).is_ok());
        }
    }

    #[test]
    fn schemas_of_3_0_become_json_schema() {
        for (schema, arguments, answers) in [
            (
                json!({ "type": "string", "nullable": true, "enum": ["a"], "x-y": 1, "xml": {} }),
                json!({ "type": ["string", "null"], "enum": ["a", null] }),
                json!({ "type": ["string", "null"] }),
            ),
            (
                json!({ "type": "integer", "minimum": 1, "exclusiveMinimum": true, "maximum": 9,
                    "exclusiveMaximum": false, "example": 5 }),
                json!({ "type": "integer", "exclusiveMinimum": 1, "maximum": 9, "examples": [5] }),
                json!({ "type": ["integer", "null"] }),
            ),
            (
                json!({ "nullable": true, "allOf": [{ "$ref": "#/components/schemas/Word" }] }),
                json!({
                    "anyOf": [{ "allOf": [{ "$ref": "#/$defs/Word" }] }, { "type": "null" }],
                    "$defs": { "Word": { "type": "string" } }
                }),
                json!({
                    "allOf": [{ "$ref": "#/$defs/Word" }],
                    "$defs": { "Word": { "type": ["string", "null"] } }
                }),
            ),
            (
                json!({ "type": "string", "pattern": "^(?!a)" }),
                json!({ "type": "string" }),
                json!({ "type": ["string", "null"] }),
            ),
        ] {
            check("3.0.3", &schema, &arguments, &answers);
        }
    }

    #[test]
    fn recursion_stays_within_definitions_and_what_is_read_only_is_not_written() {
        let pet = |members: Value, required: bool, kind: Value| {
            let mut pet = json!({ "type": kind, "properties": members });
            if required {
                pet["required"] = json!(["name"]);
            }
            pet
        };
        let friends = |kind: Value| json!({ "type": kind, "items": { "$ref": "#/$defs/Pet" } });
        let nullable = |kind: &str| json!([kind, "null"]);
        check(
            "3.1.0",
            &json!({ "$ref": "#/components/schemas/Pet", "description": "A pet" }),
            &json!({
                "$ref": "#/$defs/Pet",
                "description": "A pet",
                "$defs": { "Pet": pet(
                    json!({ "name": { "type": "string" }, "friends": friends("array".into()) }),
                    true,
                    "object".into(),
                ) }
            }),
            &json!({
                "$ref": "#/$defs/Pet",
                "description": "A pet",
                "$defs": { "Pet": pet(
                    json!({
                        "id": { "type": nullable("integer") },
                        "name": { "type": nullable("string") },
                        "friends": friends(nullable("array")),
                    }),
                    false,
                    nullable("object"),
                ) }
            }),
        );
    }

    #[test]
    fn what_is_too_large_may_be_anything() {
        let all: Vec<Value> = (0..10_000).map(|_| json!({ "type": "string" })).collect();
        let root = json!({ "openapi": "3.1.0", "all": { "anyOf": all } });
        let document = Document::parse(root.to_string().as_bytes()).unwrap();
        let mut schemas = Schemas::of_arguments(&document);
        let converted = schemas.convert(&root["all"]).unwrap();
        assert_eq!(schemas.count(), MOST);
        assert_eq!(converted["anyOf"][MOST], json!({}));
    }
}
