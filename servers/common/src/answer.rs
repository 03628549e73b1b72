//! Tool results that models and programs both read.

use bowline::model::{CallToolResult, ContentBlock};
use bowline::{ErrorObject, HandlerError, Json};
use serde::Serialize;

/// A tool result with a sentence for the model and the same as data for programs. The tool declares
/// the data's schema with [`Tool::output_schema`](bowline::Tool::output_schema).
///
/// # Errors
/// If the data cannot be written as JSON, which is a bug in the server.
pub fn answer(
    text: impl Into<String>,
    data: &impl Serialize,
) -> Result<CallToolResult, HandlerError> {
    let data = Json::new(data).map_err(|error| {
        let message = format!("the tool's result cannot be written as JSON: {error}");
        HandlerError::Refused(ErrorObject::internal(message))
    })?;
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(data);
    Ok(result)
}
