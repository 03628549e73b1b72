//! Answers of tools that people and programs both read.

use bowline::model::{CallToolResult, ContentBlock};
use bowline::{ErrorObject, HandlerError, Json};
use serde::Serialize;

/// A sentence for the model, and the same as data for programs. The tool declares the data's schema
/// with [`Tool::output_schema`](bowline::Tool::output_schema).
///
/// # Errors
/// When the data has no JSON form, which is a mistake of the server.
pub fn answer(
    text: impl Into<String>,
    data: &impl Serialize,
) -> Result<CallToolResult, HandlerError> {
    let data = Json::new(data).map_err(|error| {
        let message = format!("the tool's answer has no JSON form: {error}");
        HandlerError::Refused(ErrorObject::internal(message))
    })?;
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(data);
    Ok(result)
}
