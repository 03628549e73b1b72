//! Rust types as forms: derives what elicitation asks for from a struct.

use bowline_proto::members::Members;
use bowline_proto::model::{ElicitSchema, PrimitiveSchema};
use schemars::JsonSchema;
use serde_json::{Map, Value};

use super::portable::without_null;
use super::schema;

/// The name of the field in a form that asks for one value.
pub(crate) const ONLY: &str = "answer";

/// A form for a Rust type.
#[derive(Debug)]
pub(crate) struct Form {
    pub(crate) fields: ElicitSchema,
    /// The name of the only field, if the type is the field and not the form.
    pub(crate) only: Option<&'static str>,
}

impl Form {
    /// The form for a struct, or for one value.
    ///
    /// # Errors
    /// When a field has a type that forms do not support; the error names it.
    pub(crate) fn of<T: JsonSchema>() -> Result<Self, String> {
        let schema = schema::schema_of::<T>();
        let only = (!schema::is_object(&schema)).then_some(ONLY);
        let properties = match only {
            Some(name) => {
                let is_required = !has_null(&schema);
                vec![schema::Property { name, schema: &schema, is_required }]
            }
            None => schema::properties(&schema),
        };
        let mut fields = Members::new();
        let mut required = Vec::new();
        for property in properties {
            let field = field(property.schema)
                .map_err(|reason| format!("field {:?} of the form: {reason}", property.name))?;
            fields.insert(property.name, field);
            if property.is_required {
                required.push(property.name.to_owned());
            }
        }
        Ok(Self { fields: form(fields, required), only })
    }
}

/// A form with one choice.
pub(crate) fn choice_of(words: &[String]) -> ElicitSchema {
    let schema = serde_json::json!({ "type": "string", "enum": words });
    let field = serde_json::from_value(schema).expect("a choice among words is a field");
    let mut fields = Members::new();
    fields.insert(ONLY, field);
    form(fields, vec![ONLY.to_owned()])
}

fn form(properties: Members<PrimitiveSchema>, required: Vec<String>) -> ElicitSchema {
    let required = (!required.is_empty()).then_some(required);
    ElicitSchema { properties, required, ..ElicitSchema::default() }
}

/// Whether a value may be null, which a form expresses by leaving it out.
fn has_null(schema: &Value) -> bool {
    let is_null = |schema: &Value| schema.get("type").is_some_and(|kind| kind == "null");
    let kinds = schema.get("type").and_then(Value::as_array);
    let branches = schema.get("anyOf").and_then(Value::as_array);
    kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind == "null"))
        || branches.is_some_and(|branches| branches.iter().any(is_null))
}

fn field(schema: &Value) -> Result<PrimitiveSchema, String> {
    // An optional field is left out of a form; it is never null.
    let mut schema = schema.clone();
    without_null(&mut schema);
    serde_json::from_value(plain(schema)).map_err(|error| error.to_string())
}

/// Keeps only what forms support: enumerations in their two spellings, and known formats.
fn plain(schema: Value) -> Value {
    let Value::Object(mut members) = schema else { return schema };
    let known = ["email", "uri", "date", "date-time"];
    if !members.get("format").and_then(Value::as_str).is_some_and(|it| known.contains(&it)) {
        members.remove("format");
    }
    if let Some(Value::Array(branches)) = members.get("oneOf").cloned() {
        members.remove("oneOf");
        members.insert("type".to_owned(), "string".into());
        let titled: Option<Vec<Value>> = branches.iter().map(choice).collect();
        match titled {
            Some(choices) => members.insert("oneOf".to_owned(), choices.into()),
            None => members.insert("enum".to_owned(), schema::words(&branched(&branches)).into()),
        };
    }
    if let Some(items) = members.get("items").cloned() {
        members.insert("items".to_owned(), items_of(&items));
    }
    Value::Object(members)
}

/// A word with its documentation as title.
fn choice(branch: &Value) -> Option<Value> {
    let word = branch.get("const")?;
    let title = branch.get("title").or_else(|| branch.get("description")).unwrap_or(word);
    Some(serde_json::json!({ "const": word, "title": title }))
}

fn branched(branches: &[Value]) -> Value {
    serde_json::json!({ "oneOf": branches })
}

/// The items of a list, as forms spell them.
fn items_of(items: &Value) -> Value {
    let branches = items.get("oneOf").and_then(Value::as_array);
    if let Some(titled) =
        branches.and_then(|all| all.iter().map(choice).collect::<Option<Vec<_>>>())
    {
        return serde_json::json!({ "anyOf": titled });
    }
    let words = schema::words(items);
    if words.is_empty() {
        // Forms only have lists of choices; what this is, the error says.
        return items.clone();
    }
    let mut plain = Map::new();
    plain.insert("type".to_owned(), "string".into());
    plain.insert("enum".to_owned(), words.into());
    Value::Object(plain)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Order {
        /// Who orders.
        name: String,
        count: u8,
        rate: Option<f64>,
        express: bool,
        size: Size,
        color: Option<Color>,
        extras: Vec<Size>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Size {
        Small,
        Large,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Color {
        /// Like blood.
        Red,
        /// Like the sky.
        Blue,
    }

    #[test]
    fn a_struct_is_a_form() {
        let form = serde_json::to_value(Form::of::<Order>().unwrap().fields).unwrap();
        assert_eq!(form["required"], json!(["name", "count", "express", "size", "extras"]));
        let fields = &form["properties"];
        assert_eq!(fields["name"], json!({ "type": "string", "description": "Who orders." }));
        assert_eq!(fields["count"]["type"], "integer");
        assert_eq!(fields["rate"], json!({ "type": "number" }));
        assert_eq!(fields["express"], json!({ "type": "boolean" }));
        assert_eq!(fields["size"], json!({ "type": "string", "enum": ["small", "large"] }));
        let colors = json!([
            { "const": "red", "title": "Like blood." },
            { "const": "blue", "title": "Like the sky." }
        ]);
        assert_eq!(fields["color"]["oneOf"], colors);
        let sizes = json!({ "type": "string", "enum": ["small", "large"] });
        assert_eq!(fields["extras"], json!({ "type": "array", "items": sizes }));
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Deep {
        order: Order,
    }

    #[test]
    fn what_no_form_can_show_is_named() {
        let error = Form::of::<Deep>().unwrap_err();
        assert!(error.starts_with(r#"field "order" of the form:"#), "{error}");
        let error = Form::of::<Vec<Order>>().unwrap_err();
        assert!(error.starts_with(r#"field "answer" of the form:"#), "{error}");
    }

    #[test]
    fn one_value_is_a_form_with_one_field() {
        fn check<T: JsonSchema>(is_required: bool, expected: &Value) {
            let form = Form::of::<T>().unwrap();
            assert_eq!(form.only, Some("answer"));
            let form = serde_json::to_value(form.fields).unwrap();
            assert_eq!(&form["properties"]["answer"], expected);
            assert_eq!(form.get("required").is_some(), is_required);
        }
        check::<bool>(true, &json!({ "type": "boolean" }));
        check::<Option<bool>>(false, &json!({ "type": "boolean" }));
        check::<String>(true, &json!({ "type": "string" }));
        check::<Option<f64>>(false, &json!({ "type": "number" }));
        let sizes = json!({ "type": "string", "enum": ["small", "large"] });
        check::<Size>(true, &sizes);
        check::<Vec<Size>>(true, &json!({ "type": "array", "items": sizes }));
    }
}
