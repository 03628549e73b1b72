//! Which standard a schema follows.

use crate::error::SchemaError;

/// A dialect of JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Dialect {
    Draft6,
    Draft7,
    Draft2020,
}

impl Dialect {
    /// The dialect that `$schema` names.
    pub(crate) fn parse(name: &str) -> Result<Self, SchemaError> {
        // The scheme and an empty fragment vary in the wild and change nothing.
        let plain = name.trim_end_matches('#');
        let plain = plain.strip_prefix("https://").or_else(|| plain.strip_prefix("http://"));
        match plain {
            Some("json-schema.org/draft/2020-12/schema") => Ok(Self::Draft2020),
            Some("json-schema.org/draft-07/schema") => Ok(Self::Draft7),
            Some("json-schema.org/draft-06/schema") => Ok(Self::Draft6),
            _ => Err(SchemaError::Dialect(name.to_owned())),
        }
    }

    /// Whether `$ref` hides its siblings.
    pub(crate) fn ref_stands_alone(self) -> bool {
        self < Self::Draft2020
    }
}
