//! Every method with random parameters and results, and the names of its definitions.

use bowline_proto::decode::decode;
use bowline_proto::method::*;
use bowline_proto::model::*;
use bowline_proto::revision::Revision::{self, *};
use bowline_proto::revision::{Adapt, Unsupported};
use bowline_proto::wire::{Id, encode_notification, encode_request, encode_response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::strategies::{Json, Object, params, question, result};

/// Reads a value, adapts it to a revision if there is one, and writes the whole message.
pub(crate) type Encode = fn(&Value, Option<Revision>) -> Result<Value, Unsupported>;

/// A kind of message.
pub(crate) struct Case {
    /// The method.
    pub(crate) name: &'static str,
    /// The definition in the schema; none for extensions, which no schema covers.
    pub(crate) definition: Option<&'static str>,
    /// The revisions in which it is sent.
    pub(crate) revisions: Vec<Revision>,
    pub(crate) value: Json,
    pub(crate) encode: Encode,
}

impl Case {
    fn request<M: Method>(definition: &'static str, value: Object) -> Self {
        Self::new(M::NAME, definition, value.build(), encode_params::<M>)
    }

    fn answer<M: Method>(definition: &'static str, value: Object) -> Self {
        Self::new(M::NAME, definition, value.build(), encode_result::<M::Result>)
    }

    fn notice<N: Notice>(definition: &'static str, value: Object) -> Self {
        Self::new(N::NAME, definition, value.build(), encode_notice::<N>)
    }

    fn new(name: &'static str, definition: &'static str, value: Json, encode: Encode) -> Self {
        let revisions =
            Revision::ALL.into_iter().filter(|revision| find(name, *revision).is_some()).collect();
        let definition = Some(definition).filter(|name| !name.is_empty());
        Self { name, definition, revisions, value, encode }
    }

    /// Restricts the case to some revisions, because a name has two meanings or a value another
    /// form.
    fn only(mut self, revisions: &[Revision]) -> Self {
        self.revisions = revisions.to_vec();
        self
    }
}

fn encode_params<M: Method>(json: &Value, to: Option<Revision>) -> Result<Value, Unsupported> {
    let text = json.to_string();
    let mut params: M::Params<'_> = decode(M::NAME, "params", &text).unwrap();
    to.map_or(Ok(()), |to| params.adapt(to))?;
    Ok(written(|out| encode_request(out, &Id::from(1_i64), M::NAME, Some(&params)).unwrap()))
}

fn encode_notice<N: Notice>(json: &Value, to: Option<Revision>) -> Result<Value, Unsupported> {
    let mut params: N::Params = decode(N::NAME, "params", &json.to_string()).unwrap();
    to.map_or(Ok(()), |to| params.adapt(to))?;
    Ok(written(|out| encode_notification(out, N::NAME, Some(&params)).unwrap()))
}

fn encode_result<T>(json: &Value, to: Option<Revision>) -> Result<Value, Unsupported>
where
    T: Serialize + DeserializeOwned + Adapt,
{
    let mut result: T = decode("it", "result", &json.to_string()).unwrap();
    to.map_or(Ok(()), |to| result.adapt(to))?;
    Ok(written(|out| encode_response(out, &Id::from("1"), &result).unwrap()))
}

fn written(encode: impl FnOnce(&mut Vec<u8>)) -> Value {
    let mut out = Vec::new();
    encode(&mut out);
    serde_json::from_slice(&out).unwrap()
}

/// No schema covers the types of extensions.
const NONE: &str = "";
const R11: &[Revision] = &[V2025_11_25];
const R26: &[Revision] = &[V2026_07_28];

/// All requests.
pub(crate) fn requests() -> Vec<Case> {
    vec![
        Case::request::<Initialize>("InitializeRequest", params::initialize()),
        Case::request::<Ping>("PingRequest", params::request()),
        Case::request::<Discover>("DiscoverRequest", params::request()),
        Case::request::<ListTools>("ListToolsRequest", params::page()),
        Case::request::<CallTool>("CallToolRequest", params::call_tool()),
        Case::request::<ListPrompts>("ListPromptsRequest", params::page()),
        Case::request::<GetPrompt>("GetPromptRequest", params::get_prompt()),
        Case::request::<ListResources>("ListResourcesRequest", params::page()),
        Case::request::<ListResourceTemplates>("ListResourceTemplatesRequest", params::page()),
        Case::request::<ReadResource>("ReadResourceRequest", params::read_resource()),
        Case::request::<Subscribe>("SubscribeRequest", params::by_uri()),
        Case::request::<Unsubscribe>("UnsubscribeRequest", params::by_uri()),
        Case::request::<Complete>("CompleteRequest", params::complete()),
        Case::request::<SetLevel>("SetLevelRequest", params::set_level()),
        Case::request::<SubscriptionsListen>("SubscriptionsListenRequest", params::listen()),
        Case::new(
            CreateMessage::NAME,
            "CreateMessageRequest",
            question::create_message(),
            encode_params::<CreateMessage>,
        ),
        Case::new(
            ListRoots::NAME,
            "ListRootsRequest",
            question::list_roots(),
            encode_params::<ListRoots>,
        ),
        Case::new(
            ElicitationCreate::NAME,
            "ElicitRequest",
            question::elicit(),
            encode_params::<ElicitationCreate>,
        ),
        Case::request::<GetTask>("GetTaskRequest", params::task()).only(R11),
        Case::request::<GetTaskPayload>("GetTaskPayloadRequest", params::task()),
        Case::request::<ListTasks>("ListTasksRequest", params::page()),
        Case::request::<CancelTask>("CancelTaskRequest", params::task()).only(R11),
        Case::request::<GetTaskDetail>(NONE, params::task()).only(R26),
        Case::request::<UpdateTask>(NONE, params::update_task()),
        Case::request::<StopTask>(NONE, params::task()).only(R26),
        Case::request::<ListSkills>(NONE, params::page()),
        Case::request::<GetSkill>(NONE, params::by_uri()),
        Case::request::<ReadDirectory>(NONE, params::by_uri()),
    ]
}

/// The results of all requests.
pub(crate) fn results() -> Vec<Case> {
    vec![
        Case::answer::<Initialize>("InitializeResult", result::initialize()),
        Case::answer::<Ping>("EmptyResult", result::empty()),
        Case::answer::<Discover>("DiscoverResult", result::discover()),
        Case::answer::<ListTools>("ListToolsResult", result::tools()),
        Case::answer::<CallTool>("CallToolResult", result::call_tool()),
        Case::answer::<ListPrompts>("ListPromptsResult", result::prompts()),
        Case::answer::<GetPrompt>("GetPromptResult", result::get_prompt()),
        Case::answer::<ListResources>("ListResourcesResult", result::resources()),
        Case::answer::<ListResourceTemplates>("ListResourceTemplatesResult", result::templates()),
        Case::answer::<ReadResource>("ReadResourceResult", result::read_resource()),
        Case::answer::<Subscribe>("EmptyResult", result::empty()),
        Case::answer::<Unsubscribe>("EmptyResult", result::empty()),
        Case::answer::<Complete>("CompleteResult", result::complete()),
        Case::answer::<SetLevel>("EmptyResult", result::empty()),
        Case::answer::<SubscriptionsListen>("SubscriptionsListenResult", result::listen()),
        client_answer::<CreateMessage>("CreateMessageResult", question::create_message_result()),
        client_answer::<ListRoots>("ListRootsResult", question::list_roots_result()),
        client_answer::<ElicitationCreate>("ElicitResult", question::elicit_result()),
        Case::answer::<GetTask>("GetTaskResult", result::task()).only(R11),
        Case::answer::<GetTaskPayload>("GetTaskPayloadResult", result::empty()),
        Case::answer::<ListTasks>("ListTasksResult", result::tasks()),
        Case::answer::<CancelTask>("CancelTaskResult", result::task()).only(R11),
        Case::answer::<GetTaskDetail>(NONE, result::task_detail()).only(R26),
        Case::answer::<UpdateTask>("EmptyResult", result::empty()),
        Case::answer::<StopTask>("EmptyResult", result::empty()).only(R26),
        Case::answer::<ListSkills>(NONE, result::skills()),
        Case::answer::<GetSkill>(NONE, result::skill()),
        Case::answer::<ReadDirectory>(NONE, result::directory()),
    ]
}

fn client_answer<M: Method>(definition: &'static str, value: Json) -> Case {
    Case::new(M::NAME, definition, value, encode_result::<M::Result>)
}

/// Results other than the one a method declares: tasks and input requests.
pub(crate) fn other_results() -> Vec<Case> {
    let asks = || result::input_required().build();
    let other = |name, definition, value, encode: Encode, revisions| {
        Case::new(name, definition, value, encode).only(revisions)
    };
    let input = encode_result::<InputRequiredResult>;
    let task = encode_result::<task_extension::CreateTaskResult>;
    vec![
        other(CallTool::NAME, "InputRequiredResult", asks(), input, R26),
        other(GetPrompt::NAME, "InputRequiredResult", asks(), input, R26),
        other(ReadResource::NAME, "InputRequiredResult", asks(), input, R26),
        other(CallTool::NAME, NONE, result::extension_task().build(), task, R26),
        Case::new(
            CallTool::NAME,
            "CreateTaskResult",
            result::create_task().build(),
            encode_result::<CreateTaskResult>,
        )
        .only(R11),
    ]
}

/// What clients answer in the modern era, inside the parameters of a repeated request.
pub(crate) fn embedded_answers() -> Vec<Case> {
    vec![
        client_answer::<CreateMessage>("CreateMessageResult", question::create_message_result())
            .only(R26),
        client_answer::<ListRoots>("ListRootsResult", question::list_roots_result()).only(R26),
        client_answer::<ElicitationCreate>("ElicitResult", question::elicit_result()).only(R26),
    ]
}

/// All notifications.
pub(crate) fn notifications() -> Vec<Case> {
    let cancelled = params::cancelled();
    vec![
        Case::notice::<Initialized>("InitializedNotification", params::notice()),
        Case::new(Cancelled::NAME, "CancelledNotification", cancelled, encode_notice::<Cancelled>),
        Case::notice::<Progress>("ProgressNotification", params::progress()),
        Case::notice::<LoggingMessage>("LoggingMessageNotification", params::log_message()),
        Case::notice::<ToolListChanged>("ToolListChangedNotification", params::notice()),
        Case::notice::<PromptListChanged>("PromptListChangedNotification", params::notice()),
        Case::notice::<ResourceListChanged>("ResourceListChangedNotification", params::notice()),
        Case::notice::<ResourceUpdated>("ResourceUpdatedNotification", params::resource_updated()),
        Case::notice::<RootsListChanged>("RootsListChangedNotification", params::notice()),
        Case::notice::<ElicitationComplete>(
            "ElicitationCompleteNotification",
            params::elicitation_complete(),
        ),
        Case::notice::<TaskStatusChanged>("TaskStatusNotification", params::task_status()),
        Case::notice::<TaskChanged>(NONE, params::task_changed()),
        Case::notice::<SubscriptionsAcknowledged>(
            "SubscriptionsAcknowledgedNotification",
            params::acknowledged(),
        ),
    ]
}
