//! Parameters of an operation: where their values go, and how they are spelled there.

use std::fmt::Write;

use http::{HeaderName, HeaderValue};
use serde_json::Value;

use super::document::text;

/// Where a parameter goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Path,
    Query,
    Header,
}

impl Place {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
        }
    }
}

/// How several values are spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// `a,b`
    Listed(&'static str),
    /// `name=a&name=b`
    Repeated,
    /// `name[member]=a`
    Deep,
    /// As JSON.
    Json,
}

/// One parameter of an operation.
#[derive(Debug, Clone)]
pub(super) struct Parameter {
    /// What callers call it.
    pub(super) argument: String,
    /// What the API calls it.
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) style: Style,
    /// Whether members of an object are `name=value`.
    pub(super) explodes: bool,
    pub(super) is_required: bool,
}

impl Parameter {
    /// Reads a parameter, without its references. `None` is one that is not the caller's: cookies,
    /// credentials and what belongs to HTTP itself.
    ///
    /// # Errors
    /// When it is spelled in a way that is not known.
    pub(super) fn read(value: &Value) -> Result<Option<Self>, String> {
        let name = text(value, "name").ok_or("a parameter has no name")?.to_owned();
        let place = match text(value, "in") {
            Some("path") => Place::Path,
            Some("query") => Place::Query,
            Some("header") if is_reserved(&name) => return Ok(None),
            Some("header") if HeaderName::try_from(&name).is_ok() => Place::Header,
            Some("cookie") => return Ok(None),
            place => {
                let place = place.unwrap_or_default();
                return Err(format!("parameter {name:?} in {place:?} is not supported"));
            }
        };
        let is_form = place == Place::Query;
        let style = text(value, "style").unwrap_or(if is_form { "form" } else { "simple" });
        let explodes = value.get("explode").and_then(Value::as_bool);
        let explodes = explodes.unwrap_or(style == "form");
        let style = match (style, place) {
            _ if value.get("content").is_some() => Style::Json,
            ("form", Place::Query) if explodes => Style::Repeated,
            ("form", Place::Query) | ("simple", Place::Path | Place::Header) => Style::Listed(","),
            ("spaceDelimited", Place::Query) => Style::Listed("%20"),
            ("pipeDelimited", Place::Query) => Style::Listed("%7C"),
            ("deepObject", Place::Query) => Style::Deep,
            _ => return Err(format!("parameter {name:?}: the style {style:?} is not supported")),
        };
        let is_required = place == Place::Path || value.get("required") == Some(&Value::Bool(true));
        Ok(Some(Self { argument: argument(&name), name, place, style, explodes, is_required }))
    }

    /// The spelling of a value in the path or the query.
    ///
    /// # Errors
    /// When it cannot be spelled, or would lead to another path; for the model.
    pub(super) fn spelled(&self, value: &Value) -> Result<String, String> {
        let mut out = String::new();
        if self.place == Place::Path {
            let text = self.joined(value, ",", |text| Ok(text.to_owned()))?;
            // A server may decode slashes before it follows dots.
            let is_dots = |it: &str| matches!(it, "." | "..");
            if text.is_empty() || text.split(['/', '\\']).any(is_dots) {
                return Err(format!("{}: a path cannot have {text:?} in it", self.argument));
            }
            return self.joined(value, ",", |text| Ok(encoded(text)));
        }
        match (self.style, value) {
            (Style::Repeated, Value::Array(all)) => {
                for value in all {
                    push(&mut out, &self.name, &self.plain(value)?);
                }
            }
            (Style::Repeated, Value::Object(members)) => {
                for (name, value) in members {
                    push(&mut out, name, &self.plain(value)?);
                }
            }
            (Style::Deep, Value::Object(members)) => {
                for (name, value) in members {
                    let name = format!("{}[{name}]", self.name);
                    push(&mut out, &name, &self.plain(value)?);
                }
            }
            (Style::Listed(joint), _) => {
                let joined = self.joined(value, joint, |text| Ok(encoded(text)))?;
                out = format!("{}={joined}", encoded(&self.name));
            }
            _ => {
                let text = self.plain_or_json(value)?;
                push(&mut out, &self.name, &text);
            }
        }
        Ok(out)
    }

    /// The value of a header.
    ///
    /// # Errors
    /// When a header cannot have it; for the model.
    pub(super) fn header(&self, value: &Value) -> Result<HeaderValue, String> {
        let text = self.joined(value, ",", |text| Ok(text.to_owned()))?;
        let is_plain = text.bytes().all(|it| it == b' ' || it.is_ascii_graphic());
        let header = HeaderValue::from_str(&text).ok().filter(|_| is_plain);
        header.ok_or_else(|| format!("{}: a header can have only ASCII characters", self.argument))
    }

    fn joined(
        &self,
        value: &Value,
        joint: &str,
        spell: impl Fn(&str) -> Result<String, String>,
    ) -> Result<String, String> {
        let parts: Result<Vec<_>, String> = match value {
            _ if self.style == Style::Json => return spell(&value.to_string()),
            Value::Array(all) => all.iter().map(|it| spell(&self.plain(it)?)).collect(),
            Value::Object(members) => {
                let sign = if self.explodes { "=" } else { joint };
                let member = |(name, value): (&String, &Value)| {
                    Ok(format!("{}{sign}{}", spell(name)?, spell(&self.plain(value)?)?))
                };
                members.iter().map(member).collect()
            }
            value => return spell(&self.plain(value)?),
        };
        Ok(parts?.join(joint))
    }

    fn plain_or_json(&self, value: &Value) -> Result<String, String> {
        if self.style == Style::Json { Ok(value.to_string()) } else { self.plain(value) }
    }

    fn plain(&self, value: &Value) -> Result<String, String> {
        match value {
            Value::String(text) => Ok(text.clone()),
            Value::Number(_) | Value::Bool(_) | Value::Null => Ok(value.to_string()),
            _ => Err(format!("{} cannot have lists or objects in it", self.argument)),
        }
    }
}

fn push(out: &mut String, name: &str, text: &str) {
    let joint = if out.is_empty() { "" } else { "&" };
    // Writing to a string cannot fail.
    let _ = write!(out, "{joint}{}={}", encoded(name), encoded(text));
}

/// Whether a header is not a caller's to choose.
fn is_reserved(name: &str) -> bool {
    const OURS: [&str; 25] = [
        "accept",
        "accept-encoding",
        "authorization",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "cookie",
        "expect",
        "forwarded",
        "host",
        "http2-settings",
        "keep-alive",
        "origin",
        "range",
        "referer",
        "set-cookie",
        "te",
        "traceparent",
        "tracestate",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "user-agent",
        "via",
    ];
    let name = name.to_ascii_lowercase();
    let is_hop = ["proxy-", "x-forwarded-", "sec-"].iter().any(|it| name.starts_with(it));
    // They say which method is meant, which rules and hints are about.
    let is_method = name.contains("method-override") || name == "x-http-method";
    OURS.contains(&name.as_str()) || is_hop || is_method
}

/// A name as models' providers take names of arguments.
pub(super) fn argument(name: &str) -> String {
    let fits = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-' | '.');
    let name: String = name.chars().map(|it| if fits(it) { it } else { '_' }).take(64).collect();
    match name.trim_end_matches('_') {
        "" => "argument".to_owned(),
        name => name.to_owned(),
    }
}

/// A text with everything encoded that could mean something else in a URL.
pub(super) fn encoded(text: &str) -> String {
    encode(text, |byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte))
}

/// The text of a path in a document, in which slashes and what is encoded mean what they say.
pub(super) fn encoded_path(text: &str) -> String {
    encode(text, |byte| byte.is_ascii_alphanumeric() || b"-._~/%:@!$&'()*+,;=".contains(&byte))
}

fn encode(text: &str, is_kept: impl Fn(u8) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if is_kept(byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parameter(value: &Value) -> Parameter {
        Parameter::read(value).unwrap().unwrap()
    }

    #[test]
    fn values_are_spelled_as_the_document_says() {
        let spelled = |place: &str, more: Value, value: Value| {
            let mut parameter_ = json!({ "name": "n", "in": place });
            parameter_.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            parameter(&parameter_).spelled(&value)
        };
        let list = || json!(["a b", 1]);
        let object = || json!({ "k": "v&w", "l": true });
        for (place, more, value, expected) in [
            ("path", json!({}), json!("a/b ü%2e"), "a%2Fb%20%C3%BC%252e"),
            ("path", json!({}), list(), "a%20b,1"),
            ("path", json!({ "explode": true }), object(), "k=v%26w,l=true"),
            (
                "path",
                json!({ "content": {} }),
                object(),
                "%7B%22k%22%3A%22v%26w%22%2C%22l%22%3Atrue%7D",
            ),
            ("query", json!({}), json!("a&b=c#?"), "n=a%26b%3Dc%23%3F"),
            ("query", json!({}), list(), "n=a%20b&n=1"),
            ("query", json!({}), object(), "k=v%26w&l=true"),
            ("query", json!({ "explode": false }), list(), "n=a%20b,1"),
            ("query", json!({ "style": "pipeDelimited" }), list(), "n=a%20b%7C1"),
            ("query", json!({ "style": "deepObject" }), object(), "n%5Bk%5D=v%26w&n%5Bl%5D=true"),
            (
                "query",
                json!({ "content": { "application/json": {} } }),
                list(),
                "n=%5B%22a%20b%22%2C1%5D",
            ),
        ] {
            assert_eq!(
                spelled(place, more.clone(), value.clone()).as_deref(),
                Ok(expected),
                "{more}"
            );
        }
        for value in [json!([[1]]), json!({ "a": {} })] {
            assert!(spelled("query", json!({}), value).unwrap_err().contains("lists or objects"));
        }
    }

    #[test]
    fn a_value_never_leads_to_another_path() {
        let id = parameter(&json!({ "name": "id", "in": "path" }));
        for value in
            ["", ".", "..", "../admin", "a/../b", "..\\admin", "a\\..", "./a", "/..", "x/."]
        {
            let told = id.spelled(&json!(value)).unwrap_err();
            assert!(told.contains("a path cannot have"), "{value}: {told}");
        }
        assert!(id.spelled(&json!([".."])).is_err());
        for (value, expected) in [("...", "..."), ("a..b", "a..b"), ("/admin", "%2Fadmin")] {
            assert_eq!(id.spelled(&json!(value)).unwrap(), expected);
        }
    }

    #[test]
    fn headers_hold_one_line_and_never_credentials() {
        let header = parameter(&json!({ "name": "X-Tag", "in": "header" }));
        assert_eq!(header.header(&json!(["a", 1])).unwrap(), "a,1");
        for value in ["a\r\nHost: evil", "a\nb", "a\0", "ü", "a\tb"] {
            assert!(header.header(&json!(value)).is_err(), "{value:?}");
        }
        for name in [
            "Authorization",
            "COOKIE",
            "host",
            "Content-Length",
            "X-Forwarded-For",
            "Proxy-Authorization",
            "X-HTTP-Method-Override",
        ] {
            let read = Parameter::read(&json!({ "name": name, "in": "header" }));
            assert!(read.unwrap().is_none(), "{name}");
        }
        assert!(Parameter::read(&json!({ "name": "sid", "in": "cookie" })).unwrap().is_none());
        for (name, place) in [("a b", "header"), ("a\r\nb", "header"), ("a", "body")] {
            assert!(Parameter::read(&json!({ "name": name, "in": place })).is_err(), "{name:?}");
        }
    }
}
