//! Structured content that is not an object, inside one: `{"result": …}`.
//!
//! Up to 2025-11-25 structured content must be an object, and so must its schema
//! (server/tools). Since 2026-07-28 it is any value.

use serde_json::{Map, Value, json};

/// The name of the member that contains the value.
pub(super) const WRAPPED: &str = "result";

/// Whether a schema says that its values are objects. Only then is structured content sent as it is
/// in every revision that has it.
pub fn describes_object(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("object")
}

/// The schema of an object that contains a value of this schema.
pub(super) fn wrap_schema(mut schema: Value) -> Value {
    let mut whole = Map::new();
    whole.insert("type".to_owned(), "object".into());
    point_inside(&mut schema);
    // References name definitions from the root.
    for key in ["$schema", "$defs", "definitions"] {
        if let Some(kept) = schema.as_object_mut().and_then(|members| members.remove(key)) {
            whole.insert(key.to_owned(), kept);
        }
    }
    // Up to 2025-11-25 the schema of a property must be an object.
    let schema = if schema == Value::Bool(true) { json!({}) } else { schema };
    whole.insert("properties".to_owned(), json!({ (WRAPPED): schema }));
    whole.insert("required".to_owned(), json!([WRAPPED]));
    Value::Object(whole)
}

/// Makes references to other places than definitions follow the schema to its new place.
fn point_inside(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::String(target)) = members.get_mut("$ref") {
                let is_kept =
                    target.starts_with("#/$defs/") || target.starts_with("#/definitions/");
                if !is_kept && (target == "#" || target.starts_with("#/")) {
                    *target = format!("#/properties/{WRAPPED}{}", &target[1..]);
                }
            }
            members.values_mut().for_each(point_inside);
        }
        Value::Array(items) => items.iter_mut().for_each(point_inside),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_wrapped_with_their_references() {
        let check = |schema: Value, expected: Value| assert_eq!(wrap_schema(schema), expected);
        let list = json!({ "type": "array", "items": { "type": "string" } });
        let wrapped = |inner: Value| json!({ "type": "object", "properties": { "result": inner }, "required": ["result"] });
        check(list.clone(), wrapped(list));
        check(json!(true), wrapped(json!({})));
        let tree = json!({ "type": "array", "items": { "$ref": "#" } });
        let moved = json!({ "type": "array", "items": { "$ref": "#/properties/result" } });
        check(tree, wrapped(moved));
        let named =
            json!({ "type": "array", "items": { "$ref": "#/$defs/A" }, "$defs": { "A": {} } });
        let mut expected = wrapped(json!({ "type": "array", "items": { "$ref": "#/$defs/A" } }));
        expected["$defs"] = json!({ "A": {} });
        check(named, expected);
    }
}
