//! The location of the official texts, if they are available.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// A file or folder of the shared texts; prints a note if it is missing.
pub(crate) fn path(part: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let root = std::env::var_os("BOWLINE_SHARED").map_or_else(beside, PathBuf::from);
    let path = root.join(part);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: shared/{part} does not exist");
    None
}

/// A JSON file of the shared texts.
pub(crate) fn json(part: &str) -> Option<Value> {
    let text = std::fs::read_to_string(path(part)?).unwrap();
    Some(serde_json::from_str(&text).unwrap())
}

/// Whether two values mean the same. `1` and `1.0` are the same number, as in JSON Schema.
pub(crate) fn same(one: &Value, two: &Value) -> bool {
    match (one, two) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => one == two,
    }
}
