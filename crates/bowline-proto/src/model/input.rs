//! Input requests: questions inside a result, which a modern server asks and the client answers by
//! repeating its request.

use serde::de::MapAccess;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{CreateMessageParams, ElicitParams, ListRootsParams, Meta, ResultType, result_body};
use crate::json::Sparse;
use crate::members::Members;
use crate::tagged::{Rest, Tagged, read_tagged, unknown_kind};

/// Input requests, by the key that their responses must carry.
pub type InputRequests = Members<InputRequest>;

/// The result of a request that needs input first. Since 2026-07-28.
///
/// It has input requests, a request state, or both. Without input requests it means "try again".
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputRequiredResult {
    /// Always [`ResultType::InputRequired`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// The questions to answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_requests: Option<InputRequests>,
    /// The state that must be returned verbatim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members that the specification does not define.
    #[serde(flatten)]
    pub extra: Sparse,
}

/// An input request: a request of the legacy era without its envelope.
#[derive(Debug, Clone, PartialEq)]
pub enum InputRequest {
    /// Ask the user.
    Elicit(ElicitParams),
    /// Ask the model.
    CreateMessage(Box<CreateMessageParams>),
    /// Ask for the roots.
    ListRoots(ListRootsParams),
}

impl InputRequest {
    /// The method of the request in the legacy era.
    pub const fn method(&self) -> &'static str {
        match self {
            Self::Elicit(_) => "elicitation/create",
            Self::CreateMessage(_) => "sampling/createMessage",
            Self::ListRoots(_) => "roots/list",
        }
    }
}

impl Serialize for InputRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("method", self.method())?;
        match self {
            Self::Elicit(params) => map.serialize_entry("params", params)?,
            Self::CreateMessage(params) => map.serialize_entry("params", params)?,
            // The only one whose parameters may be absent.
            Self::ListRoots(ListRootsParams { meta: None }) => {}
            Self::ListRoots(params) => map.serialize_entry("params", params)?,
        }
        map.end()
    }
}

#[derive(Deserialize)]
struct WithParams<P> {
    params: P,
}

#[derive(Deserialize)]
struct MayHaveParams {
    #[serde(default)]
    params: ListRootsParams,
}

impl Tagged for InputRequest {
    const TAG: &'static str = "method";
    const WHAT: &'static str = "an input request";

    fn read<'de, A: MapAccess<'de>>(
        kind: Option<&str>,
        rest: Rest<'de, A>,
    ) -> Result<Self, A::Error> {
        match kind {
            Some("elicitation/create") => {
                WithParams::deserialize(rest).map(|question| Self::Elicit(question.params))
            }
            Some("sampling/createMessage") => {
                WithParams::deserialize(rest).map(|question| Self::CreateMessage(question.params))
            }
            Some("roots/list") => {
                MayHaveParams::deserialize(rest).map(|question| Self::ListRoots(question.params))
            }
            kind => Err(unknown_kind(
                "method",
                kind,
                "elicitation/create, sampling/createMessage or roots/list",
            )),
        }
    }
}

impl<'de> Deserialize<'de> for InputRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_tagged(deserializer)
    }
}

result_body!(InputRequiredResult);
