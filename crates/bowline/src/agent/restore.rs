//! Arguments as the tool's own schema wants them, where the provider's schema differs.

use serde_json::Value;

use super::schema::{is_required, types};
use bowline_proto::json::Extra;
use bowline_schema::target;

/// Drops nulls that stand for absent arguments, and turns texts that stand for other values of an
/// enumeration back into those.
pub(super) fn restore(root: &Value, arguments: &mut Value) {
    Restoring { root }.restore(root, arguments, DEEPEST);
}

/// How far references are followed.
const DEEPEST: usize = 64;

struct Restoring<'a> {
    root: &'a Value,
}

impl<'a> Restoring<'a> {
    fn restore(&self, schema: &'a Value, value: &mut Value, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return };
        let schemas = self.parts(schema, value, depth);
        match value {
            Value::Object(members) => {
                members.retain(|name, value| {
                    let is_absent = value.is_null()
                        && schemas.iter().any(|schema| self.may_be_absent(schema, name, depth));
                    !is_absent
                });
                for (name, value) in members {
                    let of = |schema: &&'a Extra| schema.get("properties")?.get(name);
                    for property in schemas.iter().filter_map(of) {
                        self.restore(property, value, depth);
                    }
                }
            }
            Value::Array(items) => {
                for schema in schemas.iter().filter_map(|schema| schema.get("items")) {
                    items.iter_mut().for_each(|item| self.restore(schema, item, depth));
                }
            }
            Value::String(text) => {
                let values = schemas.iter().filter_map(|schema| match schema.get("const") {
                    Some(only) => Some(std::slice::from_ref(only)),
                    None => schema.get("enum")?.as_array().map(Vec::as_slice),
                });
                let values: Vec<_> = values.flatten().collect();
                let is_text = values.iter().any(|it| it.as_str() == Some(text));
                let found =
                    values.into_iter().find(|it| !it.is_string() && it.to_string() == *text);
                if let Some(found) = found.filter(|_| !is_text) {
                    *value = found.clone();
                }
            }
            _ => {}
        }
    }

    /// The schemas that apply to a value together.
    fn parts(&self, schema: &'a Value, value: &Value, depth: usize) -> Vec<&'a Extra> {
        let (Some(members), Some(depth)) = (schema.as_object(), depth.checked_sub(1)) else {
            return Vec::new();
        };
        let mut parts = vec![members];
        let reference = members.get("$ref").and_then(Value::as_str);
        if let Some(target) = reference.and_then(|reference| target(self.root, reference)) {
            parts.extend(self.parts(target, value, depth));
        }
        for part in members.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            parts.extend(self.parts(part, value, depth));
        }
        let branches =
            ["anyOf", "oneOf"].into_iter().filter_map(|key| members.get(key)?.as_array());
        let mut branches = branches.flatten().map(|branch| self.parts(branch, value, depth));
        parts.extend(branches.find(|parts| could_be(parts, value)).into_iter().flatten());
        parts
    }

    /// Whether a property is optional, and null is not one of its own values.
    fn may_be_absent(&self, schema: &'a Extra, name: &str, depth: usize) -> bool {
        let Some(property) = schema.get("properties").and_then(|it| it.get(name)) else {
            return false;
        };
        !is_required(schema, name) && !self.allows_null(property, depth)
    }

    fn allows_null(&self, schema: &'a Value, depth: usize) -> bool {
        let (Some(members), Some(depth)) = (schema.as_object(), depth.checked_sub(1)) else {
            return false;
        };
        let reference = members.get("$ref").and_then(Value::as_str);
        let target = reference.and_then(|reference| target(self.root, reference));
        let branches =
            ["anyOf", "oneOf"].into_iter().filter_map(|key| members.get(key)?.as_array());
        let listed = members.get("enum").and_then(Value::as_array);
        types(members).contains(&"null")
            || listed.is_some_and(|values| values.contains(&Value::Null))
            || target.is_some_and(|target| self.allows_null(target, depth))
            || branches.flatten().any(|branch| self.allows_null(branch, depth))
    }
}

/// Whether a value could match an alternative: an object, if it has no other properties.
fn could_be(parts: &[&Extra], value: &Value) -> bool {
    let is_known = |name: &str| {
        let mut properties = parts.iter().filter_map(|part| part.get("properties"));
        properties.any(|properties| properties.get(name).is_some())
    };
    let allowed: Vec<_> = parts.iter().flat_map(|part| types(part)).collect();
    let fits = |name: &str| allowed.is_empty() || allowed.contains(&name);
    match value {
        Value::Object(members) => fits("object") && members.keys().all(|name| is_known(name)),
        Value::Array(_) => fits("array"),
        Value::Null => fits("null"),
        // Texts may stand for other values.
        Value::String(_) => !allowed.contains(&"object") && !allowed.contains(&"array"),
        _ => false,
    }
}
