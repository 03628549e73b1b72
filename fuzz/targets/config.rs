//! Config files of clients: an edit changes what it is about and nothing else.
//!
//! An input is `j` or `t` for the syntax, a line with the path to a server, its parts separated by
//! `/`, and the file.

#![no_main]

use bowline_gateway::config::{EditError, Syntax, add, remove, unwrap, wrap};
use libfuzzer_sys::fuzz_target;
use serde_json::json;

fuzz_target!(|input: &[u8]| {
    let Ok(input) = std::str::from_utf8(input) else { return };
    let (syntax, rest) = match input.split_at_checked(1) {
        Some(("j", rest)) => (Syntax::Json, rest),
        Some(("t", rest)) => (Syntax::Toml, rest),
        _ => return,
    };
    let Some((path, text)) = rest.split_once('\n') else { return };
    let path: Vec<String> = path.split('/').map(str::to_owned).collect();
    tapped(text, syntax, &path);
    added(text, syntax, &path);
    match remove(text, syntax, &path) {
        Ok(removed) => {
            let again = remove(&removed, syntax, &path);
            assert!(matches!(again, Err(EditError::Missing(_))), "{again:?}: {removed}");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});

/// A tap that is put in and taken out again leaves no trace.
fn tapped(text: &str, syntax: Syntax, path: &[String]) {
    let tap = ["/opt/bowline", "tap", "--name", "a \"b\"", "--"].map(str::to_owned);
    let wrapped = match wrap(text, syntax, path, &tap) {
        Ok(wrapped) => wrapped,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let twice = wrap(&wrapped, syntax, path, &tap);
    assert!(matches!(twice, Err(EditError::Wrapped(_))), "{twice:?}: {wrapped}");
    assert_eq!(unwrap(&wrapped, syntax, path).as_deref(), Ok(text), "{wrapped}");
}

/// A server that is added is there, and only once.
fn added(text: &str, syntax: Syntax, path: &[String]) {
    let entry = json!({ "command": "a \"b\"", "args": ["é", "\n"], "env": { "K": "v" } });
    let added = match add(text, syntax, path, "x y", &entry) {
        Ok(added) => added,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let twice = add(&added, syntax, path, "x y", &entry);
    assert!(matches!(twice, Err(EditError::Present(_))), "{twice:?}: {added}");
    let whole: Vec<String> = path.iter().cloned().chain(["x y".to_owned()]).collect();
    let removed = remove(&added, syntax, &whole);
    let is_known = matches!(removed, Ok(_) | Err(EditError::Unsupported(..)));
    assert!(is_known, "{removed:?}: {added}");
}
