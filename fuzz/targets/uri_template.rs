//! URI templates: reading, matching and expanding agree on names, values and spellings.
//!
//! An input is two lines: a template and a URI.

#![no_main]

use std::collections::BTreeSet;

use bowline::uri_template::{Match, UriTemplate};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Ok(input) = std::str::from_utf8(input) else { return };
    let (text, uri) = input.split_once('\n').unwrap_or((input, ""));
    let template = match UriTemplate::parse(text) {
        Ok(template) => template,
        Err(error) => {
            assert!(error.at() <= text.len(), "{error}");
            return assert!(!error.to_string().is_empty());
        }
    };
    assert_eq!(template.as_str(), text);
    let names: Vec<_> = template.variables().collect();
    let different: BTreeSet<_> = names.iter().collect();
    assert_eq!(different.len(), names.len(), "a variable is repeated: {text}");
    assert!(names.len() <= UriTemplate::MAX_VARIABLES && text.len() <= UriTemplate::MAX_LENGTH);
    matched(&template, &names, uri);
    // A name alone, and several values of it.
    for count in 1..3 {
        let values: Vec<_> = names.iter().flat_map(|name| vec![(*name, uri); count]).collect();
        is_plain(&template.expand(&values));
    }
});

fn matched(template: &UriTemplate, names: &[&str], uri: &str) {
    let found = template.matches(uri);
    // What a URI must encode may be encoded or not.
    assert_eq!(found, template.matches(&encoded(uri)), "{template} {uri}");
    let lax = template.clone().allow_unsafe_values();
    let read = lax.matches(uri);
    match (&found, &read) {
        (Match::Different, Match::Different) => {}
        (Match::Unsafe { variable }, Match::Values(values)) => {
            assert!(names.contains(variable), "{variable}");
            assert!(values.iter().any(|(name, _)| name == variable), "{template} {uri}");
        }
        (Match::Values(one), Match::Values(other)) => assert_eq!(one, other, "{template} {uri}"),
        _ => panic!("{template} {uri}: {found:?}, but {read:?}"),
    }
    let Match::Values(values) = found else { return };
    for (name, value) in &values {
        assert!(names.contains(name), "{name}");
        assert!(!value.contains(['\0', '\\']), "{template} {uri}: {value:?}");
        assert!(value.split('/').all(|part| part != ".."), "{template} {uri}: {value:?}");
    }
    is_plain(&template.expand(&values));
}

/// The text with everything encoded that is not ASCII.
fn encoded(uri: &str) -> String {
    let mut text = String::new();
    for byte in uri.bytes() {
        match byte.is_ascii() {
            true => text.push(char::from(byte)),
            false => text += &format!("%{byte:02X}"),
        }
    }
    text
}

/// Checks that nothing is in a URI that must be encoded there.
fn is_plain(uri: &str) {
    assert!(uri.bytes().all(|byte| byte.is_ascii_graphic()), "{uri}");
    assert!(!uri.contains(['"', '<', '>', '\\', '^', '`', '{', '|', '}']), "{uri}");
}
