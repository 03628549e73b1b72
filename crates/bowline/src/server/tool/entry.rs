//! A registered tool, and how a call of it starts and ends.

use std::sync::Arc;
use std::time::Duration;

use bowline_proto::error::ErrorObject;
#[cfg(feature = "http")]
use bowline_proto::http::ParamHeaders;
use bowline_proto::json::Json;
use bowline_proto::model::{self, CallToolResult};
use bowline_proto::raw::Raw;

use super::check::Check;
use super::input::Input;
use super::start::Start;
use super::{Visible, described};
use crate::server::answer::{Answer, Outcome};
use crate::server::context::Context;
use crate::server::handler::BoxFuture;
use crate::server::nest::Nest;
use crate::server::output::ToolOutcome;
use crate::server::scopes::Scopes;
use crate::server::state::Need;
use crate::server::tasks::TaskMode;

/// A registered tool.
#[derive(Clone)]
pub(crate) struct Entry {
    /// Without the schemas, which are added when the tool is listed, unless it was given as a
    /// whole.
    pub(crate) definition: model::Tool,
    /// The arguments that calls repeat as headers.
    #[cfg(feature = "http")]
    pub(crate) headers: ParamHeaders,
    pub(super) start: Arc<dyn Start>,
    /// Whether the handler can return questions.
    pub(crate) asks: bool,
    pub(super) input: Input,
    pub(super) output: Option<Check>,
    /// Whether its structured content may be something else than an object.
    pub(super) wraps_content: bool,
    pub(crate) is_enabled: bool,
    /// Whether lists show it.
    pub(crate) is_listed: bool,
    pub(crate) nest: Nest,
    pub(crate) timeout: Option<Duration>,
    pub(crate) visible: Option<Visible>,
    pub(crate) scopes: Scopes,
    /// Whether calls can go on as tasks.
    pub(crate) task: Option<TaskMode>,
    /// Whether a task may run again after a restart.
    pub(crate) reruns: bool,
    /// Whether the handler passes the parameters on as they came.
    pub(crate) passes_on: bool,
    pub(crate) needs: Vec<Need>,
}

impl Entry {
    /// The definition as in lists.
    pub(crate) fn described(&self) -> model::Tool {
        let schemas = (self.input.schema(), self.output.as_ref().map(Check::schema));
        described(&self.definition, schemas, self.start.needs_validation())
    }

    /// Whether both have the same handler, whatever happened to their definitions.
    #[cfg(feature = "client")]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&self.start), Arc::as_ptr(&other.start))
    }

    /// Deserializes the arguments and starts the handler.
    ///
    /// # Errors
    /// When the arguments are invalid; the message is for the model.
    pub(crate) fn start(
        &self,
        context: &Context,
        arguments: Option<Raw<'_>>,
    ) -> Result<BoxFuture<ToolOutcome>, String> {
        self.input.start(self.start.as_ref(), context, arguments.map_or("{}", Raw::get))
    }

    /// The outcome of a call: the handler's result, if it matches the output schema.
    #[inline]
    pub(crate) fn finish(&self, outcome: ToolOutcome) -> Outcome {
        match outcome {
            Ok(mut result) => match self.check_result(&result) {
                Ok(()) => {
                    result.wraps_content |= self.wraps_content;
                    Ok(Answer::Tool(result))
                }
                Err(error) => Err(error.into()),
            },
            Err(error) => error.into_outcome(),
        }
    }

    fn check_result(&self, result: &CallToolResult) -> Result<(), ErrorObject> {
        if result.is_error == Some(true) {
            return Ok(());
        }
        self.check_output(result.structured_content.as_ref()).map_err(|reason| {
            let name = &self.definition.name;
            tracing::error!(tool = %name, %reason, "a tool's result does not match its output schema");
            let message =
                format!("tools/call: the result of {name:?} does not match its output schema");
            ErrorObject::internal(message)
        })
    }

    /// Checks structured content against the output schema.
    fn check_output(&self, content: Option<&Json>) -> Result<(), String> {
        let Some(check) = &self.output else { return Ok(()) };
        match content {
            Some(content) if check.is_needed => check.check("structuredContent", content.as_str()),
            Some(_) => Ok(()),
            None => {
                Err("structuredContent is missing, though the tool has an output schema".to_owned())
            }
        }
    }
}
