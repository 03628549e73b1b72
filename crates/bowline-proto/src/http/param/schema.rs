//! The rules for `x-mcp-header` (2026-07-28, basic/transports/streamable-http, "Schema Extension").

use std::fmt;

use ::http::HeaderName;
use serde_json::{Map, Value};

use super::{Node, ParamHeader, ParamHeaders};
use crate::http::{MCP_PARAM_PREFIX, quote};

const ANNOTATION: &str = "x-mcp-header";

/// Keywords whose values are data, in which nothing is an annotation.
const DATA: [&str; 4] = ["const", "default", "enum", "examples"];

/// Keywords whose members have names of the author's choice.
const NAMED: [&str; 5] =
    ["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];

/// An invalid `x-mcp-header` of a tool's property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnotationError {
    /// The path to the property, joined by dots; empty for the schema itself.
    pub property: String,
    /// What is wrong.
    pub reason: String,
}

impl fmt::Display for AnnotationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.property.as_str() {
            "" => write!(f, "inputSchema: {}", self.reason),
            property => write!(f, "inputSchema: property {}: {}", quote(property), self.reason),
        }
    }
}

impl std::error::Error for AnnotationError {}

pub(super) fn read(schema: &Value) -> Result<ParamHeaders, AnnotationError> {
    let mut reader = Reader::default();
    let root = reader.read(schema)?;
    Ok(ParamHeaders { headers: reader.headers, root })
}

#[derive(Default)]
struct Reader<'s> {
    headers: Vec<ParamHeader>,
    path: Vec<&'s str>,
}

impl<'s> Reader<'s> {
    /// Reads a schema that is reached through `properties` alone.
    fn read(&mut self, schema: &'s Value) -> Result<Node, AnnotationError> {
        let mut node = Node::default();
        let Some(schema) = schema.as_object() else {
            return Ok(node);
        };
        for (keyword, value) in schema {
            match keyword.as_str() {
                ANNOTATION => node.header = Some(self.annotation(schema, value)?),
                "properties" => node.properties = self.properties(value)?,
                keyword if hides_annotation(keyword, value) => {
                    let reason = format!(
                        "{ANNOTATION} is not allowed inside {keyword:?}; expected it inside \
                         \"properties\" only"
                    );
                    return Err(self.error(reason));
                }
                _ => {}
            }
        }
        Ok(node)
    }

    fn properties(&mut self, value: &'s Value) -> Result<Vec<(String, Node)>, AnnotationError> {
        let mut properties = Vec::new();
        for (name, schema) in value.as_object().into_iter().flatten() {
            self.path.push(name);
            let node = self.read(schema)?;
            self.path.pop();
            if node.header.is_some() || !node.properties.is_empty() {
                properties.push((name.clone(), node));
            }
        }
        Ok(properties)
    }

    fn annotation(
        &mut self,
        schema: &Map<String, Value>,
        value: &Value,
    ) -> Result<usize, AnnotationError> {
        if self.path.is_empty() {
            return Err(self.error(format!("{ANNOTATION} must be on a property")));
        }
        let Some(shown) = value.as_str() else {
            return Err(self.error(format!("{ANNOTATION} must be a string")));
        };
        let name = Some(shown)
            .filter(|shown| !shown.is_empty() && shown.bytes().all(is_token))
            .map(|shown| format!("{MCP_PARAM_PREFIX}{shown}"))
            .and_then(|name| name.parse::<HeaderName>().ok())
            .ok_or_else(|| {
                let shown = quote(shown);
                self.error(format!("{ANNOTATION} {shown} is not allowed in the name of a header"))
            })?;
        if self.headers.iter().any(|header| header.name == name) {
            let reason = format!("{ANNOTATION} {shown:?} is repeated (ignoring case)");
            return Err(self.error(reason));
        }
        let kind = schema.get("type");
        if !matches!(kind.and_then(Value::as_str), Some("string" | "integer" | "boolean")) {
            let found = kind.map_or_else(|| "none".to_owned(), |kind| quote(&kind.to_string()));
            let reason =
                format!("{ANNOTATION} needs type string, integer or boolean; found {found}");
            return Err(self.error(reason));
        }
        let shown = format!("{MCP_PARAM_PREFIX}{shown}");
        self.headers.push(ParamHeader { name, shown, argument: self.path.join(".") });
        Ok(self.headers.len() - 1)
    }

    fn error(&self, reason: String) -> AnnotationError {
        AnnotationError { property: self.path.join("."), reason }
    }
}

/// Whether the value of a keyword has an annotation at any depth.
fn hides_annotation(keyword: &str, value: &Value) -> bool {
    if DATA.contains(&keyword) {
        return false;
    }
    match value {
        Value::Object(named) if NAMED.contains(&keyword) => named.values().any(is_annotated),
        value => is_annotated(value),
    }
}

fn is_annotated(schema: &Value) -> bool {
    match schema {
        Value::Array(schemas) => schemas.iter().any(is_annotated),
        Value::Object(schema) => schema
            .iter()
            .any(|(keyword, value)| keyword == ANNOTATION || hides_annotation(keyword, value)),
        _ => false,
    }
}

/// The characters of a header name, `tchar` in RFC 9110.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(properties: &Value, expected: Result<&[&str], &str>) {
        check_schema(&json!({"type": "object", "properties": properties}), expected);
    }

    fn check_schema(schema: &Value, expected: Result<&[&str], &str>) {
        let found = read(schema).map_err(|error| error.to_string());
        let found = found.map(|mirror| {
            let names = mirror.headers.into_iter().map(|header| header.shown);
            names.collect::<Vec<_>>()
        });
        match (&found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{schema}"),
            (Err(found), Err(expected)) => assert!(found.contains(expected), "{found}"),
            _ => panic!("{schema}: {found:?}"),
        }
    }

    fn string(header: &str) -> Value {
        json!({"type": "string", "x-mcp-header": header})
    }

    #[test]
    fn annotations_that_hold() {
        check(&json!({}), Ok(&[]));
        check(&json!({"a": {"type": "string"}}), Ok(&[]));
        check(&json!({"a": string("Region")}), Ok(&["Mcp-Param-Region"]));
        check(&json!({"a": string("Method")}), Ok(&["Mcp-Param-Method"]));
        check(&json!({"a": string("!#$%&'*+-.^_`|~09")}), Ok(&["Mcp-Param-!#$%&'*+-.^_`|~09"]));
        check(&json!({"a": {"type": "integer", "x-mcp-header": "I"}}), Ok(&["Mcp-Param-I"]));
        check(&json!({"a": {"type": "boolean", "x-mcp-header": "B"}}), Ok(&["Mcp-Param-B"]));
        check(
            &json!({"a": {"properties": {"b": {"properties": {"c": string("C")}}}}, "d": string("D")}),
            Ok(&["Mcp-Param-C", "Mcp-Param-D"]),
        );
        // A property may have any name, and data may have any shape.
        check(&json!({"x-mcp-header": {"type": "array"}}), Ok(&[]));
        check(&json!({"x-mcp-header": string("X")}), Ok(&["Mcp-Param-X"]));
        check(&json!({"properties": string("X")}), Ok(&["Mcp-Param-X"]));
        check(&json!({"items": string("X")}), Ok(&["Mcp-Param-X"]));
        check(
            &json!({"a": {"default": {"x-mcp-header": 1}, "enum": [{"x-mcp-header": 1}]}}),
            Ok(&[]),
        );
        check(&json!({"a": {"$defs": {"x-mcp-header": {"type": "string"}}}}), Ok(&[]));
        check_schema(&json!(true), Ok(&[]));
        check_schema(&json!({"properties": []}), Ok(&[]));
    }

    #[test]
    fn annotations_that_break_a_rule() {
        check(&json!({"a": string("")}), Err("property \"a\": x-mcp-header \"\" is not allowed"));
        for bad in ["a b", "a:b", "\u{e9}", "a\nb", "a\r\nb", "a\u{0}", "(", "a,b", "a/b", "\""] {
            check(&json!({"a": string(bad)}), Err("is not allowed in the name of a header"));
        }
        check(&json!({"a": string(&"x".repeat(70_000))}), Err("is not allowed in the name"));
        for bad in [json!(1), json!(null), json!(["A"]), json!({})] {
            check(&json!({"a": {"type": "string", "x-mcp-header": bad}}), Err("must be a string"));
        }
        for bad in ["object", "array", "null", "number"] {
            check(&json!({"a": {"type": bad, "x-mcp-header": "A"}}), Err("needs type string"));
        }
        let union = json!({"type": ["string", "null"], "x-mcp-header": "A"});
        check(&json!({"a": union}), Err(r#"found "[\"string\",\"null\"]""#));
        check(&json!({"a": {"x-mcp-header": "A"}}), Err("found none"));
        check(&json!({"a": {"$ref": "#/x", "x-mcp-header": "A"}}), Err("found none"));
        check(
            &json!({"a": string("Same"), "b": string("Same")}),
            Err("\"b\": x-mcp-header \"Same\" is"),
        );
        check(&json!({"a": string("Same"), "b": string("sAME")}), Err("is repeated"));
        check(
            &json!({"a": {"properties": {"b": string("A")}}, "c": string("a")}),
            Err("is repeated"),
        );
        check(&json!({"a": {"properties": {"b": string("")}}}), Err("property \"a.b\""));
    }

    #[test]
    fn annotations_out_of_reach() {
        check_schema(&string("Root"), Err("inputSchema: x-mcp-header must be on a property"));
        for keyword in [
            "items",
            "additionalProperties",
            "not",
            "if",
            "then",
            "else",
            "contains",
            "propertyNames",
            "unevaluatedProperties",
            "contentSchema",
            "unheardOf",
        ] {
            check(&json!({"a": {keyword: string("A")}}), Err("is not allowed inside"));
            check_schema(&json!({keyword: {"properties": {"b": string("A")}}}), Err(keyword));
        }
        for keyword in ["allOf", "anyOf", "oneOf", "prefixItems"] {
            check(&json!({"a": {keyword: [true, string("A")]}}), Err("property \"a\""));
            check_schema(&json!({keyword: [{"properties": {"b": string("A")}}]}), Err(keyword));
        }
        for keyword in ["$defs", "definitions", "patternProperties", "dependentSchemas"] {
            check_schema(&json!({keyword: {"default": string("A")}}), Err(keyword));
        }
    }
}
