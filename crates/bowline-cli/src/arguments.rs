//! Arguments of a call: `key=value`, `key:=json` and files become an object, typed by a schema.
//! What is not given is not sent.

use std::io::Read;
use std::path::{Path, PathBuf};

use bowline::{Json, base64};
use bowline_schema::Schema;
use clap::Args;
use serde_json::{Number, Value, json};

use crate::failure::Failure;
use crate::loose::{self, Typed};
use crate::render::schema::kind;
use crate::schema::{Kinds, View, unquoted};
use crate::text::did_you_mean;

/// Arguments as one object.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ArgumentArgs {
    /// The arguments as a JSON object; KEY=VALUE adds to them
    #[arg(long, value_name = "OBJECT", conflicts_with = "file")]
    json: Option<String>,

    /// The arguments as a JSON object in a file; - is standard input
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Arguments as they were given, before the schema of the tool is known.
#[derive(Debug, Default)]
pub(crate) struct Given {
    whole: Option<Json>,
    pairs: Vec<Pair>,
}

impl From<Json> for Given {
    fn from(whole: Json) -> Self {
        Self { whole: Some(whole), pairs: Vec::new() }
    }
}

#[derive(Debug)]
struct Pair {
    key: String,
    value: Text,
}

/// The value of a pair.
#[derive(Debug)]
enum Text {
    /// After `=`: its type depends on the schema.
    Plain(String),
    /// After `:=`.
    Json(Value),
    /// After `=@` and `=-`: the contents.
    File(Vec<u8>),
}

impl ArgumentArgs {
    /// Reads the arguments, and the files that they name.
    ///
    /// # Errors
    /// When no tool could take them, or a file cannot be read.
    pub(crate) fn read(&self, words: &[String]) -> Result<Given, Failure> {
        let mut given = Given::default();
        if let Some(text) = &self.json {
            given.whole = Some(object(text.clone(), "--json")?);
        }
        if let Some(file) = &self.file {
            let text = String::from_utf8(read_source(file, "--file")?)
                .map_err(|_| Failure::file("--file", file, "expected text in UTF-8"))?;
            given.whole = Some(object(text, &format!("--file {}", file.display()))?);
        }
        let mut reads_input = self.file.as_deref() == Some(Path::new("-"));
        for word in words {
            if word.trim_start().starts_with('{') && given.whole.is_none() {
                given.whole = Some(object(word.clone(), "the arguments")?);
                continue;
            }
            let pair = pair(word)?;
            if word.ends_with("=-") && std::mem::replace(&mut reads_input, true) {
                return Err(Failure::usage("standard input can be read only once"));
            }
            given.pairs.push(pair);
        }
        Ok(given)
    }
}

/// An object in JSON.
pub(crate) fn object(text: String, what: &str) -> Result<Json, Failure> {
    let wrong = |problem: String| Failure::usage(format!("{what}: {problem}"));
    let json = Json::from_text(text).map_err(|error| wrong(format!("invalid JSON: {error}")))?;
    if json.is_object() { Ok(json) } else { Err(wrong("expected an object: {…}".to_owned())) }
}

/// `key=value`, `key:=json`, `key=@file`, `key=-`.
fn pair(word: &str) -> Result<Pair, Failure> {
    let wrong = |problem: String| Failure::usage(format!("{word:?}: {problem}"));
    let Some((key, value)) = word.split_once('=').filter(|(key, _)| !key.is_empty()) else {
        return Err(wrong("expected key=value, key:=json, key=@file or a JSON object".to_owned()));
    };
    let (key, is_json) = match key.strip_suffix(':') {
        Some(key) => (key, true),
        None => (key, false),
    };
    let read = match value.strip_prefix('@') {
        Some(file) => Some(read_source(Path::new(file), &format!("{key}:"))?),
        None if value == "-" => Some(read_source(Path::new("-"), &format!("{key}:"))?),
        None => None,
    };
    let json = |text: &[u8]| {
        let value = serde_json::from_slice(text);
        value.map(Text::Json).map_err(|error| wrong(format!("invalid JSON: {error}")))
    };
    let value = match (read, is_json) {
        (None, false) => Text::Plain(value.to_owned()),
        (None, true) => json(value.as_bytes())?,
        (Some(bytes), false) => Text::File(bytes),
        (Some(bytes), true) => json(&bytes)?,
    };
    Ok(Pair { key: key.to_owned(), value })
}

/// Reads a file, or standard input for `-`.
fn read_source(file: &Path, what: &str) -> Result<Vec<u8>, Failure> {
    let read = if file == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(file)
    };
    read.map_err(|error| Failure::file(what, file, error))
}

impl Given {
    pub(crate) fn is_empty(&self) -> bool {
        self.whole.is_none() && self.pairs.is_empty()
    }

    /// Builds the arguments of a tool with this schema. With `checks`, unknown names and values
    /// that do not fit are rejected, with what the tool expects.
    ///
    /// # Errors
    /// When they do not fit.
    pub(crate) fn build(&self, schema: Option<&Value>, checks: bool) -> Result<Json, Failure> {
        let view = View::new(schema.unwrap_or(&Value::Bool(true)));
        let knows = checks && schema.is_some();
        let arguments = match (&self.whole, self.pairs.is_empty()) {
            // To the letter.
            (Some(whole), true) => whole.clone(),
            (whole, _) => {
                let mut object = whole.as_ref().map_or_else(|| json!({}), Json::to_value);
                for (index, pair) in self.pairs.iter().enumerate() {
                    let is_again = self.pairs[..index].iter().any(|it| it.key == pair.key);
                    put(&mut object, &view, pair, is_again, knows)?;
                }
                object.into()
            }
        };
        if let Some(schema) = schema.filter(|_| checks) {
            check(schema, &view, &arguments)?;
        }
        Ok(arguments)
    }
}

/// A step on the way to a value.
enum Step<'a> {
    Member(&'a str),
    Item(usize),
}

/// The way that a key such as `list[0].name` describes, unless a property has that very name.
fn path<'a>(key: &'a str, view: &View) -> Vec<Step<'a>> {
    if view.properties().iter().any(|property| property.name == key) {
        return vec![Step::Member(key)];
    }
    let mut steps = Vec::new();
    for part in key.split('.') {
        let (name, items) = part.split_once('[').unwrap_or((part, ""));
        let items: Option<Vec<usize>> = items
            .strip_suffix(']')
            .map(|items| items.split("][").map(|item| item.parse().ok()).collect())
            .unwrap_or_default();
        match items.filter(|_| !name.is_empty()) {
            None => steps.push(Step::Member(part)),
            Some(items) => {
                steps.push(Step::Member(name));
                steps.extend(items.into_iter().map(Step::Item));
            }
        }
    }
    steps
}

/// Puts a value where its key says.
fn put(
    whole: &mut Value,
    view: &View,
    pair: &Pair,
    is_again: bool,
    checks: bool,
) -> Result<(), Failure> {
    let wrong = |problem: String| Failure::usage(format!("{}: {problem}", pair.key));
    let way = path(&pair.key, view);
    let (mut place, mut view, mut walked) = (whole, Some(view.clone()), String::new());
    for next in way {
        match next {
            Step::Member(name) => {
                view = step(view, name, &pair.key, checks)?;
                if place.is_null() {
                    *place = json!({});
                }
                let missing = || wrong(format!("{walked} is not an object, so it has no {name}"));
                place =
                    place.as_object_mut().ok_or_else(missing)?.entry(name).or_insert(Value::Null);
                walked += if walked.is_empty() { "" } else { "." };
                walked += name;
            }
            Step::Item(at) => {
                view = view.and_then(|view| view.items());
                if place.is_null() {
                    *place = json!([]);
                }
                let other = || wrong(format!("{walked} is not an array"));
                let items = place.as_array_mut().ok_or_else(other)?;
                if at > items.len() {
                    return Err(wrong(format!("{walked}[{}] comes first", items.len())));
                }
                if at == items.len() {
                    items.push(Value::Null);
                }
                place = &mut items[at];
                walked += &format!("[{at}]");
            }
        }
    }
    let value = match value_of(pair, view.as_ref()) {
        Err(_) if !checks => value_of(pair, None)?,
        value => value?,
    };
    if !is_again {
        *place = value;
        return Ok(());
    }
    let kinds = view.map_or(Kinds::ANY, |view| view.kinds());
    if checks && !kinds.has(Kinds::ARRAY) {
        return Err(Failure::usage(format!("{} is given twice, but takes one value", pair.key)));
    }
    append(place, value, kinds);
    Ok(())
}

/// A repeated key fills an array.
fn append(place: &mut Value, value: Value, kinds: Kinds) {
    let mut items = match place.take() {
        Value::Array(items) => items,
        one => vec![one],
    };
    match value {
        Value::Array(more) if kinds != Kinds::ANY && kinds.has(Kinds::ARRAY) => items.extend(more),
        other => items.push(other),
    }
    *place = Value::Array(items);
}

/// The arguments of a call, each read as its property wants it. What does not fit is sent as it
/// looks, so that the server rejects it.
pub(crate) fn from_members(schema: &Value, members: Vec<(String, Typed)>) -> Value {
    let view = View::new(schema);
    let read = |(name, value): (String, Typed)| {
        let value = match (view.property(&name), &value) {
            (Some(view), Typed::Bare(text)) if view.kinds() != Kinds::ANY => {
                typed(text, &view).unwrap_or_else(|()| value.into_value())
            }
            _ => value.into_value(),
        };
        (name, value)
    };
    Value::Object(members.into_iter().map(read).collect())
}

/// Goes down to a property. `None` where the schema says nothing about it.
fn step(view: Option<View>, name: &str, key: &str, checks: bool) -> Result<Option<View>, Failure> {
    let Some(view) = view else { return Ok(None) };
    match view.property(name) {
        None if checks && view.lists_properties() => Err(unknown(&view, name, key)),
        found => Ok(found),
    }
}

fn unknown(view: &View, name: &str, key: &str) -> Failure {
    let properties = view.properties();
    let names: Vec<&str> = properties.iter().map(|property| property.name.as_str()).collect();
    let takes = if names.is_empty() { "no arguments".to_owned() } else { names.join(", ") };
    let near = did_you_mean(name, names);
    let remedy = near.unwrap_or_else(|| "--unchecked sends it anyway".to_owned());
    let within = if key == name { String::new() } else { format!(" in {key}") };
    Failure::usage(format!("there is no argument {name:?}{within}: it takes {takes}"))
        .with_remedy(remedy)
}

fn value_of(pair: &Pair, view: Option<&View>) -> Result<Value, Failure> {
    let as_base64 = view.is_some_and(|view| view.text("contentEncoding") == Some("base64"));
    let text = match &pair.value {
        Text::Json(value) => return Ok(value.clone()),
        Text::Plain(text) => text,
        Text::File(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) if !as_base64 => text,
            // JSON carries bytes as base64.
            _ => return Ok(Value::String(base64::STANDARD.encode(bytes))),
        },
    };
    let Some(view) = view else { return Ok(Value::String(text.to_owned())) };
    typed(text, view).map_err(|()| {
        let text = crate::text::cut(text, 60);
        let what = format!("{}: expected {}, got {text:?}", pair.key, kind(view, 0));
        Failure::usage(what).with_remedy("key:=JSON gives any value; --unchecked sends it anyway")
    })
}

/// The schema of arguments that are all text, whatever they are called.
pub(crate) fn text_arguments() -> Value {
    json!({ "additionalProperties": { "type": "string" } })
}

/// Checks the arguments against the schema.
fn check(schema: &Value, view: &View, arguments: &Json) -> Result<(), Failure> {
    let value = arguments.to_value();
    // A misspelt name is reported before what is missing because of it.
    if let Some(object) = value.as_object().filter(|_| view.lists_properties()) {
        for name in object.keys() {
            step(Some(view.clone()), name, name, true)?;
        }
    }
    // A schema that does not compile checks nothing; the server will judge.
    let Ok(compiled) = Schema::compile(schema) else { return Ok(()) };
    let valid = compiled.validate("arguments", &value);
    valid.map_err(|invalid| Failure::usage(invalid.to_string()))
}

/// The value that text stands for under a schema. Where it could be a string and something else,
/// the other type wins if the text is exactly how it is written; `key:=` settles the rest.
///
/// # Errors
/// When the schema accepts no such value.
pub(crate) fn typed(text: &str, view: &View) -> Result<Value, ()> {
    if let Some(choices) = view.choices() {
        let mut values = choices.into_iter().map(|choice| choice.value);
        return values.find(|value| unquoted(value) == text).ok_or(());
    }
    let kinds = view.kinds();
    let can_be_text = kinds.has(Kinds::STRING);
    if kinds == Kinds::ANY {
        return Ok(Value::String(text.to_owned()));
    }
    if kinds.has(Kinds::BOOLEAN) {
        match text.to_ascii_lowercase().as_str() {
            "true" if !can_be_text || text == "true" => return Ok(Value::Bool(true)),
            "false" if !can_be_text || text == "false" => return Ok(Value::Bool(false)),
            "yes" | "y" | "on" if !can_be_text => return Ok(Value::Bool(true)),
            "no" | "n" | "off" if !can_be_text => return Ok(Value::Bool(false)),
            _ => {}
        }
    }
    if let Some(number) = number(text, kinds)
        && (!can_be_text || number.to_string() == text)
    {
        return Ok(Value::Number(number));
    }
    if kinds.has(Kinds::NULL) && !can_be_text && text == "null" {
        return Ok(Value::Null);
    }
    let open = text.trim_start().chars().next();
    let is_array = kinds.has(Kinds::ARRAY) && open == Some('[');
    let is_object = kinds.has(Kinds::OBJECT) && open == Some('{');
    if can_be_text {
        let json = if is_array || is_object { serde_json::from_str(text).ok() } else { None };
        return Ok(json.unwrap_or_else(|| Value::String(text.to_owned())));
    }
    if is_array || is_object {
        return loose::parse_value(text).map_err(drop);
    }
    if kinds.has(Kinds::ARRAY) {
        let any = || View::new(&Value::Bool(true));
        let item = typed(text, &view.items().unwrap_or_else(any))?;
        return Ok(Value::Array(vec![item]));
    }
    Err(())
}

fn number(text: &str, kinds: Kinds) -> Option<Number> {
    let number: Number = serde_json::from_str(text.trim()).ok()?;
    let is_whole = !number.is_f64() || number.as_f64().is_some_and(|it| it.fract() == 0.0);
    let fits = kinds.has(Kinds::NUMBER) || kinds.has(Kinds::INTEGER) && is_whole;
    fits.then_some(number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object",
            "$defs": { "Point": {
                "type": "object",
                "properties": { "x": { "type": "number" }, "y": { "type": "number" } },
                "required": ["x"]
            }},
            "properties": {
                "name": { "type": "string" },
                "count": { "type": "integer", "minimum": 0 },
                "tags": { "type": "array", "items": { "type": "string" } },
                "sizes": { "type": "array", "items": { "type": "integer" } },
                "at": { "$ref": "#/$defs/Point" },
                "points": { "type": "array", "items": { "$ref": "#/$defs/Point" } },
                "maybe": { "anyOf": [{ "type": "integer" }, { "type": "null" }] },
                "mode": { "oneOf": [{ "const": "fast" }, { "const": 2 }] },
                "dry": { "type": "boolean" },
                "a.b": { "type": "string" },
                "free": {}
            }
        })
    }

    fn built(words: &[&str]) -> Result<Value, String> {
        built_with(words, true)
    }

    fn built_with(words: &[&str], checks: bool) -> Result<Value, String> {
        let words: Vec<String> = words.iter().map(|it| (*it).to_owned()).collect();
        let given = ArgumentArgs::default().read(&words).map_err(|it| it.what)?;
        let built = given.build(Some(&schema()), checks);
        built
            .map(|json| json.to_value())
            .map_err(|it| format!("{} | {}", it.what, it.remedy.unwrap_or_default()))
    }

    #[test]
    fn values_are_typed_by_the_schema() {
        for (words, expected) in [
            (&[][..], json!({})),
            (&["name=7"], json!({ "name": "7" })),
            (&["name="], json!({ "name": "" })),
            (&["count=7"], json!({ "count": 7 })),
            (&["count:=7"], json!({ "count": 7 })),
            (&["tags=a"], json!({ "tags": ["a"] })),
            (&["tags=a", "tags=b"], json!({ "tags": ["a", "b"] })),
            (&["sizes=1", "sizes=2"], json!({ "sizes": [1, 2] })),
            (&["sizes=[1,2]"], json!({ "sizes": [1, 2] })),
            (&["at.x=1.5", "at.y=2"], json!({ "at": { "x": 1.5, "y": 2 } })),
            (&["at={\"x\":1}"], json!({ "at": { "x": 1 } })),
            (&["sizes[0]=1", "sizes[1]=2"], json!({ "sizes": [1, 2] })),
            (
                &["points[0].x=1", "points[1].x=2", "points[0].y=3"],
                json!({ "points": [{ "x": 1, "y": 3 }, { "x": 2 }] }),
            ),
            (&["free[0][0]:=1", "free[0][1].a=b"], json!({ "free": [[1, { "a": "b" }]] })),
            (&["maybe=3"], json!({ "maybe": 3 })),
            (&["maybe=null"], json!({ "maybe": null })),
            (&["mode=fast"], json!({ "mode": "fast" })),
            (&["mode=2"], json!({ "mode": 2 })),
            (&["dry=true"], json!({ "dry": true })),
            (&["a.b=x"], json!({ "a.b": "x" })),
            (&["free=1"], json!({ "free": "1" })),
            (&["free:=[1]"], json!({ "free": [1] })),
            (&["{\"name\":\"a\"}", "count=1"], json!({ "name": "a", "count": 1 })),
        ] {
            assert_eq!(built(words), Ok(expected), "{words:?}");
        }
    }

    #[test]
    fn what_does_not_fit_is_said_with_what_would() {
        for (words, parts) in [
            (
                &["nmae=x"][..],
                &["there is no argument \"nmae\"", "takes name, count", "did you mean name?"][..],
            ),
            (&["count=abc"], &["count: expected integer, got \"abc\""]),
            (&["count=-1"], &["arguments.count", "0"]),
            (&["at.z=1"], &["there is no argument \"z\" in at.z", "takes x, y"]),
            (&["at.y=1"], &["x"]),
            (&["dry=maybe"], &["expected boolean"]),
            (&["mode=slow"], &["expected \"fast\" | 2"]),
            (&["name=a", "name=b"], &["name is given twice"]),
            (&["sizes[1]=1"], &["sizes[1]: sizes[0] comes first"]),
            (&["sizes[0]=x"], &["sizes[0]: expected integer, got \"x\""]),
            (&["points[0].z=1"], &["there is no argument \"z\" in points[0].z"]),
            (&["name=x", "name[0]=y"], &["name[0]: name is not an array"]),
            (&["name"], &["expected key=value"]),
            (&["=x"], &["expected key=value"]),
            (&["count:=x"], &["invalid JSON"]),
            (&["{\"nmae\":1}"], &["did you mean name?"]),
        ] {
            let told = built(words).unwrap_err();
            for part in parts {
                assert!(told.contains(part), "{words:?}: {told}");
            }
        }
    }

    #[test]
    fn unchecked_sends_anything() {
        assert_eq!(built_with(&["nmae=x"], false), Ok(json!({ "nmae": "x" })));
        assert_eq!(built_with(&["count=x"], false), Ok(json!({ "count": "x" })));
        assert_eq!(built_with(&["{\"count\":\"x\"}"], false), Ok(json!({ "count": "x" })));
    }

    #[test]
    fn a_whole_object_is_sent_to_the_letter() {
        let args = ArgumentArgs { json: Some("{ \"n\": 1.50 }".to_owned()), file: None };
        let built = args.read(&[]).unwrap().build(None, true).unwrap();
        assert_eq!(built.as_str(), "{ \"n\": 1.50 }");
    }

    #[test]
    fn arguments_are_typed_by_their_fields_and_others_by_their_looks() {
        let schema = json!({ "type": "object", "properties": {
            "zip": { "type": "string" }, "count": { "type": "integer" } } });
        let bare = |name: &str, text: &str| (name.to_owned(), Typed::Bare(text.to_owned()));
        let typed = vec![bare("zip", "01234"), bare("count", "2"), bare("other", "3")];
        let expected = json!({ "zip": "01234", "count": 2, "other": 3 });
        assert_eq!(from_members(&schema, typed), expected);
        // The server should reject this.
        let wrong = from_members(&schema, vec![bare("count", "two")]);
        assert_eq!(wrong, json!({ "count": "two" }));
    }
}
