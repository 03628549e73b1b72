//! What the dialects of the providers have in common: references replaced by what they mean, and
//! schemas that are combined by `allOf` merged into one.

use bowline_proto::json::Extra;
use bowline_schema::target;
use serde_json::Value;

/// What to do with a reference that leads back to itself or elsewhere.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dangling {
    /// Give up.
    Refuse,
    /// Replace it by a schema that allows anything.
    Cut,
}

/// How many schemas may come out: references can multiply without end.
const MOST: usize = 20_000;

/// Replaces every reference.
pub(super) fn inline(schema: &Value, dangling: Dangling) -> Option<Value> {
    Inlining { root: schema, dangling, left: MOST }.inline(schema, &mut Vec::new())
}

struct Inlining<'a> {
    root: &'a Value,
    dangling: Dangling,
    left: usize,
}

impl<'a> Inlining<'a> {
    fn inline(&mut self, schema: &'a Value, open: &mut Vec<&'a str>) -> Option<Value> {
        self.left = self.left.checked_sub(1)?;
        match schema {
            Value::Object(members) => self.inline_object(members, open),
            Value::Array(items) => {
                items.iter().map(|item| self.inline(item, open)).collect::<Option<_>>()
            }
            plain => Some(plain.clone()),
        }
    }

    fn inline_object(&mut self, members: &'a Extra, open: &mut Vec<&'a str>) -> Option<Value> {
        let mut inlined = match members.get("$ref").and_then(Value::as_str) {
            Some(reference) => self.follow(reference, open)?,
            None => Extra::new(),
        };
        for (key, value) in members {
            let value = match key.as_str() {
                "$ref" | "$defs" | "definitions" | "$schema" | "$id" => continue,
                // Data, which may look like a schema.
                "enum" | "const" | "default" | "examples" => value.clone(),
                "properties" | "patternProperties" => self.inline_members(value, open)?,
                _ => self.inline(value, open)?,
            };
            inlined.insert(key.clone(), value);
        }
        Some(Value::Object(inlined))
    }

    /// Of an object whose keys are names and not keywords.
    fn inline_members(&mut self, value: &'a Value, open: &mut Vec<&'a str>) -> Option<Value> {
        let Some(members) = value.as_object() else { return Some(value.clone()) };
        let mut inlined = Extra::new();
        for (name, schema) in members {
            inlined.insert(name.clone(), self.inline(schema, open)?);
        }
        Some(Value::Object(inlined))
    }

    fn follow(&mut self, reference: &'a str, open: &mut Vec<&'a str>) -> Option<Extra> {
        let target = target(self.root, reference).filter(|_| !open.contains(&reference));
        let Some(target) = target else {
            return (self.dangling == Dangling::Cut).then(Extra::new);
        };
        open.push(reference);
        let inlined = self.inline(target, open);
        open.pop();
        match inlined? {
            Value::Object(inlined) => Some(inlined),
            _ => Some(Extra::new()),
        }
    }
}

/// Merges what `allOf` combines into the schema itself, as far as that is simple: properties and
/// required names add up, and of other keywords the first one counts.
pub(super) fn merge_all(mut schema: Extra) -> Extra {
    let Some(Value::Array(all)) = schema.remove("allOf") else { return schema };
    for part in all {
        let Value::Object(part) = part else { continue };
        for (key, value) in merge_all(part) {
            match (key.as_str(), schema.get_mut(&key), value) {
                ("properties", Some(Value::Object(ours)), Value::Object(theirs)) => {
                    for (name, property) in theirs {
                        ours.entry(name).or_insert(property);
                    }
                }
                ("required", Some(Value::Array(ours)), Value::Array(theirs)) => {
                    let new = theirs.into_iter().filter(|name| !ours.contains(name));
                    let new: Vec<_> = new.collect();
                    ours.extend(new);
                }
                (_, Some(_), _) => {}
                (_, None, value) => drop(schema.insert(key, value)),
            }
        }
    }
    schema
}

/// The schema of arguments as providers demand it: an object that is not combined of others. Of
/// alternatives all properties are allowed, and required if all alternatives require them.
pub(super) fn plain_root(schema: &Value) -> Value {
    let mut root = match schema {
        Value::Object(root) => root.clone(),
        _ => Extra::new(),
    };
    root.remove("$schema");
    let is_combined = ["allOf", "anyOf", "oneOf"].iter().any(|key| root.contains_key(*key));
    if is_combined && let Some(Value::Object(inlined)) = inline(schema, Dangling::Cut) {
        root = merge_all(inlined);
        let branches = ["anyOf", "oneOf"].into_iter().filter_map(|key| root.remove(key));
        for branches in branches.collect::<Vec<_>>() {
            join(&mut root, branches);
        }
    }
    root.remove("not");
    root.insert("type".to_owned(), "object".into());
    root.entry("properties").or_insert_with(|| Value::Object(Extra::new()));
    Value::Object(root)
}

/// Adds the properties of alternatives.
fn join(root: &mut Extra, branches: Value) {
    let Value::Array(branches) = branches else { return };
    let branches: Vec<Extra> = branches
        .into_iter()
        .filter_map(|branch| match branch {
            Value::Object(branch) => Some(merge_all(branch)),
            _ => None,
        })
        .collect();
    let requires = |branch: &Extra, name: &Value| required(branch).any(|it| it == name);
    let shared: Vec<Value> = branches.first().map_or_else(Vec::new, |first| {
        let all = |name: &&Value| branches.iter().all(|branch| requires(branch, name));
        required(first).filter(all).cloned().collect()
    });
    let mut joined = Extra::new();
    joined.insert("required".to_owned(), Value::Array(shared));
    let mut properties = Extra::new();
    for branch in branches {
        let Some(Value::Object(theirs)) = branch.get("properties") else { continue };
        for (name, property) in theirs {
            properties.entry(name.clone()).or_insert_with(|| property.clone());
        }
    }
    joined.insert("properties".to_owned(), Value::Object(properties));
    root.insert("allOf".to_owned(), Value::Array(vec![Value::Object(joined)]));
    *root = merge_all(std::mem::take(root));
}

fn required(schema: &Extra) -> impl Iterator<Item = &Value> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten()
}

/// Whether a property must be there.
pub(super) fn is_required(schema: &Extra, name: &str) -> bool {
    required(schema).any(|it| it == name)
}

/// The types that a schema allows, if it says so.
pub(super) fn types(schema: &Extra) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// The alternatives of a schema.
pub(super) fn alternatives(schema: &Extra) -> Option<&Vec<Value>> {
    schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array)
}
