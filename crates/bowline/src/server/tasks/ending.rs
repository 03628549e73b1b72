//! What the outcome of a handler means for its task.

use bowline_proto::error::ErrorObject;
use bowline_proto::method::{CallTool, Method};
use bowline_proto::model::InputRequests;

use super::super::answer::{Answer, Outcome};
use super::super::call::Call;
use super::super::failure::FailureKind;
use super::record::State;
use super::size::written;
use super::view::payload;

/// What a run has come to.
pub(super) enum Ending {
    Final(State),
    /// Questions, or none: then the handler just runs again.
    Asks(InputRequests),
    Elsewhere,
}

/// What the outcome of a handler means for its task.
pub(super) fn read(call: &Call, outcome: Outcome, longest: usize) -> Ending {
    let failed =
        |message: String| Ending::Final(State::Failed { error: ErrorObject::internal(message) });
    let (result, is_error) = match outcome {
        Ok(Answer::Tool(mut result)) => {
            let is_error = result.is_error == Some(true);
            match payload(&mut result, call.caller.revision) {
                Ok(result) => (result, is_error),
                Err(error) => return failed(error),
            }
        }
        Ok(Answer::Verbatim(result)) => (result, false),
        Ok(Answer::InputRequired(asked)) => {
            return Ending::Asks(asked.input_requests.unwrap_or_default());
        }
        Ok(Answer::Elsewhere) => return Ending::Elsewhere,
        Ok(_) => return failed(format!("{}: the tool returned no result", CallTool::NAME)),
        Err(failure) => {
            let is_over =
                matches!(failure.kind, FailureKind::Cancelled | FailureKind::Disconnected);
            if is_over {
                return Ending::Final(State::Cancelled);
            }
            let error = failure.error;
            return match check_length("error", written(&error), longest) {
                Ok(()) => Ending::Final(State::Failed { error }),
                Err(problem) => failed(format!("{}: {problem}", CallTool::NAME)),
            };
        }
    };
    match check_length("result", result.as_str().len(), longest) {
        Ok(()) => Ending::Final(State::Completed { result, is_error }),
        Err(problem) => failed(format!("{}: {problem}", CallTool::NAME)),
    }
}

/// Checks the length of a result or an error.
///
/// # Errors
/// When a task may not keep it.
pub(super) fn check_length(what: &str, length: usize, longest: usize) -> Result<(), String> {
    match length > longest {
        true => Err(format!(
            "the {what} has {length} bytes, more than the {longest} that a task may keep"
        )),
        false => Ok(()),
    }
}
