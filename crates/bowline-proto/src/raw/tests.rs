//! The walk finds what `serde_json` finds, or nothing.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::wire::MAX_DEPTH;

/// All members, if the text is plain.
fn members(text: &str) -> Result<Vec<(&str, Raw<'_>)>, Odd> {
    let mut cursor = Cursor::new(text);
    let mut walk = Walk::new(&mut cursor)?;
    let mut found = Vec::new();
    while let Some(key) = walk.next()? {
        found.push((key, walk.value()?));
    }
    if cursor.is_at_end() { Ok(found) } else { Err(Odd) }
}

/// Plain text is JSON, and its parts are those that `serde_json` sees.
fn check(text: &str) -> bool {
    let Ok(found) = members(text) else { return false };
    let read: crate::members::Members<&RawValue> = match serde_json::from_str(text) {
        Ok(read) => read,
        // Rejecting duplicate names is left to the user of the walk.
        Err(error) if error.to_string().contains("duplicate member") => return true,
        Err(error) => panic!("{text}: {error}"),
    };
    let read: Vec<_> = read.iter().map(|(key, value)| (key, Raw::from(*value))).collect();
    assert_eq!(found, read, "{text}");
    true
}

#[test]
fn plain_objects_are_walked() {
    for text in [
        "{}",
        " { } \r\n\t",
        r#"{"a":1}"#,
        r#"{"a" : -0.5e+7 , "b":[ ],"c":[1,[2 , {"x":null}],true], "":false}"#,
        r#"{"a":"\"\\\/\b\f\n\r\t\u00e9\ud83d","é":"déjà"}"#,
        r#"{"a":0,"b":-0,"c":10,"d":1E5,"e":1e-5,"f":123456789012345678901234567890}"#,
        r#"{"a":{},"b":{"c":{"d":"}"}},"e":"]"}"#,
    ] {
        assert!(check(text), "{text}");
    }
    let long = format!(r#"{{"a":"{}","b":"{}\""}}"#, "x".repeat(1000), "é".repeat(1000));
    assert!(check(&long));
}

#[test]
fn everything_else_is_odd() {
    for text in [
        "",
        "1",
        "[]",
        "null",
        "{",
        "}",
        "{}{}",
        "{} x",
        "{,}",
        r#"{"a"}"#,
        r#"{"a":}"#,
        r#"{"a":1,}"#,
        r#"{"a":1 "b":2}"#,
        r#"{a:1}"#,
        r#"{'a':1}"#,
        r#"{"a":01}"#,
        r#"{"a":-}"#,
        r#"{"a":1.}"#,
        r#"{"a":.5}"#,
        r#"{"a":1e}"#,
        r#"{"a":+1}"#,
        r#"{"a":tru}"#,
        r#"{"a":nul}"#,
        r#"{"a":truE}"#,
        r#"{"a":[1,]}"#,
        r#"{"a":[,1]}"#,
        r#"{"a":[1 2]}"#,
        r#"{"a":[1}"#,
        r#"{"a":"\x"}"#,
        r#"{"a":"\u12g4"}"#,
        r#"{"a":"\u12"}"#,
        r#"{"a":"\"}"#,
        r#"{"a":"b}"#,
        "{\"a\":\"\n\"}",
        "{\"a\":\"\0\"}",
        "{\"a\u{1f}\":1}",
        "\u{feff}{}",
        "{\"a\":\u{a0}1}",
        r#"{"\u0061":1}"#,
    ] {
        assert_eq!(members(text), Err(Odd), "{text}");
    }
    let control = format!("{{\"a\":\"{}\u{1}{}\"}}", "x".repeat(100), "x".repeat(100));
    assert_eq!(members(&control), Err(Odd));
}

#[test]
fn depth_is_counted_as_in_frames() {
    let nested =
        |levels: usize| format!(r#"{{"a":{}{}}}"#, "[".repeat(levels - 1), "]".repeat(levels - 1));
    assert!(check(&nested(MAX_DEPTH)));
    assert_eq!(members(&nested(MAX_DEPTH + 1)), Err(Odd));
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,80}".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::hash_map("\\PC{0,12}", inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn objects_with_plain_names_are_plain(
        object in prop::collection::hash_map("[a-z/.]{0,40}", json(), 0..6),
        is_pretty: bool,
    ) {
        let object = Value::Object(object.into_iter().collect());
        let text = if is_pretty { format!("{object:#}") } else { object.to_string() };
        prop_assert!(check(&text), "{}", text);
    }

    #[test]
    fn broken_text_is_never_misread(
        object in json(),
        place: prop::sample::Index,
        byte in prop::sample::select(b"{}[]\",:\\0-+.eEtfn u\x01\n ".to_vec()),
        is_added: bool,
    ) {
        let mut text = format!(r#"{{"a":{object},"b":1}}"#).into_bytes();
        let place = place.index(text.len());
        if is_added {
            text.insert(place, byte);
        } else {
            text[place] = byte;
        }
        if let Ok(text) = std::str::from_utf8(&text) {
            check(text);
        }
    }
}
