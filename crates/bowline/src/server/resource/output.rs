//! The values that a resource may return, and how they become results.

use bowline_proto::base64::STANDARD;
use bowline_proto::model::{ReadResourceResult, ResourceContents};
use serde::Serialize;

use super::ResourceOutcome;
use crate::server::error::HandlerError;
use crate::server::output::Structured;

/// A value that a resource may return.
///
/// | value | contents |
/// |---|---|
/// | text | that text |
/// | `Vec<u8>` | those bytes, in base64 |
/// | [`Structured`]`(value)` | its JSON, with the type `application/json`; `null` is "not found" |
/// | [`ResourceContents`], a list of them | themselves |
/// | `Option<_>` | the value, or the error "not found" |
/// | `Result<_, E>` | the value, or `E` as an error |
/// | [`ReadResourceResult`] | itself |
/// | [`Step`](crate::Step) | the value, or questions to the client |
///
/// Functions with `#[resource]` may return any serializable value; it is wrapped in [`Structured`]
/// automatically.
#[diagnostic::on_unimplemented(
    message = "a resource cannot return `{Self}`",
    note = "return text, a `Vec<u8>`, `Structured(value)` for JSON, `ResourceContents`, or an `Option` or a `Result` of one"
)]
pub trait ResourceOutput {
    /// Whether it can be questions: see [`Step`](crate::Step).
    const ASKS: bool = false;

    /// Converts it into the result for this URI.
    fn into_contents(self, uri: &str) -> ResourceOutcome;
}

impl ResourceOutput for ReadResourceResult {
    fn into_contents(self, _: &str) -> ResourceOutcome {
        Ok(self)
    }
}

impl ResourceOutput for Vec<ResourceContents> {
    fn into_contents(self, _: &str) -> ResourceOutcome {
        Ok(ReadResourceResult { contents: self, ..ReadResourceResult::default() })
    }
}

impl ResourceOutput for ResourceContents {
    fn into_contents(self, uri: &str) -> ResourceOutcome {
        vec![self].into_contents(uri)
    }
}

impl ResourceOutput for String {
    fn into_contents(self, uri: &str) -> ResourceOutcome {
        ResourceContents::text(uri, self).into_contents(uri)
    }
}

impl ResourceOutput for &'static str {
    fn into_contents(self, uri: &str) -> ResourceOutcome {
        ResourceContents::text(uri, self).into_contents(uri)
    }
}

impl ResourceOutput for Vec<u8> {
    fn into_contents(self, uri: &str) -> ResourceOutcome {
        ResourceContents::blob(uri, STANDARD.encode(&self)).into_contents(uri)
    }
}

impl<T: ResourceOutput> ResourceOutput for Option<T> {
    const ASKS: bool = T::ASKS;

    fn into_contents(self, uri: &str) -> ResourceOutcome {
        match self {
            Some(value) => value.into_contents(uri),
            None => Err(HandlerError::resource_not_found(uri)),
        }
    }
}

impl<T: Serialize> ResourceOutput for Structured<T> {
    fn into_contents(self, uri: &str) -> ResourceOutcome {
        let text = serde_json::to_string_pretty(&self.0).map_err(|error| {
            HandlerError::failed(format!("{uri}: the contents cannot be written as JSON: {error}"))
        })?;
        if text == "null" {
            return Err(HandlerError::resource_not_found(uri));
        }
        ResourceContents::text(uri, text).with_mime_type("application/json").into_contents(uri)
    }
}

impl<T: ResourceOutput, E: Into<HandlerError>> ResourceOutput for Result<T, E> {
    const ASKS: bool = T::ASKS;

    fn into_contents(self, uri: &str) -> ResourceOutcome {
        match self {
            Ok(value) => value.into_contents(uri),
            Err(error) => Err(error.into()),
        }
    }
}
