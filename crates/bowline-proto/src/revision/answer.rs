//! Decodes an answer in the revision it was written in.

use crate::raw::Raw;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::Revision;
use crate::decode::{DecodeError, decode_result};
use crate::method::{CallTool, GetPrompt, Method, ReadResource};
use crate::model::{InputRequiredResult, ResultType, task_extension};

/// The outcome of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome<R> {
    /// The answer.
    Complete(R),
    /// Questions that must be answered first, by repeating the request.
    InputRequired(InputRequiredResult),
    /// A task that will have the answer.
    Task(task_extension::CreateTaskResult),
}

/// Decodes the result of `M` by its declared type, never by its shape.
///
/// Legacy results have no type and are complete. So are modern results without a type, since old
/// servers may answer modern requests.
///
/// # Errors
/// When it is not a result that `M` can have in that revision.
pub fn decode_outcome<M: Method>(
    revision: Revision,
    result: Raw<'_>,
) -> Result<Outcome<M::Result>, DecodeError> {
    let kind = if revision.is_modern() && !says_complete(result) {
        let head: Head = decode_result(M::NAME, result)?;
        head.result_type.unwrap_or(ResultType::Complete)
    } else {
        ResultType::Complete
    };
    let wrong = |message: String| Err(DecodeError::new(M::NAME, message));
    match kind {
        ResultType::Complete => read::<M, _>(result).map(Outcome::Complete),
        ResultType::InputRequired if may_ask(M::NAME) => {
            let asked: InputRequiredResult = read::<M, _>(result)?;
            if asked.input_requests.is_none() && asked.request_state.is_none() {
                return wrong("result asks for input, but has no question and no state".to_owned());
            }
            Ok(Outcome::InputRequired(asked))
        }
        ResultType::InputRequired => {
            wrong("result asks for input, which this method does not allow".to_owned())
        }
        ResultType::Task if M::NAME == CallTool::NAME => read::<M, _>(result).map(Outcome::Task),
        ResultType::Task => wrong("result is a task, which this method does not allow".to_owned()),
        ResultType::Other(kind) => {
            wrong(format!("result.resultType is {kind:?}, which is unknown"))
        }
    }
}

/// Whether the first member of a result says so, as in nearly all results: such a result is parsed
/// only once.
fn says_complete(result: Raw<'_>) -> bool {
    let rest = result.get().strip_prefix(r#"{"resultType":"complete""#);
    rest.is_some_and(|rest| rest.starts_with([',', '}']))
}

#[derive(Deserialize)]
struct Head {
    #[serde(rename = "resultType")]
    result_type: Option<ResultType>,
}

fn read<M: Method, T: DeserializeOwned>(result: Raw<'_>) -> Result<T, DecodeError> {
    decode_result(M::NAME, result)
}

/// 2026-07-28, basic/patterns/mrtr: these three and no others.
fn may_ask(method: &str) -> bool {
    [CallTool::NAME, GetPrompt::NAME, ReadResource::NAME].contains(&method)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::{ListTools, Subscribe};

    fn check<M: Method>(revision: Revision, result: &str) -> Result<&'static str, String> {
        let raw: Raw<'_> = serde_json::from_str(result).unwrap();
        match decode_outcome::<M>(revision, raw) {
            Ok(Outcome::Complete(_)) => Ok("complete"),
            Ok(Outcome::InputRequired(_)) => Ok("input"),
            Ok(Outcome::Task(_)) => Ok("task"),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn the_declared_type_decides_and_the_looks_do_not() {
        let modern = Revision::V2026_07_28;
        let legacy = Revision::V2025_11_25;
        let asks = r#"{"resultType":"input_required","requestState":"s"}"#;
        assert_eq!(
            check::<CallTool>(modern, r#"{"content":[],"resultType":"complete"}"#),
            Ok("complete")
        );
        assert_eq!(check::<CallTool>(modern, r#"{"content":[]}"#), Ok("complete"));
        assert_eq!(check::<CallTool>(modern, asks), Ok("input"));
        assert_eq!(check::<CallTool>(legacy, asks), Ok("complete"));
        assert_eq!(check::<Subscribe>(legacy, r#"{"_meta":{"a":1}}"#), Ok("complete"));
        let refused = check::<ListTools>(modern, asks).unwrap_err();
        assert_eq!(refused, "tools/list: result asks for input, which this method does not allow");
        let refused = check::<CallTool>(modern, r#"{"resultType":"partial"}"#).unwrap_err();
        assert_eq!(refused, r#"tools/call: result.resultType is "partial", which is unknown"#);
        let refused = check::<CallTool>(modern, r#"{"resultType":"input_required"}"#).unwrap_err();
        assert!(refused.contains("no question and no state"));
        let refused = check::<ListTools>(legacy, "{}").unwrap_err();
        assert_eq!(refused, "tools/list: result.tools is missing");
    }
}
