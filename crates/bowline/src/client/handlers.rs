//! What a client does when a server asks for its user, its model or its folders.
//!
//! The client declares the capabilities for which it has handlers. In the legacy era a server asks
//! by requests, in the modern era inside its answers; the handlers are the same.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use bowline_proto::decode::decode_params;
use bowline_proto::error::{ErrorCode, ErrorObject};
use bowline_proto::json::{Extra, Json};
use bowline_proto::method::{CreateMessage, ElicitationCreate, ListRoots, Method, Ping};
use bowline_proto::model::{
    ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitAction, ElicitFormParams,
    ElicitParams, ElicitResult, ElicitUrlParams, ElicitationCapability, InputRequest,
    ListRootsResult, RequestMeta, Root, RootsCapability, SamplingCapability, Settings, meta_key,
};
use bowline_proto::raw::Raw;
use bowline_proto::revision::{Adapt, Revision};
use bowline_schema::Schema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The future of a handler.
pub(super) type Answering<R> = Pin<Box<dyn Future<Output = Result<R, ErrorObject>> + Send>>;

/// A handler of one kind of question.
type Handler<P, R> = Arc<dyn Fn(P) -> Answering<R> + Send + Sync>;

/// What the user did with a form.
#[derive(Debug, Clone, PartialEq)]
pub enum FormAnswer {
    /// Filled it in. Missing fields get the defaults of the form. Content that does not match the
    /// form is not sent.
    Accept(Extra),
    /// Said no.
    Decline,
    /// Dismissed it without a choice.
    Cancel,
}

impl FormAnswer {
    /// Fills in the fields of a struct or map. Anything that is not an object counts as empty.
    pub fn accept(content: &impl Serialize) -> Self {
        match serde_json::to_value(content) {
            Ok(Value::Object(content)) => Self::Accept(content),
            _ => Self::defaults(),
        }
    }

    /// Accepts the form with its defaults.
    pub fn defaults() -> Self {
        Self::Accept(Extra::new())
    }
}

/// What the user did when asked to visit a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlAnswer {
    /// Agreed to visit it. Only the server knows whether the visit succeeded.
    Accept,
    /// Said no.
    Decline,
    /// Dismissed it without a choice.
    Cancel,
}

/// The handlers of one client.
#[derive(Default)]
pub(super) struct Handlers {
    pub(super) form: Option<Handler<ElicitFormParams, FormAnswer>>,
    pub(super) url: Option<Handler<ElicitUrlParams, UrlAnswer>>,
    pub(super) sampling: Option<Handler<CreateMessageParams, CreateMessageResult>>,
    pub(super) samples_with_tools: bool,
    pub(super) roots: Option<Mutex<Vec<Root>>>,
    /// Takes every question, whatever its kind, instead of the handlers above.
    pub(super) any: Option<Handler<InputRequest, Json>>,
    /// What is declared with it, if not everything.
    pub(super) any_declares: Option<ClientCapabilities>,
    pub(super) extensions: Settings,
    pub(super) experimental: Settings,
}

/// Turns a function into a handler.
pub(super) fn handler<P, R, F>(ask: impl Fn(P) -> F + Send + Sync + 'static) -> Handler<P, R>
where
    F: Future<Output = Result<R, ErrorObject>> + Send + 'static,
{
    Arc::new(move |params| Box::pin(ask(params)))
}

impl Handlers {
    /// The capabilities that the client declares.
    pub(super) fn capabilities(&self) -> ClientCapabilities {
        if self.any.is_some() {
            return self.any_declares.clone().unwrap_or_else(everything);
        }
        let yes = |is_there: bool| is_there.then(Extra::new);
        let elicits = self.form.is_some() || self.url.is_some();
        let declared = |settings: &Settings| (!settings.is_empty()).then(|| settings.clone());
        ClientCapabilities {
            elicitation: elicits.then(|| ElicitationCapability {
                form: yes(self.form.is_some()),
                url: yes(self.url.is_some()),
            }),
            sampling: self
                .sampling
                .as_ref()
                .map(|_| SamplingCapability { tools: yes(self.samples_with_tools), context: None }),
            roots: self.roots.as_ref().map(|_| RootsCapability { list_changed: Some(true) }),
            extensions: declared(&self.extensions),
            experimental: declared(&self.experimental),
            ..ClientCapabilities::default()
        }
    }

    /// Passes a request of the legacy era on to the handler that takes every question, if there is
    /// one. The handler is called at once, in the task that reads.
    pub(super) fn pass_on(
        &self,
        revision: Revision,
        method: &str,
        params: Option<Raw<'_>>,
    ) -> Option<Answering<Json>> {
        let pass_on = self.any.as_ref().filter(|_| !revision.is_modern())?;
        let question = match method {
            ElicitationCreate::NAME => InputRequest::Elicit(decode_params(method, params).ok()?),
            CreateMessage::NAME => InputRequest::CreateMessage(decode_params(method, params).ok()?),
            ListRoots::NAME => InputRequest::ListRoots(decode_params(method, params).ok()?),
            _ => return None,
        };
        Some(pass_on(question))
    }

    /// Answers a request of the legacy era. The `task` of 2025-11-25 in its parameters is ignored,
    /// as the specification demands of clients that do not declare the capability.
    pub(super) async fn respond(
        &self,
        revision: Revision,
        method: &str,
        params: Option<Raw<'_>>,
    ) -> Result<Json, ErrorObject> {
        let answer = self.respond_plainly(revision, method, params).await?;
        match RequestMeta::of(params).others.get(meta_key::RELATED_TASK) {
            Some(task) => Ok(with_meta(&answer, meta_key::RELATED_TASK, task)),
            None => Ok(answer),
        }
    }

    async fn respond_plainly(
        &self,
        revision: Revision,
        method: &str,
        params: Option<Raw<'_>>,
    ) -> Result<Json, ErrorObject> {
        match method {
            Ping::NAME => Ok(Json::empty_object()),
            _ if revision.is_modern() => Err(ErrorObject::method_not_found(method)),
            ElicitationCreate::NAME => {
                self.elicit(revision, read::<ElicitationCreate, _>(params)?).await
            }
            CreateMessage::NAME => self.sample(revision, read::<CreateMessage, _>(params)?).await,
            ListRoots::NAME => self.list_roots(revision),
            _ => Err(ErrorObject::method_not_found(method)),
        }
    }

    /// Answers a question inside an answer of the modern era.
    pub(super) async fn answer(
        &self,
        revision: Revision,
        question: InputRequest,
    ) -> Result<Json, ErrorObject> {
        if let Some(pass_on) = &self.any {
            return pass_on(question).await;
        }
        match question {
            InputRequest::Elicit(params) => self.elicit(revision, params).await,
            InputRequest::CreateMessage(params) => self.sample(revision, *params).await,
            InputRequest::ListRoots(_) => self.list_roots(revision),
        }
    }

    async fn elicit(&self, revision: Revision, asked: ElicitParams) -> Result<Json, ErrorObject> {
        let result = match asked {
            ElicitParams::Form(form) => {
                let handler = self.form.as_ref().ok_or_else(|| undeclared("elicitation.form"))?;
                let schema = serde_json::to_value(&form.requested_schema).unwrap_or_default();
                match handler(form).await? {
                    FormAnswer::Accept(content) => {
                        ElicitResult::accept(&complete(revision, &schema, content)?)
                    }
                    FormAnswer::Decline => ElicitResult::decline(),
                    FormAnswer::Cancel => ElicitResult::cancel(),
                }
            }
            ElicitParams::Url(url) => {
                let handler = self.url.as_ref().ok_or_else(|| undeclared("elicitation.url"))?;
                match handler(url).await? {
                    UrlAnswer::Accept => {
                        ElicitResult { action: ElicitAction::Accept, ..ElicitResult::default() }
                    }
                    UrlAnswer::Decline => ElicitResult::decline(),
                    UrlAnswer::Cancel => ElicitResult::cancel(),
                }
            }
        };
        write(revision, result)
    }

    async fn sample(
        &self,
        revision: Revision,
        asked: CreateMessageParams,
    ) -> Result<Json, ErrorObject> {
        let handler = self.sampling.as_ref().ok_or_else(|| undeclared("sampling"))?;
        if asked.tools.is_some() && !self.samples_with_tools {
            return Err(undeclared("sampling.tools"));
        }
        write(revision, handler(asked).await?)
    }

    fn list_roots(&self, revision: Revision) -> Result<Json, ErrorObject> {
        let roots = self.roots.as_ref().ok_or_else(|| undeclared("roots"))?;
        let roots = roots.lock().unwrap_or_else(PoisonError::into_inner).clone();
        write(revision, ListRootsResult { roots, ..ListRootsResult::default() })
    }
}

/// What a client declares that passes every question on to others.
fn everything() -> ClientCapabilities {
    let yes = || Some(Extra::new());
    ClientCapabilities {
        elicitation: Some(ElicitationCapability { form: yes(), url: yes() }),
        sampling: Some(SamplingCapability { tools: yes(), context: None }),
        roots: Some(RootsCapability { list_changed: None }),
        ..ClientCapabilities::default()
    }
}

/// Fills in the defaults, and checks the whole.
fn complete(revision: Revision, schema: &Value, mut content: Extra) -> Result<Extra, ErrorObject> {
    let fields = schema.get("properties").and_then(Value::as_object);
    for (name, field) in fields.into_iter().flatten() {
        let default = field.get("default").filter(|_| !content.contains_key(name));
        if let Some(default) = default.filter(|default| can_say(revision, default)) {
            content.insert(name.clone(), default.clone());
        }
    }
    let refused = |problem: String| {
        tracing::warn!(%problem, "the user's answer to a form was not sent");
        ErrorObject::internal(format!("the user's answer does not fit the form: {problem}"))
    };
    let compiled = Schema::compile(schema)
        .map_err(|error| ErrorObject::invalid_params(format!("requestedSchema: {error}")))?;
    let value = Value::Object(content);
    compiled.validate("content", &value).map_err(|invalid| refused(invalid.to_string()))?;
    match value {
        Value::Object(content) => Ok(content),
        _ => Err(refused("it is not an object".to_owned())),
    }
}

/// Whether an answer can hold this value. Some servers ask for lists in revisions without them.
fn can_say(revision: Revision, value: &Value) -> bool {
    let content = Some(Extra::from_iter([("field".to_owned(), value.clone())]));
    let mut alone = ElicitResult { content, ..ElicitResult::default() };
    alone.adapt(revision).is_ok()
}

/// The answer with one more member in its `_meta`: messages that belong to a task of 2025-11-25
/// name it.
fn with_meta(answer: &Json, key: &str, value: Raw<'_>) -> Json {
    let Value::Object(mut answer) = answer.to_value() else { return answer.clone() };
    let meta = answer.entry("_meta").or_insert_with(|| Value::Object(Extra::new()));
    if let Some(meta) = meta.as_object_mut() {
        meta.insert(key.to_owned(), Json::copy_of(value).to_value());
    }
    Json::from(Value::Object(answer))
}

/// The error for a server that asks for something that the client never declared.
fn undeclared(capability: &str) -> ErrorObject {
    let message = format!("this client does not declare {capability:?}");
    // This code means the same in every revision.
    ErrorObject::new(ErrorCode::METHOD_NOT_FOUND, message)
}

fn read<M: Method, P: DeserializeOwned>(params: Option<Raw<'_>>) -> Result<P, ErrorObject> {
    Ok(decode_params(M::NAME, params)?)
}

fn write(revision: Revision, mut result: impl Serialize + Adapt) -> Result<Json, ErrorObject> {
    result.adapt(revision).map_err(|error| ErrorObject::internal(error.to_string()))?;
    Json::new(&result).map_err(|error| ErrorObject::internal(error.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(schema: &Value, content: Value, expected: Result<Value, &str>) {
        check_in(Revision::LATEST, schema, content, expected);
    }

    fn check_in(revision: Revision, schema: &Value, content: Value, expected: Result<Value, &str>) {
        let Value::Object(content) = content else { panic!("no object") };
        match (complete(revision, schema, content), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(Value::Object(found), expected),
            (Err(error), Err(part)) => assert!(error.message.contains(part), "{error}"),
            (found, expected) => panic!("{found:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn forms_are_filled_in_and_checked() {
        let form = json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "default": "Ada" },
                "age": { "type": "integer", "minimum": 0, "default": 30 },
                "city": { "type": "string" }
            },
            "required": ["name", "city"]
        });
        let filled = json!({ "city": "Rome", "name": "Ada", "age": 30 });
        check(&form, json!({ "city": "Rome" }), Ok(filled));
        let own = json!({ "city": "Rome", "name": "Bob", "age": 1 });
        check(&form, own.clone(), Ok(own));
        check(&form, json!({}), Err("city"));
        check(&form, json!({ "city": "Rome", "age": -1 }), Err("age"));
    }

    #[test]
    fn defaults_that_a_revision_cannot_say_are_left_out() {
        let pets = json!({ "type": "array", "items": { "enum": ["cat"] }, "default": ["cat"] });
        let form = json!({ "type": "object", "properties": { "pets": pets } });
        check_in(Revision::V2025_11_25, &form, json!({}), Ok(json!({ "pets": ["cat"] })));
        check_in(Revision::V2025_06_18, &form, json!({}), Ok(json!({})));
    }

    #[test]
    fn what_is_declared_follows_from_the_handlers() {
        let mut handlers = Handlers::default();
        assert_eq!(handlers.capabilities(), ClientCapabilities::default());
        handlers.form = Some(handler(|_| async { Ok(FormAnswer::Decline) }));
        handlers.roots = Some(Mutex::default());
        let declared = serde_json::to_value(handlers.capabilities()).unwrap();
        let expected = json!({ "roots": { "listChanged": true }, "elicitation": { "form": {} } });
        assert_eq!(declared, expected);
    }
}
