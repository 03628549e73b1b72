//! Validates arguments and results against their schemas.

use std::sync::{Arc, OnceLock};

use bowline_proto::decode::decode;
use bowline_schema::Schema;
use serde_json::Value;

/// A schema, compiled at once if every call needs it, otherwise on first use.
#[derive(Clone)]
pub(super) struct Check {
    schema: Arc<Value>,
    compiled: Arc<OnceLock<Option<Schema>>>,
    pub(super) is_needed: bool,
}

impl Check {
    pub(super) fn build(schema: Value, always: bool) -> Result<Self, String> {
        let is_needed = always || bowline_schema::needs_validation(&schema);
        let compiled = OnceLock::new();
        if is_needed {
            let schema = Schema::compile(&schema).map_err(|error| error.to_string())?;
            // It was created empty just above.
            let _ = compiled.set(Some(schema));
        }
        Ok(Self { schema: Arc::new(schema), compiled: Arc::new(compiled), is_needed })
    }

    /// A schema that is only listed.
    pub(super) fn unneeded(schema: Value) -> Self {
        Self { schema: Arc::new(schema), compiled: Arc::default(), is_needed: false }
    }

    pub(super) fn schema(&self) -> &Value {
        &self.schema
    }

    pub(super) fn check(&self, root: &str, text: &str) -> Result<(), String> {
        let value: Value = decode("", root, text).map_err(|error| error.to_string())?;
        self.validate(root, &value)
    }

    pub(super) fn validate(&self, root: &str, value: &Value) -> Result<(), String> {
        let compiled = self.compiled.get_or_init(|| Schema::compile(&self.schema).ok());
        let Some(schema) = compiled else { return Ok(()) };
        schema.validate(root, value).map_err(|invalid| invalid.to_string())
    }
}
