//! One operation of a document: its name, its arguments, and what it answers.

use std::collections::BTreeSet;

use bowline_schema::Schema;
use http::{HeaderValue, Method};
use serde_json::{Map, Value, json};

use super::document::{Document, text};
use super::parameter::{Parameter, Place, argument, encoded_path};
use super::schema::Schemas;

/// The argument that reads on in an answer that was cut.
pub(super) const NEXT: &str = "next_part";

/// What belongs to the caller of the API and not to its callers: set by the configuration.
#[derive(Debug, Default)]
pub(super) struct Given {
    /// Names of headers, in small letters.
    pub(super) headers: BTreeSet<String>,
    /// Names in the query.
    pub(super) query: BTreeSet<String>,
}

/// An operation that can be called.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) name: String,
    pub(super) method: Method,
    /// Text and the names of parameters in turn, beginning and ending with text.
    pub(super) path: Vec<String>,
    pub(super) title: Option<String>,
    pub(super) description: String,
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Option<Body>,
    pub(super) input: Value,
    pub(super) output: Option<Output>,
    /// Whether [`NEXT`] is an argument.
    pub(super) has_next: bool,
    /// How many schemas its schemas have.
    pub(super) size: usize,
}

/// The schema of answers, and what whole ones must follow.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) schema: Value,
    pub(super) promised: Schema,
}

/// The body of requests.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) media: HeaderValue,
    pub(super) arguments: Arguments,
    pub(super) is_required: bool,
}

/// Which arguments make the body.
#[derive(Debug)]
pub(super) enum Arguments {
    /// One is all of it.
    Whole(String),
    /// These are its members.
    Members(Vec<String>),
}

/// The operation as the document has it.
#[derive(Clone, Copy)]
pub(super) struct Found<'a> {
    pub(super) document: &'a Document,
    pub(super) method: &'a Method,
    pub(super) path: &'a str,
    pub(super) item: &'a Value,
    pub(super) operation: &'a Value,
}

/// The arguments so far, and the schemas that they have.
struct Input<'a> {
    schemas: Schemas<'a>,
    properties: Map<String, Value>,
    required: Vec<String>,
}

impl Found<'_> {
    /// Its name: `operationId`, or what method and path say.
    pub(super) fn name(&self) -> String {
        if let Some(id) = text(self.operation, "operationId") {
            return argument(id);
        }
        let words = self.path.split(['/', '{', '}']).filter(|it| !it.is_empty());
        let words: Vec<&str> = [self.method.as_str()].into_iter().chain(words).collect();
        argument(&words.join("_").to_ascii_lowercase())
    }

    /// How people know it.
    pub(super) fn label(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

impl<'a> Found<'a> {
    /// Reads all of it.
    ///
    /// # Errors
    /// Why it cannot be called.
    pub(super) fn read(self, given: &Given) -> Result<Operation, String> {
        let schemas = Schemas::of_arguments(self.document);
        let mut input = Input { schemas, properties: Map::new(), required: Vec::new() };
        let (path, names) = template(self.path)?;
        let mut parameters = Vec::new();
        for value in self.parameters()? {
            let Some(mut parameter) = Parameter::read(value)? else { continue };
            let is_given = match parameter.place {
                Place::Path => !names.contains(&parameter.name),
                Place::Query => given.query.contains(&parameter.name),
                Place::Header => given.headers.contains(&parameter.name.to_ascii_lowercase()),
            };
            if !is_given {
                input.parameter(&mut parameter, value)?;
                parameters.push(parameter);
            }
        }
        for name in &names {
            if !parameters.iter().any(|it| it.place == Place::Path && it.name == *name) {
                let undeclared = json!({ "name": name, "in": "path" });
                let mut parameter = Parameter::read(&undeclared)?.ok_or("a path has no name")?;
                parameter.argument = input.free(&parameter)?;
                input.add(&parameter.argument, json!({ "type": "string" }), true);
                parameters.push(parameter);
            }
        }
        let body = self.body(&mut input)?;
        let has_next = *self.method == Method::GET && !input.properties.contains_key(NEXT);
        if has_next {
            let what = "Only to read on in an answer that was cut: what that answer says.";
            input.add(NEXT, json!({ "type": "string", "description": what }), false);
        }
        let (output, answer_size) = self.output();
        let (input, size) = input.finish()?;
        let title = text(self.operation, "summary");
        Ok(Operation {
            name: self.name(),
            method: self.method.clone(),
            path,
            title: title.map(str::to_owned),
            description: self.description(),
            parameters,
            body,
            input,
            output,
            has_next,
            size: size + answer_size,
        })
    }

    fn description(&self) -> String {
        let said = text(self.operation, "description").or_else(|| text(self.operation, "summary"));
        let said = said.map_or_else(|| self.label(), str::to_owned);
        let is_old = self.operation.get("deprecated") == Some(&Value::Bool(true));
        if is_old { format!("Deprecated. {said}") } else { said }
    }

    /// The parameters of the path, and those of the operation instead where they have the same
    /// name.
    fn parameters(&self) -> Result<Vec<&'a Value>, String> {
        let mut found: Vec<&Value> = Vec::new();
        for holder in [self.item, self.operation] {
            let all = holder.get("parameters").and_then(Value::as_array);
            for value in all.into_iter().flatten() {
                let value = self.document.follow(value)?;
                let key = |it: &Value| (it.get("name").cloned(), it.get("in").cloned());
                found.retain(|it| key(it) != key(value));
                found.push(value);
            }
        }
        Ok(found)
    }

    fn body(&self, input: &mut Input<'a>) -> Result<Option<Body>, String> {
        let Some(body) = self.operation.get("requestBody") else { return Ok(None) };
        let body = self.document.follow(body)?;
        let is_required = body.get("required") == Some(&Value::Bool(true));
        let content = body.get("content").and_then(Value::as_object);
        let json = content.and_then(|content| content.iter().find(|(media, _)| is_json(media)));
        let Some((media, described)) = json else {
            let others = content.into_iter().flatten().map(|(media, _)| media.as_str());
            let others: Vec<_> = others.take(5).collect();
            return match is_required {
                true => {
                    Err(format!("its body must be {}, and only JSON is sent", others.join(" or ")))
                }
                false => Ok(None),
            };
        };
        let media = if media.contains('*') { "application/json" } else { media };
        let media = HeaderValue::from_str(media).map_err(|_| "the type of its body is invalid")?;
        let any = &Value::Bool(true);
        let schema = described.get("schema").unwrap_or(any);
        let arguments = match self.members(schema, input)? {
            Some(members) => {
                let required = members.required.into_iter().filter(|_| is_required);
                input.required.extend(required);
                let names = members.properties.keys().cloned().collect();
                input.properties.extend(members.properties);
                Arguments::Members(names)
            }
            None => {
                let name = ["body", "request_body"];
                let name = name.iter().find(|it| !input.properties.contains_key(**it));
                let name = *name.ok_or("a parameter has the name of the body")?;
                let schema = input.schemas.convert(schema)?;
                let schema = if schema == Value::Bool(true) { json!({}) } else { schema };
                input.add(name, schema, is_required);
                Arguments::Whole(name.to_owned())
            }
        };
        Ok(Some(Body { media, arguments, is_required }))
    }

    /// The members of a body that is a plain object, if they can be arguments.
    fn members(&self, schema: &'a Value, input: &mut Input<'a>) -> Result<Option<Members>, String> {
        const PLAIN: [&str; 13] = [
            "type",
            "properties",
            "required",
            "additionalProperties",
            "title",
            "description",
            "example",
            "examples",
            "default",
            "xml",
            "externalDocs",
            "deprecated",
            "discriminator",
        ];
        let schema = self.document.follow(schema)?;
        let Some(object) = schema.as_object() else { return Ok(None) };
        let is_plain = |(key, value): (&String, &Value)| match key.as_str() {
            "type" => value == "object",
            "additionalProperties" => *value == Value::Bool(false),
            key => PLAIN.contains(&key) || key.starts_with("x-"),
        };
        let properties = object.get("properties").and_then(Value::as_object);
        let Some(properties) = properties.filter(|it| !it.is_empty()) else { return Ok(None) };
        let fits = |name: &String| argument(name) == *name && !input.properties.contains_key(name);
        if !object.iter().all(is_plain)
            || !properties.keys().all(fits)
            || properties.contains_key(NEXT)
        {
            return Ok(None);
        }
        let mut converted = input.schemas.convert(schema)?;
        let required = converted["required"].take();
        let required = required.as_array().cloned().unwrap_or_default();
        let required = required.iter().filter_map(Value::as_str).map(str::to_owned);
        let properties = converted["properties"].take();
        Ok(properties.as_object().map(|properties| Members {
            required: required.filter(|it| properties.contains_key(it)).collect(),
            properties: properties.clone(),
        }))
    }

    /// The schema of the answer, and how many schemas that has. Only where all good answers have
    /// the same: what has a schema must always follow it.
    fn output(&self) -> (Option<Output>, usize) {
        let responses = self.operation.get("responses").and_then(Value::as_object);
        let mut schemas = responses.into_iter().flatten().filter(|(code, _)| code.starts_with('2'));
        let schema = |response: &'a Value| {
            let content = self.document.follow(response).ok()?.get("content")?.as_object()?;
            let mut all = content.iter();
            all.find(|(media, _)| is_json(media))?.1.get("schema")
        };
        let Some(first) = schemas.next().and_then(|(_, response)| schema(response)) else {
            return (None, 0);
        };
        if *self.method == Method::HEAD
            || !schemas.all(|(_, response)| schema(response) == Some(first))
        {
            return (None, 0);
        }
        let mut schemas = Schemas::of_answers(self.document);
        let promised = self.document.follow(first).and_then(|it| schemas.convert(it));
        let output = promised.and_then(|it| Output::of(it, schemas.definitions()?));
        (output.ok(), schemas.count())
    }
}

struct Members {
    properties: Map<String, Value>,
    required: Vec<String>,
}

impl<'a> Input<'a> {
    fn parameter(&mut self, parameter: &mut Parameter, value: &'a Value) -> Result<(), String> {
        let content = value.get("content").and_then(Value::as_object);
        let content = content.and_then(|it| it.values().next());
        let mut schema = match content.unwrap_or(value).get("schema") {
            Some(schema) => self.schemas.convert(schema)?,
            None => json!({ "type": "string" }),
        };
        if let (Some(schema), Some(said)) = (schema.as_object_mut(), text(value, "description")) {
            schema.insert("description".to_owned(), said.into());
        }
        parameter.argument = self.free(parameter)?;
        self.add(&parameter.argument, schema, parameter.is_required);
        Ok(())
    }

    /// The name of an argument for a parameter: with its place if another one has it.
    fn free(&self, parameter: &Parameter) -> Result<String, String> {
        let long = format!("{}_{}", parameter.place.as_str(), parameter.argument);
        let mut names = [parameter.argument.clone(), long].into_iter();
        let free = names.find(|it| !self.properties.contains_key(it));
        free.ok_or_else(|| format!("several parameters are called {:?}", parameter.argument))
    }

    fn add(&mut self, name: &str, schema: Value, is_required: bool) {
        self.properties.insert(name.to_owned(), schema);
        if is_required {
            self.required.push(name.to_owned());
        }
    }

    /// The schema, and how many schemas it has.
    fn finish(mut self) -> Result<(Value, usize), String> {
        let definitions = self.schemas.definitions()?;
        let mut schema = json!({
            "type": "object",
            "properties": self.properties,
            "required": self.required,
            "additionalProperties": false,
        });
        if !definitions.is_empty() {
            schema["$defs"] = definitions.into();
        }
        Ok((schema, self.schemas.count()))
    }
}

impl Output {
    fn of(mut promised: Value, definitions: Map<String, Value>) -> Result<Self, String> {
        let is_object = promised["type"] == json!(["object", "null"]);
        if is_object {
            promised["type"] = "object".into();
        }
        let part = json!({
            "type": "object",
            "description": "A part of an answer that is longer than the limit.",
            "properties": { "part": { "type": "string" }, NEXT: { "type": "string" } },
            "required": ["part"],
        });
        let mut schema = json!({ "anyOf": [promised, part] });
        if is_object {
            schema["type"] = "object".into();
        }
        let mut alone = json!({ "allOf": [promised] });
        if !definitions.is_empty() {
            alone["$defs"] = definitions.clone().into();
            schema["$defs"] = definitions.into();
        }
        let promised = Schema::compile(&alone).map_err(|error| error.to_string())?;
        Ok(Self { schema, promised })
    }
}

/// Whether a type is JSON. Ranges count: who takes anything takes JSON.
pub(super) fn is_json(media: &str) -> bool {
    let media = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_plain =
        matches!(media.as_str(), "application/json" | "application/*" | "*/*" | "text/json");
    is_plain || media.ends_with("+json")
}

/// Text and names of a path in turn, and the names.
fn template(path: &str) -> Result<(Vec<String>, Vec<String>), String> {
    if !path.starts_with('/')
        || path.contains(['?', '#', '\\'])
        || path.chars().any(char::is_control)
    {
        return Err("its path must begin with / and have no query".to_owned());
    }
    let is_dots =
        |it: &str| matches!(it.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..");
    if path.split('/').any(is_dots) {
        return Err("its path must not have . or .. in it".to_owned());
    }
    let (mut parts, mut names, mut rest) = (Vec::new(), Vec::new(), path);
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').ok_or("its path has a { without a }")?;
        parts.push(encoded_path(before));
        parts.push(name.to_owned());
        names.push(name.to_owned());
        rest = after;
    }
    parts.push(encoded_path(rest));
    Ok((parts, names))
}
