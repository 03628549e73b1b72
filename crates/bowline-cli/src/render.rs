//! Renders for people: tables, schemas, content, JSON, messages on the wire.

pub(crate) mod content;
pub(crate) mod json;
pub(crate) mod schema;
pub(crate) mod table;
pub(crate) mod wire;
