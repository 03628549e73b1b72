//! Schemas: the crate `jsonschema` comes to the same verdict, and no schema or value is too much.
//!
//! An input begins with a letter: `m` is followed by bytes that make up a schema and values, `j` by
//! a schema and values as JSON, one after the other.

#![no_main]

#[path = "schema/grow.rs"]
mod grow;

use bowline_fuzz::Bytes;
use bowline_schema::{Schema, SchemaError};
use libfuzzer_sys::fuzz_target;
use serde_json::{Deserializer, Value};

fuzz_target!(|input: &[u8]| match input.split_first() {
    Some((b'm', rest)) => made_up(Bytes::new(rest)),
    Some((b'j', rest)) => written(rest),
    _ => {}
});

/// Of the keywords that both crates understand alike.
fn made_up(mut bytes: Bytes<'_>) {
    let schema = grow::schema(&mut bytes);
    let values: Vec<Value> = (0..4).map(|_| grow::value(&mut bytes, 3)).collect();
    let ours = match Schema::compile(&schema) {
        Ok(ours) => ours,
        // `jsonschema` follows a circle of references until its stack ends.
        Err(SchemaError::Endless { .. }) => return,
        Err(error) => panic!("{error}: {schema}"),
    };
    let theirs = jsonschema::validator_for(&schema).expect("it is a schema");
    for value in values {
        let verdict = ours.validate("value", &value);
        assert_eq!(verdict.is_ok(), theirs.is_valid(&value), "{schema} {value} {verdict:?}");
    }
}

/// Anything at all: an answer, always the same, with a text to read.
fn written(text: &[u8]) {
    let mut values = Deserializer::from_slice(text).into_iter::<Value>();
    let Some(Ok(schema)) = values.next() else { return };
    let compiled = match Schema::compile(&schema) {
        Ok(compiled) => compiled,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    for value in values.map_while(Result::ok).take(8) {
        let verdict = compiled.validate("value", &value);
        if let Err(invalid) = &verdict {
            assert!(!invalid.to_string().is_empty());
        }
        let again = Schema::compile(&schema).expect("it was compiled before");
        assert_eq!(again.validate("value", &value).is_ok(), verdict.is_ok(), "{schema} {value}");
    }
}
