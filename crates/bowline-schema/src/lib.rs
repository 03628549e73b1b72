//! JSON Schema for the arguments and results of tools: a budget for every check, and messages that
//! a model can act on.
//!
//! Schemas and values both come from peers, so both are bounded. A schema is compiled once, within
//! [`Limits`]: one that is too big, too deep, endless, or that points outside the document is
//! rejected, and the error names the location. Each validation then has a budget of steps. Nothing
//! is ever fetched, recursion stays within the limits, and patterns take time linear in the text.
//!
//! Dialects: 2020-12 (the default), draft-07 and draft-06, chosen by `$schema`. `format` and the
//! `content*` keywords are annotations, as the standard says.
//!
//! ```
//! use bowline_schema::Schema;
//! use serde_json::json;
//!
//! let schema = Schema::compile(&json!({
//!     "type": "object",
//!     "properties": {
//!         "location": {"type": "string", "description": "City name, address, or coordinates"},
//!         "units": {"enum": ["metric", "imperial"]},
//!     },
//!     "required": ["location"],
//! }))?;
//!
//! assert!(schema.validate("arguments", &json!({"location": "Oslo"})).is_ok());
//!
//! let error = schema.validate("arguments", &json!({"units": "celcius"})).unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "arguments.location is missing (a string: City name, address, or coordinates)\n\
//!      arguments.units is \"celcius\"; expected \"metric\" or \"imperial\""
//! );
//! # Ok::<(), bowline_schema::SchemaError>(())
//! ```

mod compile;
mod dialect;
mod error;
mod evaluate;
mod limits;
mod node;
mod number;
mod pattern;
mod reference;
mod schema;
mod typed;
mod violation;
mod words;

pub use self::error::SchemaError;
pub use self::limits::Limits;
pub use self::reference::target;
pub use self::schema::Schema;
pub use self::typed::needs_validation;
pub use self::violation::{Invalid, Violation, Violations};
