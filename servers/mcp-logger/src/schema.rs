//! Schemas in the form that clients and models handle best: plain and short.

use schemars::Schema;
use serde_json::Value;

/// Removes null from optional properties, turns enumerations into lists of words, and forbids
/// unknown properties.
pub fn plain(schema: &mut Schema) {
    let Some(root) = schema.as_object_mut() else { return };
    if let Some(Value::Object(properties)) = root.get_mut("properties") {
        properties.values_mut().for_each(plain_property);
    }
    root.insert("additionalProperties".to_owned(), false.into());
}

fn plain_property(property: &mut Value) {
    let Value::Object(members) = property else { return };
    // `anyOf: [X, null]` is an optional X.
    if let Some(Value::Array(branches)) = members.remove("anyOf") {
        let some = branches.into_iter().find(|it| it.get("type") != Some(&"null".into()));
        if let Some(Value::Object(some)) = some {
            for (name, value) in some {
                members.entry(name).or_insert(value);
            }
        }
    }
    if let Some(Value::Array(kinds)) = members.get("type")
        && let Some(kind) = kinds.iter().find(|kind| *kind != "null").cloned()
    {
        members.insert("type".to_owned(), kind);
    }
    if let Some(Value::Array(words)) = members.remove("oneOf") {
        let words = words.iter().filter_map(|word| word.get("const").cloned()).collect();
        members.insert("enum".to_owned(), Value::Array(words));
        members.insert("type".to_owned(), "string".into());
    }
    if members.get("default") == Some(&Value::Null) {
        members.remove("default");
    }
}

/// Like [`plain`], but keeps only the description of the text: the other options are described
/// beside it.
pub fn brief(schema: &mut Schema) {
    plain(schema);
    let properties = schema.as_object_mut().and_then(|root| root.get_mut("properties"));
    for (name, property) in properties.and_then(Value::as_object_mut).into_iter().flatten() {
        if let Value::Object(members) = property
            && name != "message"
        {
            members.remove("description");
            members.remove("default");
        }
    }
}
