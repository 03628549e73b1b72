//! The values that a tool may return, and how they become results.

use std::borrow::Cow;

use bowline_proto::error::ErrorObject;
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
/// | [`Structured`]`(value)` | the value as structured content with an output schema, and its JSON as text |
/// | [`Structured`]`(value).with_text("…")` | the same with a text of your own |
/// | `()` | no content |
/// | `Result<_, E>` | the value, or `E` as text with `isError`; see [`HandlerError`] |
/// | [`CallToolResult`] | itself |
/// | [`Step`](crate::Step) | the value, or questions to the client |
///
/// Functions with `#[tool]` may also return any other value that is `Serialize` and `JsonSchema`: a
/// struct, an enum, a list, a map, an `Option`. It is wrapped in [`Structured`] automatically.
///
/// Since 2026-07-28 structured content is any value. Clients of 2025-06-18 and 2025-11-25 only know
/// objects: whatever is not always one arrives there as `{"result": …}`, and the output schema says
/// so. Older clients only get the text.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    label = "cannot be sent to a client",
    note = "return text, a number, a `ContentBlock`, a `CallToolResult`, or a `Result` of one of these",
    note = "for a struct: derive `Serialize` and `JsonSchema`, and outside of `#[tool]` wrap it in `Structured`"
)]
pub trait ToolOutput {
    /// Whether it can be questions: see [`Step`](crate::Step).
    const ASKS: bool = false;

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

impl<T> Structured<T> {
    /// Adds a text for the model, instead of the value as JSON.
    ///
    /// ```
    /// use bowline::{Structured, Tool};
    ///
    /// let count = Tool::new("count", || async {
    ///     Structured(vec![1, 2, 3]).with_text("There are three numbers.")
    /// });
    /// ```
    pub fn with_text(self, text: impl Into<String>) -> Described<T> {
        self.with_content(vec![ContentBlock::text(text)])
    }

    /// Adds content for the model, instead of the value as JSON.
    pub fn with_content(self, content: Vec<ContentBlock>) -> Described<T> {
        Described { value: self.0, content }
    }
}

/// A value that is sent as structured content, with its schema, and content that says the same to a
/// model. Made by [`Structured::with_text`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Described<T> {
    value: T,
    content: Vec<ContentBlock>,
}

impl<T: Serialize + JsonSchema> ToolOutput for Structured<T> {
    fn into_outcome(self) -> ToolOutcome {
        let json = written(&self.0)?;
        Ok(structured(vec![ContentBlock::text(json.as_str())], json))
    }

    fn output_schema() -> Option<Value> {
        Some(schema::output_schema_of::<T>())
    }
}

impl<T: Serialize + JsonSchema> ToolOutput for Described<T> {
    fn into_outcome(self) -> ToolOutcome {
        Ok(structured(self.content, written(&self.value)?))
    }

    fn output_schema() -> Option<Value> {
        Some(schema::output_schema_of::<T>())
    }
}

fn written(value: &impl Serialize) -> Result<Json, HandlerError> {
    Json::new(value).map_err(|error| {
        HandlerError::Refused(ErrorObject::internal(format!(
            "the tool's result cannot be written as JSON: {error}"
        )))
    })
}

fn structured(content: Vec<ContentBlock>, json: Json) -> CallToolResult {
    CallToolResult { structured_content: Some(json), ..CallToolResult::success(content) }
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

impl ToolOutput for Vec<ContentBlock> {
    fn into_outcome(self) -> ToolOutcome {
        Ok(CallToolResult::success(self))
    }
}

impl<T: ToolOutput, E: Into<HandlerError>> ToolOutput for Result<T, E> {
    const ASKS: bool = T::ASKS;

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
fn failed(error: impl Into<HandlerError>) -> ToolOutcome {
    match error.into() {
        HandlerError::Failed(message) => Ok(CallToolResult::failure(message)),
        other => Err(other),
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
