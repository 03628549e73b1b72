//! The answer to a request, and how it is written in the revision of the client.

use std::sync::Arc;

use bowline_proto::error::ErrorObject;
use bowline_proto::json::Json;
use bowline_proto::members::Members;
use bowline_proto::model::{
    CallToolResult, CompleteResult, CreateTaskResult, DiscoverResult, EmptyResult, GetPromptResult,
    InitializeResult, InputRequiredResult, Meta, ReadResourceResult, ResultBody,
    SubscriptionsListenResult, meta_key, task_extension,
};
use bowline_proto::revision::{Adapt, Revision, adapt_error};
use bowline_proto::wire::{Id, encode_error, encode_response, encode_response_with};
use serde::Serialize;
use serde_json::value::RawValue;

use super::failure::Failure;

/// The result of a request, by method.
#[derive(Debug)]
#[non_exhaustive]
pub enum Answer {
    /// Of `tools/call`.
    Tool(CallToolResult),
    /// Of `prompts/get`.
    Prompt(GetPromptResult),
    /// Of `resources/read`.
    Resource(ReadResourceResult),
    /// Of any of these three, when the client must answer something first.
    InputRequired(InputRequiredResult),
    /// Of any of these three, as another server wrote it in the same revision; or a result of an
    /// [extension](crate::Extension), as it is.
    Verbatim(Json),
    /// Of `completion/complete`.
    Completion(CompleteResult),
    /// Of a list: already encoded for this revision, and shared by all callers.
    List(Arc<RawValue>),
    /// Of `initialize`.
    Initialize(Box<InitializeResult>),
    /// Of `server/discover`.
    Discover(Box<DiscoverResult>),
    /// Of `subscriptions/listen`, when the server ends the stream.
    ListenEnd,
    /// Of `tools/call`, when it goes on as a [task](crate::tasks).
    Task(Box<task_extension::Task>),
    /// Of `tools/call`, when the work of a [task](crate::tasks) goes on outside the server. Clients
    /// never see it.
    Elsewhere,
    /// Of requests that return nothing.
    Empty,
}

impl Answer {
    /// Whether it is the result of a tool that says `isError`.
    pub fn is_tool_error(&self) -> bool {
        matches!(self, Self::Tool(result) if result.is_error == Some(true))
    }
}

/// How a request ended: with a result, or without one.
pub type Outcome = Result<Answer, Failure>;

/// The server's identity, which every modern result carries beside its payload.
pub(crate) struct Signature {
    info: serde_json::Value,
    /// `,"_meta":{…}}}`: the end of a response whose result has no `_meta` of its own.
    ending: Vec<u8>,
}

impl Signature {
    pub(crate) fn new(info: &impl Serialize) -> Self {
        let info = serde_json::to_value(info).unwrap_or_default();
        let meta = serde_json::json!({ (meta_key::SERVER_INFO): info });
        Self { info, ending: format!(r#","_meta":{meta}}}}}"#).into_bytes() }
    }

    /// Appends a response, with the outcome adapted to the revision. What cannot be written becomes
    /// an internal error.
    pub(crate) fn encode(
        &self,
        out: &mut Vec<u8>,
        id: &Id,
        revision: Revision,
        outcome: &mut Outcome,
    ) {
        let start = out.len();
        if let Ok(answer) = outcome {
            match self.encode_answer(out, id, revision, answer) {
                Ok(()) => return,
                Err(error) => *outcome = Err(error.into()),
            }
        }
        if let Err(failure) = outcome {
            out.truncate(start);
            adapt_error(&mut failure.error, revision);
            encode_error(out, id, &failure.error);
        }
    }

    fn encode_answer(
        &self,
        out: &mut Vec<u8>,
        id: &Id,
        revision: Revision,
        answer: &mut Answer,
    ) -> Result<(), ErrorObject> {
        let to = To { signature: self, id, revision };
        match answer {
            Answer::Tool(result) => to.encode_as(out, result, CallToolResult::write),
            Answer::Prompt(result) => to.encode(out, result),
            Answer::Resource(result) => to.encode(out, result),
            Answer::InputRequired(result) => to.encode(out, result),
            Answer::Completion(result) => to.encode(out, result),
            Answer::Initialize(result) => to.encode(out, &mut **result),
            Answer::Discover(result) => to.encode(out, &mut **result),
            Answer::Empty => to.encode(out, &mut EmptyResult::default()),
            Answer::ListenEnd => {
                self.encode_listen_end(out, id);
                Ok(())
            }
            Answer::Verbatim(result) => to.encode_verbatim(out, result),
            Answer::Task(task) => to.encode_task(out, task),
            Answer::Elsewhere => Err(ErrorObject::internal(
                "tools/call: the work goes on elsewhere, but this call is not a task; help: declare \
                 the tool with `task = \"required\"`",
            )),
            Answer::List(encoded) => {
                encode_response(out, id, encoded.as_ref()).map_err(internal)?;
                to.sign(out);
                Ok(())
            }
        }
    }

    /// Appends the end of a listen request.
    pub(crate) fn encode_listen_end(&self, out: &mut Vec<u8>, id: &Id) {
        let mut meta = Meta::default();
        meta.set(meta_key::SUBSCRIPTION_ID, id);
        let mut result = SubscriptionsListenResult { meta: Some(meta), ..Default::default() };
        let to = To { signature: self, id, revision: Revision::LATEST };
        // Our own plain data can always be written.
        let _ = to.encode(out, &mut result);
    }
}

/// A response to write.
struct To<'a> {
    signature: &'a Signature,
    id: &'a Id,
    revision: Revision,
}

impl To<'_> {
    fn encode<R>(&self, out: &mut Vec<u8>, result: &mut R) -> Result<(), ErrorObject>
    where
        R: Adapt + ResultBody + Serialize,
    {
        self.encode_as(out, result, |result, out| serde_json::to_writer(out, result))
    }

    /// The same, with a function that writes the result.
    fn encode_as<R>(
        &self,
        out: &mut Vec<u8>,
        result: &mut R,
        write: impl FnOnce(&R, &mut Vec<u8>) -> serde_json::Result<()>,
    ) -> Result<(), ErrorObject>
    where
        R: Adapt + ResultBody,
    {
        result.adapt(self.revision).map_err(internal)?;
        let has_meta = result.meta_mut().is_some();
        if let Some(meta) = result.meta_mut()
            && self.revision.is_modern()
        {
            meta.set(meta_key::SERVER_INFO, &self.signature.info);
        }
        encode_response_with(out, self.id, |out| write(result, out)).map_err(internal)?;
        if !has_meta {
            self.sign(out);
        }
        Ok(())
    }

    /// Writes a task, in the shape of the caller's generation.
    fn encode_task(
        &self,
        out: &mut Vec<u8>,
        task: &task_extension::Task,
    ) -> Result<(), ErrorObject> {
        let task = task.clone();
        if self.revision.is_modern() {
            let rest = task_extension::CreateTaskResult::default();
            return self.encode(out, &mut task_extension::CreateTaskResult { task, ..rest });
        }
        self.encode(out, &mut CreateTaskResult { task: task.into(), ..CreateTaskResult::default() })
    }

    /// Writes a result of another server. Only the signature differs.
    fn encode_verbatim(&self, out: &mut Vec<u8>, result: &Json) -> Result<(), ErrorObject> {
        let mut members: Members<Json> = result.parse().map_err(internal)?;
        if self.revision.is_modern() {
            set_meta(&mut members, meta_key::SERVER_INFO, &self.signature.info)
                .map_err(internal)?;
            if members.get("resultType").is_none() {
                members.insert("resultType", Json::new("complete").map_err(internal)?);
            }
        }
        encode_response(out, self.id, &members).map_err(internal)
    }

    /// Adds the signature to a modern response whose result has no `_meta`. The result is never
    /// empty, because it states its type.
    fn sign(&self, out: &mut Vec<u8>) {
        if self.revision.is_modern() {
            out.truncate(out.len() - 2);
            out.extend_from_slice(&self.signature.ending);
        }
    }
}

/// An object with one more member in its metadata; everything else stays to the letter.
pub(crate) fn with_meta(
    object: &Json,
    key: &str,
    value: impl Serialize,
) -> Result<Json, serde_json::Error> {
    let mut members: Members<Json> = object.parse()?;
    set_meta(&mut members, key, value)?;
    Json::new(&members)
}

fn set_meta(
    members: &mut Members<Json>,
    key: &str,
    value: impl Serialize,
) -> Result<(), serde_json::Error> {
    let mut meta = members.get("_meta").map(Json::parse::<Meta>).transpose()?.unwrap_or_default();
    meta.set(key, value);
    members.insert("_meta", Json::new(&meta)?);
    Ok(())
}

fn internal(error: impl std::error::Error) -> ErrorObject {
    ErrorObject::internal(error.to_string())
}
