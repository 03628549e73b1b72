//! An OpenAPI document: what it may be, and how its references are followed.

use http::Method;
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value};

use bowline_web::Url;

/// The most bytes of a document.
pub const LONGEST_DOCUMENT: usize = 16 << 20;

/// The most references that lead to one another before something is reached.
const HOPS: usize = 32;

/// The methods that become tools. TRACE does not: its answer repeats the credentials.
const METHODS: [(&str, Method); 7] = [
    ("get", Method::GET),
    ("put", Method::PUT),
    ("post", Method::POST),
    ("delete", Method::DELETE),
    ("options", Method::OPTIONS),
    ("head", Method::HEAD),
    ("patch", Method::PATCH),
];

/// Why a document cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenApiError {
    /// It is too big.
    #[error("the document is larger than {LONGEST_DOCUMENT} bytes")]
    TooLarge,
    /// It is written in YAML.
    #[error(
        "the document is YAML, and only JSON is read; help: convert it, for example with \
         `yq -o json openapi.yaml > openapi.json`"
    )]
    Yaml,
    /// It is not JSON, or nests too deeply.
    #[error("the document is not valid JSON: {0}")]
    Json(String),
    /// It is not an OpenAPI document of a known version.
    #[error("expected an OpenAPI document of version 3.0, 3.1 or 3.2, found {0}")]
    Version(String),
    /// Nothing says where the API is.
    #[error("{0}; help: say where the API is, with base = \"https://…\"")]
    Base(String),
    /// It has more operations than a server may have.
    #[error(
        "{count} operations are chosen, and {limit} are the most; help: choose fewer with \
         tools = {{ allow = […] }}"
    )]
    TooMany {
        /// How many it has.
        count: usize,
        /// How many it may have.
        limit: usize,
    },
    /// Its schemas are larger than a server's may be.
    #[error(
        "the schemas are too large; help: choose fewer operations with tools = {{ allow = […] }}"
    )]
    TooComplex,
    /// No operation can be used.
    #[error("no operation can be used{0}")]
    Empty(String),
    /// A header of the configuration is not valid.
    #[error("headers.{0}: not a valid name or value of a header")]
    Header(String),
}

/// An OpenAPI document.
#[derive(Debug)]
pub struct Document {
    root: Value,
    /// Whether its schemas are those of 3.0, which are not JSON Schema.
    pub(super) is_old: bool,
    digest: String,
}

impl Document {
    /// Reads a document.
    ///
    /// # Errors
    /// When it is too large, not JSON, or not OpenAPI 3.
    pub fn parse(bytes: &[u8]) -> Result<Self, OpenApiError> {
        if bytes.len() > LONGEST_DOCUMENT {
            return Err(OpenApiError::TooLarge);
        }
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        let root: Value = serde_json::from_slice(bytes).map_err(|error| {
            let is_json = bytes.trim_ascii_start().starts_with(b"{");
            if is_json { OpenApiError::Json(error.to_string()) } else { not_json(bytes, &error) }
        })?;
        let version = root.get("openapi").and_then(Value::as_str).unwrap_or_default();
        if !["3.0", "3.1", "3.2"].iter().any(|it| is_version(version, it)) {
            return Err(OpenApiError::Version(found(&root, version)));
        }
        let is_old = is_version(version, "3.0");
        let digest = digest(&SHA256, bytes);
        let digest = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { root, is_old, digest })
    }

    /// The SHA-256 of what was read.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Where the document says that the API is; `from` is where the document was found.
    ///
    /// # Errors
    /// When it does not say so, or not usably.
    pub fn server(&self, from: Option<&Url>) -> Result<Url, OpenApiError> {
        let wrong = |what: String| OpenApiError::Base(what);
        let Some(server) = self.root.pointer("/servers/0") else {
            let what = "the document names no server";
            return Err(wrong(what.to_owned()));
        };
        let url = server.get("url").and_then(Value::as_str).unwrap_or_default();
        let filled = filled(url, server.get("variables"));
        let parsed = match from {
            Some(from) => from.join(&filled),
            None => Url::parse(&filled),
        };
        let parsed = parsed.map_err(|why| wrong(format!("servers[0].url: expected {why}")))?;
        let is_here = from.is_some_and(|from| from.is_same_origin(&parsed));
        if parsed.is_loopback() && !is_here {
            let what = "the document names this machine as its server";
            return Err(wrong(what.to_owned()));
        }
        Ok(parsed)
    }

    /// All operations: method, path, the item of the path, and the operation.
    pub(super) fn operations(&self) -> impl Iterator<Item = (&Method, &str, &Value, &Value)> {
        let paths = self.root.get("paths").and_then(Value::as_object);
        paths.into_iter().flatten().flat_map(move |(path, item)| {
            let item = self.follow(item).unwrap_or(item);
            METHODS.iter().filter_map(move |(name, method)| {
                Some((method, path.as_str(), item, item.get(*name)?))
            })
        })
    }

    /// What a value is, or refers to.
    ///
    /// # Errors
    /// When a reference leads nowhere, elsewhere, or to itself.
    pub(super) fn follow<'a>(&'a self, mut value: &'a Value) -> Result<&'a Value, String> {
        for _ in 0..HOPS {
            match reference(value) {
                Some(reference) => value = self.at(reference)?,
                None => return Ok(value),
            }
        }
        let what = reference(value).unwrap_or_default();
        Err(format!("{what:?} refers to itself"))
    }

    /// What a reference leads to.
    ///
    /// # Errors
    /// When that is nowhere, or not in this document.
    pub(super) fn at(&self, reference: &str) -> Result<&Value, String> {
        let Some(pointer) = reference.strip_prefix('#') else {
            let help = "help: put everything into one document";
            return Err(format!("{reference:?} is in another document; {help}"));
        };
        let pointer = decoded(pointer);
        let found = self.root.pointer(&pointer).filter(|_| pointer.starts_with('/'));
        found.ok_or_else(|| format!("{reference:?} leads nowhere"))
    }
}

/// The reference that a value is, if it is one.
pub(super) fn reference(value: &Value) -> Option<&str> {
    value.get("$ref")?.as_str()
}

/// A text of an object.
pub(super) fn text<'a>(object: &'a Value, member: &str) -> Option<&'a str> {
    object.get(member)?.as_str().filter(|it| !it.trim().is_empty())
}

/// Whether a version is this one, whatever its last number.
fn is_version(version: &str, wanted: &str) -> bool {
    version.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn found(root: &Value, version: &str) -> String {
    match root.get("swagger").and_then(Value::as_str) {
        Some(old) => format!(
            "Swagger {}; help: convert it, for example with `npx swagger2openapi swagger.json`",
            clipped(old)
        ),
        None if version.is_empty() => "no member \"openapi\"".to_owned(),
        None => format!("version {:?}", clipped(version)),
    }
}

fn not_json(bytes: &[u8], error: &serde_json::Error) -> OpenApiError {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.lines().take(200);
    let is_yaml = lines.any(|it| {
        it.starts_with("openapi:") || it.starts_with("swagger:") || it.starts_with("%YAML")
    });
    if is_yaml { OpenApiError::Yaml } else { OpenApiError::Json(error.to_string()) }
}

/// The beginning of a text of the document.
pub(super) fn clipped(text: &str) -> String {
    text.chars().take(60).collect()
}

/// A URL with the defaults of its variables.
fn filled(url: &str, variables: Option<&Value>) -> String {
    let default = |name: &str| variables?.get(name)?.get("default")?.as_str();
    let none = Map::new();
    let names = variables.and_then(Value::as_object).unwrap_or(&none).keys();
    names.fold(url.to_owned(), |url, name| {
        url.replace(&format!("{{{name}}}"), default(name).unwrap_or_default())
    })
}

/// A fragment without percent-encoding.
fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|it| std::str::from_utf8(it).ok());
        let byte = digits.and_then(|it| u8::from_str_radix(it, 16).ok());
        match byte.filter(|_| first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document(value: &Value) -> Document {
        Document::parse(value.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn what_is_not_openapi_says_what_it_is() {
        for (text, why) in [
            ("openapi: 3.0.0\ninfo:\n", "is YAML"),
            ("# pets\nopenapi: 3.1.0\n", "is YAML"),
            ("{\"openapi\": ", "not valid JSON"),
            ("<html>", "not valid JSON"),
            ("{}", "no member \"openapi\""),
            ("[]", "no member \"openapi\""),
            (r#"{"swagger": "2.0"}"#, "Swagger 2.0; help: convert it"),
            (r#"{"openapi": "4.0.0"}"#, "version \"4.0.0\""),
            (r#"{"openapi": "3.10.0"}"#, "version \"3.10.0\""),
        ] {
            let told = Document::parse(text.as_bytes()).unwrap_err().to_string();
            assert!(told.contains(why), "{text}: {told}");
        }
        let deep = format!("{{\"openapi\": {}", "[".repeat(100_000));
        let told = Document::parse(deep.as_bytes()).unwrap_err().to_string();
        assert!(told.contains("recursion limit"), "{told}");
        let huge = vec![b' '; LONGEST_DOCUMENT + 1];
        assert!(matches!(Document::parse(&huge), Err(OpenApiError::TooLarge)));
    }

    #[test]
    fn references_stay_in_the_document_and_end() {
        let document = document(&json!({
            "openapi": "3.0.3",
            "a": { "$ref": "#/b" }, "b": { "$ref": "#/c~1d%20e" }, "c/d e": { "found": 1 },
            "x": { "$ref": "#/y" }, "y": { "$ref": "#/x" },
        }));
        let follow = |reference: &str| {
            let value = json!({ "$ref": reference });
            document.follow(&value).cloned()
        };
        assert_eq!(follow("#/a"), Ok(json!({ "found": 1 })));
        for (reference, why) in [
            ("#/x", "refers to itself"),
            ("#/none", "leads nowhere"),
            ("#name", "leads nowhere"),
            ("other.json#/a", "in another document"),
            ("http://169.254.169.254/latest", "in another document"),
            ("file:///etc/passwd", "in another document"),
        ] {
            let told = follow(reference).unwrap_err();
            assert!(told.contains(why), "{reference}: {told}");
        }
    }

    #[test]
    fn the_first_server_counts_unless_it_is_this_machine() {
        let at = |url: &str, from: Option<&str>| {
            let variables = json!({ "region": { "default": "eu" } });
            let servers = json!([{ "url": url, "variables": variables }]);
            let document = document(&json!({ "openapi": "3.1.0", "servers": servers }));
            let from = from.map(|it| Url::parse(it).unwrap());
            let server = document.server(from.as_ref());
            server.map(|it| it.as_str().to_owned()).map_err(|it| it.to_string())
        };
        let from = Some("https://a.example/docs/openapi.json");
        assert_eq!(at("https://{region}.example/v1", None).unwrap(), "https://eu.example/v1");
        assert_eq!(at("/v2", from).unwrap(), "https://a.example/v2");
        let near = Some("http://127.0.0.1:80/openapi.json");
        assert_eq!(at("/v2", near).unwrap(), "http://127.0.0.1:80/v2");
        for (url, from) in [
            ("/v2", None),
            ("http://localhost:1/", None),
            ("http://127.0.0.1/", from),
            ("ftp://a", None),
        ] {
            let told = at(url, from).unwrap_err();
            assert!(told.contains("help: say where the API is, with base"), "{url}: {told}");
        }
    }
}
