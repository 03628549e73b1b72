//! Random values of every type, as the JSON that a peer of the newest revision would send.
//!
//! JSON rather than structs: each value is then read, adapted and written, so that one case tests
//! all three. Members that the specification does not define are left to
//! [`survival`](crate::survival).

pub(crate) mod capability;
pub(crate) mod content;
pub(crate) mod item;
pub(crate) mod params;
pub(crate) mod question;
pub(crate) mod result;

use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

/// Random JSON.
pub(crate) type Json = BoxedStrategy<Value>;

/// An object, member by member.
#[derive(Default)]
pub(crate) struct Object(Vec<BoxedStrategy<Option<(&'static str, Value)>>>);

impl Object {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// A member that is always present.
    pub(crate) fn with(mut self, name: &'static str, value: Json) -> Self {
        self.0.push(value.prop_map(move |value| Some((name, value))).boxed());
        self
    }

    /// A member that may be absent.
    pub(crate) fn maybe(mut self, name: &'static str, value: Json) -> Self {
        let member = option::of(value);
        self.0.push(member.prop_map(move |value| value.map(|value| (name, value))).boxed());
        self
    }

    pub(crate) fn build(self) -> Json {
        let object = |members: Vec<Option<(&str, Value)>>| {
            members.into_iter().flatten().map(|(name, value)| (name.to_owned(), value)).collect()
        };
        self.0.prop_map(object).boxed()
    }
}

/// Exactly this value.
pub(crate) fn just(value: impl Into<Value>) -> Json {
    Just(value.into()).boxed()
}

/// One of these strings.
pub(crate) fn word(words: &'static [&'static str]) -> Json {
    select(words).prop_map(Value::from).boxed()
}

/// One of these strategies.
pub(crate) fn one_of(choices: Vec<Json>) -> Json {
    proptest::strategy::Union::new(choices).boxed()
}

/// A list of up to two items.
pub(crate) fn list(item: Json) -> Json {
    prop::collection::vec(item, 0..3).prop_map(Value::from).boxed()
}

/// An object with arbitrary keys.
pub(crate) fn map(value: Json) -> Json {
    let pairs = prop::collection::vec((select(KEYS), value), 0..3);
    let object = |pairs: Vec<(&str, Value)>| {
        pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    };
    pairs.prop_map(object).boxed()
}

const KEYS: &[&str] = &["b", "a", "com.example/key", "", "with \"quotes\"", "naïve", "ключ"];

/// Text: mostly awkward, sometimes arbitrary.
pub(crate) fn text() -> Json {
    let awkward = word(&[
        "plain",
        "",
        " ",
        "two\nlines\r\n\tand a tab",
        "\"quoted\" \\ back",
        "\0\u{7f}\u{1b}[31m",
        "\u{2028}\u{feff}\u{202e}",
        "日本語 🚀 e\u{301}",
        "null",
        "{\"type\":\"text\"}",
    ]);
    prop_oneof![6 => awkward, 1 => any::<String>().prop_map(Value::from)].boxed()
}

pub(crate) fn uri() -> Json {
    word(&["https://example.com/a?b=%20#c", "file:///tmp/x", "mem:1", "skill://a/SKILL.md"])
}

pub(crate) fn uri_template() -> Json {
    word(&["file:///{path}", "mem:{a}/{b}", "mem:1"])
}

pub(crate) fn base64() -> Json {
    word(&["", "AAAA", "aGVsbG8="])
}

pub(crate) fn moment() -> Json {
    word(&["2026-07-28T12:00:00Z", "2025-11-25T00:00:00.5+01:00"])
}

pub(crate) fn flag() -> Json {
    any::<bool>().prop_map(Value::from).boxed()
}

/// A count, up to the maximum.
pub(crate) fn count() -> Json {
    select(&[0, 1, 60_000, u64::MAX][..]).prop_map(Value::from).boxed()
}

/// From 0 to 1.
pub(crate) fn share() -> Json {
    select(&[0.0, 0.25, 1.0][..]).prop_map(Value::from).boxed()
}

pub(crate) fn number() -> Json {
    let whole = select(&[0, 1, -7, i64::MIN, i64::MAX][..]).prop_map(Value::from);
    let broken = select(&[0.5, -1.25, 1e9][..]).prop_map(Value::from);
    prop_oneof![whole, broken].boxed()
}

/// A string or an integer.
pub(crate) fn id() -> Json {
    one_of(vec![text(), just(1), just(u64::MAX), just(i64::MIN)])
}

/// Any JSON, `null` included.
pub(crate) fn anything() -> Json {
    let leaf = one_of(vec![just(Value::Null), flag(), number(), text()]);
    prop_oneof![3 => leaf.clone(), 1 => list(leaf.clone()), 1 => map(leaf)].boxed()
}

/// Any object.
pub(crate) fn any_object() -> Json {
    map(anything())
}

/// `_meta` of items, results and notifications.
pub(crate) fn meta() -> Json {
    any_object()
}

/// `_meta` of a request: what 2026-07-28 requires is always present.
pub(crate) fn request_meta() -> Json {
    Object::new()
        .with("io.modelcontextprotocol/protocolVersion", just("2026-07-28"))
        .with("io.modelcontextprotocol/clientCapabilities", capability::modern_client())
        .maybe("io.modelcontextprotocol/clientInfo", capability::implementation())
        .maybe("io.modelcontextprotocol/logLevel", level())
        .maybe("progressToken", id())
        .maybe("traceparent", text())
        .maybe("com.example/nested", anything())
        .build()
}

/// `_meta` of a result.
pub(crate) fn result_meta() -> Json {
    Object::new()
        .maybe("io.modelcontextprotocol/serverInfo", capability::implementation())
        .maybe("com.example/nested", anything())
        .build()
}

pub(crate) fn level() -> Json {
    word(&["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"])
}

pub(crate) fn role() -> Json {
    word(&["user", "assistant"])
}

pub(crate) fn icons() -> Json {
    let icon = Object::new()
        .with("src", word(&["https://example.com/i.png", "data:image/png;base64,AAAA"]))
        .maybe("mimeType", text())
        .maybe("sizes", one_of(vec![just(json!(["48x48", "any"])), just(json!([]))]))
        .maybe("theme", word(&["light", "dark"]));
    list(icon.build())
}

pub(crate) fn annotations() -> Json {
    Object::new()
        .maybe("audience", list(role()))
        .maybe("priority", share())
        .maybe("lastModified", moment())
        .build()
}
