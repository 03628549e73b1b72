//! The deserializer yields what `serde_json` yields, or nothing.

use std::collections::{BTreeMap, HashMap};

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::*;
use crate::json::Json;
use crate::model::{CallToolParams, CallToolResult, ContentBlock};

/// Deserializes a text with both.
fn check<'a, T: Deserialize<'a> + PartialEq + std::fmt::Debug>(text: &'a str) -> bool {
    let Ok(read) = from_str::<T>(text) else { return false };
    match serde_json::from_str::<T>(text) {
        Ok(book) => assert_eq!(read, book, "{text}"),
        Err(error) => panic!("{text}: {error}"),
    }
    true
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Everything {
    text: String,
    #[serde(default)]
    maybe: Option<String>,
    #[serde(default)]
    number: Option<i64>,
    #[serde(default)]
    wide: Option<u128>,
    #[serde(default)]
    float: f64,
    #[serde(default)]
    flag: bool,
    #[serde(default)]
    letter: Option<char>,
    #[serde(default)]
    unit: (),
    #[serde(default)]
    pair: Option<(u8, String)>,
    #[serde(default)]
    triple: Option<Triple>,
    #[serde(default)]
    list: Vec<Choice>,
    #[serde(default)]
    map: BTreeMap<String, Option<Wrapped>>,
    #[serde(default)]
    numbered: HashMap<u32, bool>,
    #[serde(default)]
    kept: Option<Json>,
    #[serde(default)]
    tree: Value,
    #[serde(default)]
    inner: Option<Box<Self>>,
    #[serde(flatten)]
    more: BTreeMap<String, Value>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Wrapped(String);

#[derive(Debug, PartialEq, Deserialize)]
struct Triple(u8, i8, f32);

#[derive(Debug, PartialEq, Deserialize)]
enum Choice {
    One,
    Two(u8),
    Three { text: String },
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Strict<'a> {
    #[serde(borrow)]
    borrowed: &'a str,
    #[serde(borrow, default)]
    either: Cow<'a, str>,
}

const EVERYTHING: &str = r#" { "text" : "a \"quoted\" \u00e9\ud83e\udd80\/\b\f\n\r\t", "maybe":null,
    "number":-7,"wide":340282366920938463463374607431768211455,"float":1e-3,"flag":true,
    "letter":"é","unit":null,"pair":[1,"b"],"triple":[1,-1,0.5],
    "list":["One",{"Two":2},{"Three":{"text":"x"}}],"map":{"a":"b","c":null},
    "numbered":{}, "kept": {"z": 1.10, "a":[ ] },"tree":{"b":[1,"2",null,{"c":false}]},
    "inner":{"text":""},"beyond":[{}], "more" : 1 } "#;

#[test]
fn plain_text_is_read() {
    assert!(check::<Everything>(EVERYTHING));
    assert!(check::<Value>(EVERYTHING));
    assert!(check::<Strict<'_>>(r#"{"borrowed":"a","either":"b\n"}"#));
    assert!(check::<Vec<Option<Vec<u8>>>>("[[1,2],null,[]]"));
    assert!(check::<Wrapped>(r#""a""#));
    assert!(check::<(String, Wrapped)>(r#"["a","\\"]"#));
    assert!(check::<i64>(" 7 "));
    let raw: &RawValue = from_str(r#" {"a": 1} "#).unwrap();
    assert_eq!(raw.get(), r#"{"a": 1}"#);
}

#[test]
fn text_that_serde_json_rejects_is_not_read() {
    for text in [
        "",
        "{}",
        "[]",
        r#""a"#,
        r#"{"text":1}"#,
        r#"{"text":"a","text":"b"}"#,
        r#"{"text":"a"}x"#,
        r#"{"text":"a",}"#,
        r#"{"text":"a" "maybe":1}"#,
        r#"{"text":"\ud800"}"#,
        r#"{"text":"\ud800\u0041"}"#,
        r#"{"text":"\udc00"}"#,
        r#"{"text":"\u00g0"}"#,
        r#"{"text":"\x"}"#,
        "{\"text\":\"\n\"}",
        r#"{"text":"a","pair":[1]}"#,
        r#"{"text":"a","pair":[1,"b",2]}"#,
        r#"{"text":"a","pair":[1,"b",]}"#,
        r#"{"text":"a","wide":1.5}"#,
        r#"{"text":"a","number":01}"#,
        r#"{"text":"a","list":["Four"]}"#,
        r#"{"text":"a","list":[{"Two":1,"One":2}]}"#,
    ] {
        assert!(serde_json::from_str::<Everything>(text).is_err(), "{text}");
        assert_eq!(from_str::<Everything>(text).err(), Some(Odd), "{text}");
    }
    for text in [r#"{"borrowed":"\n"}"#, r#"{"borrowed":"a","other":1}"#] {
        assert!(serde_json::from_str::<Strict<'_>>(text).is_err(), "{text}");
        assert_eq!(from_str::<Strict<'_>>(text).err(), Some(Odd), "{text}");
    }
}

#[test]
fn a_closed_object_has_no_members_that_its_type_ignores() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Point {
        x: i64,
        #[serde(default)]
        inner: Option<Box<Self>>,
    }
    let check = |text: &str, is_plain: bool| {
        assert_eq!(from_closed_str::<Point>(text).is_ok(), is_plain, "{text}");
        assert!(from_str::<Point>(text).is_ok(), "{text}");
    };
    check(r#"{"x":1}"#, true);
    check(r#"{"x":1,"y":2}"#, false);
    check(r#"{"y":{},"x":1}"#, false);
    check(r#"{"x":1,"inner":{"x":2,"y":3}}"#, true);
    // Nobody knows the members of a map, nor which of them a flattened struct ignores.
    assert!(from_closed_str::<BTreeMap<String, u8>>(r#"{"x":1}"#).is_err());
    assert!(from_closed_str::<Value>("{}").is_err());
    assert!(from_closed_str::<Json>("{}").is_ok());
}

#[test]
fn depth_is_limited_as_in_frames() {
    let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    assert!(check::<Value>(&nested(MAX_DEPTH)));
    assert_eq!(from_str::<Value>(&nested(MAX_DEPTH + 1)), Err(Odd));
}

proptest! {
    #[test]
    fn both_agree_on_any_text(
        place: prop::sample::Index,
        byte in prop::sample::select(b"{}[]\",:\\0-+.eEtfnud8 \x01\n".to_vec()),
        change in 0..3,
    ) {
        let mut text = EVERYTHING.as_bytes().to_vec();
        let place = place.index(text.len());
        match change {
            0 => text.insert(place, byte),
            1 => text[place] = byte,
            _ => drop(text.remove(place)),
        }
        if let Ok(text) = std::str::from_utf8(&text) {
            check::<Everything>(text);
            check::<Value>(text);
        }
    }

    #[test]
    fn both_agree_on_strings(text in any::<String>(), is_ascii: bool) {
        let mut json = serde_json::to_string(&text).unwrap();
        if is_ascii {
            let escape = |unit: u16| format!("\\u{unit:04x}");
            json = format!("\"{}\"", text.encode_utf16().map(escape).collect::<String>());
        }
        prop_assert!(check::<String>(&json));
        let result = format!(r#"{{"content":[{{"type":"text","text":{json}}}],"isError":false}}"#);
        prop_assert!(check::<CallToolResult>(&result));
        let blocks = format!(r#"[{{"type":"text","text":{json}}}]"#);
        prop_assert!(check::<Vec<ContentBlock>>(&blocks));
        check::<CallToolParams<'_>>(&format!(r#"{{"name":{json},"arguments":{{"a":{json}}}}}"#));
    }
}
