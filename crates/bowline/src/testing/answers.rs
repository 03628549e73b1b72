//! What a test client answers when it is asked.

use bowline_proto::error::ErrorObject;
use bowline_proto::json::Json;
use bowline_proto::method::{CreateMessage, ElicitationCreate, ListRoots, Method, Ping};
use bowline_proto::model::{
    ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitParams, ElicitResult,
    ElicitationCapability, InputRequest, ListRootsResult, Root, RootsCapability,
    SamplingCapability,
};
use bowline_proto::wire::Request;
use serde_json::{Value, json};

type Answer<P, R> = Box<dyn Fn(P) -> R + Send + Sync>;

/// What a test client answers. What is not there is not declared either.
#[derive(Default)]
pub(super) struct Answers {
    pub(super) elicit: Option<Answer<ElicitParams, ElicitResult>>,
    pub(super) sample: Option<Answer<CreateMessageParams, CreateMessageResult>>,
    pub(super) roots: Option<Vec<Root>>,
}

impl Answers {
    pub(super) fn capabilities(&self) -> ClientCapabilities {
        let yes = || Some(serde_json::Map::new());
        ClientCapabilities {
            elicitation: self
                .elicit
                .as_ref()
                .map(|_| ElicitationCapability { form: yes(), url: yes() }),
            sampling: self
                .sample
                .as_ref()
                .map(|_| SamplingCapability { tools: yes(), context: None }),
            roots: self.roots.as_ref().map(|_| RootsCapability { list_changed: Some(true) }),
            ..ClientCapabilities::default()
        }
    }

    /// The answer to a question of the modern era.
    pub(super) fn answer(&self, question: InputRequest) -> Value {
        match question {
            InputRequest::Elicit(params) => json!(self.elicit.as_ref().map(|it| it(params))),
            InputRequest::CreateMessage(params) => {
                json!(self.sample.as_ref().map(|it| it(*params)))
            }
            InputRequest::ListRoots(_) => json!(self.list_roots()),
        }
    }

    fn list_roots(&self) -> ListRootsResult {
        let roots = self.roots.clone().unwrap_or_default();
        ListRootsResult { roots, ..ListRootsResult::default() }
    }

    /// The answer to a request of the legacy era.
    pub(super) fn respond(&self, request: &Request<'_>) -> Result<Json, ErrorObject> {
        let missing = || ErrorObject::method_not_found(&request.method);
        let value = match request.method.as_ref() {
            Ping::NAME => json!({}),
            ElicitationCreate::NAME => {
                let answer = self.elicit.as_ref().ok_or_else(missing)?;
                json!(answer(params(request)?))
            }
            CreateMessage::NAME => {
                let answer = self.sample.as_ref().ok_or_else(missing)?;
                json!(answer(params(request)?))
            }
            ListRoots::NAME if self.roots.is_some() => json!(self.list_roots()),
            _ => return Err(missing()),
        };
        Ok(value.into())
    }
}

fn params<T: serde::de::DeserializeOwned>(request: &Request<'_>) -> Result<T, ErrorObject> {
    Ok(bowline_proto::decode::decode_params(&request.method, request.params.raw())?)
}
