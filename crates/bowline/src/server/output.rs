//! The values that a tool may return, and how they become results.

use std::borrow::Cow;
use std::fmt::Display;

use bowline_proto::json::Json;
use bowline_proto::model::{CallToolResult, ContentBlock};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::error::HandlerError;
use super::schema;

/// The result of a tool, or its error.
pub type ToolOutcome = Result<CallToolResult, HandlerError>;

/// A value that a tool may return.
///
/// | value | answer |
/// |---|---|
/// | text, numbers, booleans | a block of text |
/// | [`ContentBlock`], a list of them | those blocks |
/// | [`Structured`]`(value)` | structured content with an output schema, and its JSON as text |
/// | `()` | no content |
/// | `Result<_, E>` | the value, or `E` as text with `isError` |
/// | [`CallToolResult`] | itself |
///
/// Functions with `#[tool]` may return any serializable struct with a schema; it is wrapped in
/// [`Structured`] automatically.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    label = "cannot be sent to a client",
    note = "return text, a number, a `ContentBlock`, a `CallToolResult`, or a `Result` of one of these",
    note = "for a struct: derive `Serialize` and `JsonSchema`, and outside of `#[tool]` wrap it in `Structured`"
)]
pub trait ToolOutput {
    /// Converts it into the result.
    fn into_outcome(self) -> ToolOutcome;

    /// The schema of its structured content, if it has any.
    fn output_schema() -> Option<Value> {
        None
    }
}

/// A value that is sent as structured content, with its schema, and as JSON text for clients that
/// only read text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Structured<T>(pub T);

impl<T: Serialize + JsonSchema> ToolOutput for Structured<T> {
    fn into_outcome(self) -> ToolOutcome {
        let json = Json::new(&self.0).map_err(|error| {
            HandlerError::Refused(bowline_proto::error::ErrorObject::internal(format!(
                "the tool's result cannot be written as JSON: {error}"
            )))
        })?;
        let mut result = CallToolResult::success(vec![ContentBlock::text(json.as_str())]);
        result.structured_content = Some(json);
        Ok(result)
    }

    fn output_schema() -> Option<Value> {
        Some(schema::schema_of::<T>())
    }
}

impl ToolOutput for CallToolResult {
    fn into_outcome(self) -> ToolOutcome {
        Ok(self)
    }
}

impl ToolOutput for () {
    fn into_outcome(self) -> ToolOutcome {
        Ok(CallToolResult::success(Vec::new()))
    }
}

impl ToolOutput for ContentBlock {
    fn into_outcome(self) -> ToolOutcome {
        Ok(CallToolResult::success(vec![self]))
    }
}

impl<T: Into<ContentBlock>> ToolOutput for Vec<T> {
    fn into_outcome(self) -> ToolOutcome {
        Ok(CallToolResult::success(self.into_iter().map(Into::into).collect()))
    }
}

impl<T: ToolOutput, E: Display + 'static> ToolOutput for Result<T, E> {
    fn into_outcome(self) -> ToolOutcome {
        match self {
            Ok(value) => value.into_outcome(),
            Err(error) => failed(error),
        }
    }

    fn output_schema() -> Option<Value> {
        T::output_schema()
    }
}

/// An error as a result with `isError`, unless it rejects the request itself.
pub(crate) fn failed<E: Display + 'static>(error: E) -> ToolOutcome {
    match HandlerError::of(error) {
        HandlerError::Failed(message) => Ok(CallToolResult::failure(message)),
        refused @ HandlerError::Refused(_) => Err(refused),
    }
}

/// Values that are sent in their display form.
macro_rules! as_text {
    ($($name:ty),* $(,)?) => {$(
        impl ToolOutput for $name {
            fn into_outcome(self) -> ToolOutcome {
                Ok(CallToolResult::success(vec![ContentBlock::text(self.to_string())]))
            }
        }
    )*};
}
as_text!(i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize, f32, f64, bool, char);

impl ToolOutput for String {
    fn into_outcome(self) -> ToolOutcome {
        Ok(CallToolResult::success(vec![ContentBlock::text(self)]))
    }
}

impl ToolOutput for &'static str {
    fn into_outcome(self) -> ToolOutcome {
        self.to_owned().into_outcome()
    }
}

impl ToolOutput for Cow<'static, str> {
    fn into_outcome(self) -> ToolOutcome {
        self.into_owned().into_outcome()
    }
}
