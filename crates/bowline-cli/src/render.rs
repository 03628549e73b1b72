//! What people see: tables, schemas, content, JSON, the wire.

pub(crate) mod content;
pub(crate) mod json;
pub(crate) mod schema;
pub(crate) mod table;
pub(crate) mod wire;
