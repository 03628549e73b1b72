//! Arguments from the command line: `key=value`, `key:=json`, files; an object typed by a schema.
//!
//! What is not given is not sent: no optional argument becomes `null` by itself.

mod typed;

use std::io::Read;
use std::path::{Path, PathBuf};

use bowline::{Json, base64};
use bowline_schema::Schema;
use clap::Args;
use serde_json::{Map, Value};

pub(crate) use self::typed::typed;
use crate::failure::Failure;
use crate::render::schema::kind;
use crate::schema::View;
use crate::text::did_you_mean;

/// Arguments as a whole.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ArgumentArgs {
    /// The arguments as a JSON object; KEY=VALUE adds to them
    #[arg(long, value_name = "OBJECT", conflicts_with = "file")]
    json: Option<String>,

    /// The arguments as a JSON object in a file; - is standard input
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Arguments as they were given, before anything is known of the tool.
#[derive(Debug, Default)]
pub(crate) struct Given {
    whole: Option<Json>,
    pairs: Vec<Pair>,
}

#[derive(Debug)]
struct Pair {
    key: String,
    value: Text,
}

/// What stands after the sign.
#[derive(Debug)]
enum Text {
    /// After `=`: what it is depends on the schema.
    Plain(String),
    /// After `:=`.
    Json(Value),
    /// After `=@` and `=-`: what was read.
    File(Vec<u8>),
}

impl ArgumentArgs {
    /// Reads the arguments, and the files that they name.
    ///
    /// # Errors
    /// When they make no sense, whatever the tool is.
    pub(crate) fn read(&self, words: &[String]) -> Result<Given, Failure> {
        let mut given = Given::default();
        if let Some(text) = &self.json {
            given.whole = Some(object(text.clone(), "--json")?);
        }
        if let Some(file) = &self.file {
            let bytes = read_source(file, "--file")?;
            let what = format!("--file {}", file.display());
            let text = String::from_utf8(bytes)
                .map_err(|_| Failure::usage(format!("{what}: it is no text")))?;
            given.whole = Some(object(text, &what)?);
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
fn object(text: String, what: &str) -> Result<Json, Failure> {
    let wrong = |problem: String| Failure::usage(format!("{what}: {problem}"));
    let json = Json::from_text(text).map_err(|error| wrong(format!("no JSON: {error}")))?;
    match json.is_object() {
        true => Ok(json),
        false => Err(wrong("expected an object: {…}".to_owned())),
    }
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
        Some(file) => Some(read_source(Path::new(file), key)?),
        None if value == "-" => Some(read_source(Path::new("-"), key)?),
        None => None,
    };
    let json = |text: &[u8]| {
        let value = serde_json::from_slice(text);
        value.map(Text::Json).map_err(|error| wrong(format!("no JSON: {error}")))
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
    let wrong =
        |error: std::io::Error| Failure::usage(format!("{what}: {}: {error}", file.display()));
    if file == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).map_err(wrong)?;
        return Ok(bytes);
    }
    std::fs::read(file).map_err(wrong)
}

impl Given {
    /// The arguments of a tool with this schema. Unless they are not to be checked, what the tool
    /// does not know and what does not fit is refused here, with what it expects.
    ///
    /// # Errors
    /// When they do not fit.
    pub(crate) fn build(&self, schema: Option<&Value>, checks: bool) -> Result<Json, Failure> {
        let any = Value::Bool(true);
        let view = View::new(schema.unwrap_or(&any));
        let knows = checks && schema.is_some();
        let arguments = match (&self.whole, self.pairs.is_empty()) {
            // To the letter.
            (Some(whole), true) => whole.clone(),
            (whole, _) => {
                let base = whole.as_ref().map(Json::to_value);
                let Some(Value::Object(mut object)) = base.or(Some(Value::Object(Map::new())))
                else {
                    return Err(Failure::usage("the arguments are no object"));
                };
                let mut touched = Vec::new();
                for pair in &self.pairs {
                    put(&mut object, view, pair, &mut touched, knows)?;
                }
                Value::Object(object).into()
            }
        };
        if let Some(schema) = schema.filter(|_| checks) {
            check(schema, view, &arguments)?;
        }
        Ok(arguments)
    }
}

/// Puts a value where its key says.
fn put(
    object: &mut Map<String, Value>,
    view: View<'_>,
    pair: &Pair,
    touched: &mut Vec<String>,
    checks: bool,
) -> Result<(), Failure> {
    let whole = known(view, &pair.key).is_some() || !pair.key.contains('.');
    let path: Vec<&str> = if whole { vec![&pair.key] } else { pair.key.split('.').collect() };
    let (last, parents) = path.split_last().unwrap_or((&"", &[]));
    let (mut place, mut view) = (object, Some(view));
    for name in parents {
        view = step(view, name, &pair.key, checks)?;
        let next = place.entry(*name).or_insert_with(|| Value::Object(Map::new()));
        place = next.as_object_mut().ok_or_else(|| {
            Failure::usage(format!("{}: {name} is no object, so it has no {last}", pair.key))
        })?;
    }
    let view = step(view, last, &pair.key, checks)?;
    let is_again = touched.contains(&pair.key);
    touched.push(pair.key.clone());
    let value = match value_of(pair, view) {
        Err(_) if !checks => value_of(pair, None)?,
        value => value?,
    };
    let takes_list = view.is_some_and(|view| {
        let kinds = view.kinds();
        kinds.array && !kinds.is_any()
    });
    match place.get_mut(*last) {
        Some(Value::Array(items)) if is_again && takes_list => match value {
            Value::Array(more) => items.extend(more),
            other => items.push(other),
        },
        Some(found) if is_again => {
            let one = found.take();
            let what = format!("{} is given twice, and takes one value", pair.key);
            if checks && view.is_some_and(|view| !view.kinds().array) {
                return Err(Failure::usage(what));
            }
            *found = match one {
                Value::Array(mut items) => {
                    items.push(value);
                    Value::Array(items)
                }
                one => Value::Array(vec![one, value]),
            };
        }
        _ => drop(place.insert((*last).to_owned(), value)),
    }
    Ok(())
}

/// The property of this name, if it is listed.
fn known<'a>(view: View<'a>, name: &str) -> Option<View<'a>> {
    view.fields().into_iter().find(|field| field.name == name).map(|field| field.view)
}

/// Goes down to a property. `None` where nothing is known of it.
fn step<'a>(
    view: Option<View<'a>>,
    name: &str,
    key: &str,
    checks: bool,
) -> Result<Option<View<'a>>, Failure> {
    let Some(view) = view else { return Ok(None) };
    match view.property(name) {
        Some(found) => Ok(Some(found)),
        None if !checks || !view.lists_properties() => Ok(None),
        None => Err(unknown(view, name, key)),
    }
}

fn unknown(view: View<'_>, name: &str, key: &str) -> Failure {
    let fields = view.fields();
    let names: Vec<&str> = fields.iter().map(|field| field.name).collect();
    let expects = match names.is_empty() {
        true => "takes no arguments".to_owned(),
        false => format!("takes {}", names.join(", ")),
    };
    let near = did_you_mean(name, names.iter().copied());
    let remedy = near.unwrap_or_else(|| "--unchecked sends it anyway".to_owned());
    let whole = if key == name { String::new() } else { format!(" in {key}") };
    Failure::usage(format!("there is no {name:?}{whole}: the tool {expects}")).with_remedy(remedy)
}

fn value_of(pair: &Pair, view: Option<View<'_>>) -> Result<Value, Failure> {
    let as_base64 = view.is_some_and(|view| view.text("contentEncoding") == Some("base64"));
    let text = match &pair.value {
        Text::Json(value) => return Ok(value.clone()),
        Text::Plain(text) => text,
        Text::File(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) if !as_base64 => text,
            // Bytes travel as base64, since JSON has no other way.
            _ => return Ok(Value::String(base64::STANDARD.encode(bytes))),
        },
    };
    let Some(view) = view else { return Ok(Value::String(text.to_owned())) };
    typed(text, view).map_err(|()| {
        let text = crate::text::cut(text, 60);
        let what = format!("{}: expected {}, got {text:?}", pair.key, kind(view, 0));
        Failure::usage(what).with_remedy("key:=JSON gives any value; --unchecked sends it")
    })
}

/// Whether the arguments fit the schema.
fn check(schema: &Value, view: View<'_>, arguments: &Json) -> Result<(), Failure> {
    let value = arguments.to_value();
    // A name that is spelt wrong is said before what is missing because of it.
    if let Some(object) = value.as_object().filter(|_| view.lists_properties()) {
        for name in object.keys() {
            step(Some(view), name, name, true)?;
        }
    }
    // What cannot be compiled is the server's fault, and its judgement.
    let Ok(compiled) = Schema::compile(schema) else { return Ok(()) };
    compiled.validate("arguments", &value).map_err(|invalid| {
        Failure::usage(invalid.to_string())
            .with_remedy("`bowline tools` shows what it takes; --unchecked sends it anyway")
    })
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
                &["there is no \"nmae\"", "takes name, count", "did you mean name?"][..],
            ),
            (&["count=abc"], &["count: expected integer, got \"abc\""]),
            (&["count=-1"], &["arguments.count", "0"]),
            (&["at.z=1"], &["there is no \"z\" in at.z", "takes x, y"]),
            (&["at.y=1"], &["x"]),
            (&["dry=maybe"], &["expected boolean"]),
            (&["mode=slow"], &["expected \"fast\" | 2"]),
            (&["name=a", "name=b"], &["name is given twice"]),
            (&["name"], &["expected key=value"]),
            (&["=x"], &["expected key=value"]),
            (&["count:=x"], &["no JSON"]),
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
}
