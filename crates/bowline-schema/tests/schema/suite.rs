//! The official test suite of JSON Schema, where it is at hand.
//!
//! Set `JSON_SCHEMA_TEST_SUITE` to a checkout of it; without one there is nothing to do.

use std::fs;
use std::path::{Path, PathBuf};

use bowline_schema::{Schema, SchemaError};
use serde_json::Value;

/// Whether we mean to refuse such a schema.
fn is_on_purpose(error: &SchemaError) -> bool {
    match error {
        // Nothing is fetched, not even the standard's own schemas.
        SchemaError::Reference { reference, .. } => !reference.starts_with('#'),
        // A dialect of somebody's own.
        SchemaError::Dialect(name) => name.starts_with("http://localhost"),
        // These need tables of all of Unicode.
        SchemaError::Pattern { pattern, .. } => pattern.contains("\\p{"),
        _ => false,
    }
}

fn suite() -> Option<PathBuf> {
    let shared =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/json-schema-test-suite");
    let named = std::env::var_os("JSON_SCHEMA_TEST_SUITE").map(PathBuf::from);
    named.or_else(|| shared.is_dir().then_some(shared))
}

fn run(draft: &str, dialect: &str) {
    let Some(suite) = suite() else { return };
    let mut files: Vec<PathBuf> = fs::read_dir(suite.join("tests").join(draft))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    let (mut passed, mut refused, mut failures) = (0, 0, Vec::new());
    for file in files {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let groups: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        for group in groups.as_array().unwrap() {
            let description = group["description"].as_str().unwrap();
            let mut schema = group["schema"].clone();
            if let Value::Object(map) = &mut schema
                && !map.contains_key("$schema")
            {
                map.insert("$schema".to_owned(), dialect.into());
            }
            let tests = group["tests"].as_array().unwrap();
            let compiled = match Schema::compile(&schema) {
                Ok(compiled) => compiled,
                Err(error) if is_on_purpose(&error) => {
                    refused += tests.len();
                    continue;
                }
                Err(error) => {
                    failures
                        .push(format!("{name}: {description}: {error} ({} tests)", tests.len()));
                    continue;
                }
            };
            for test in tests {
                let verdict = compiled.validate("value", &test["data"]);
                if verdict.is_ok() == test["valid"].as_bool().unwrap() {
                    passed += 1;
                } else {
                    let what = test["description"].as_str().unwrap();
                    failures.push(format!("{name}: {description}: {what}: {verdict:?}"));
                }
            }
        }
    }
    let counts = format!("{draft}: {passed} passed, {refused} refused");
    assert!(failures.is_empty(), "{counts}\n{}", failures.join("\n"));
    assert!(passed > 10 * refused, "{counts}");
}

#[test]
fn draft_2020_12() {
    run("draft2020-12", "https://json-schema.org/draft/2020-12/schema");
}

#[test]
fn draft_7() {
    run("draft7", "http://json-schema.org/draft-07/schema#");
}

#[test]
fn draft_6() {
    run("draft6", "http://json-schema.org/draft-06/schema#");
}
