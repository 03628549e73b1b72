//! `_meta`: the metadata of every message.
//!
//! Most of it is opaque ([`Meta`]). The keys that the protocol reserves have typed access. The
//! `_meta` of requests from a client is read on the hot path, so [`RequestMeta`] borrows from the
//! frame and leaves what it does not need as raw JSON.

use std::borrow::Cow;
use std::fmt;

use crate::raw::{Odd, Raw, Walk, fill};
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{Implementation, LoggingLevel, ResultType};
use crate::json::Sparse;
use crate::members::RawMembers;
use crate::wire::{Id, Text, once};

/// Reserved keys of `_meta`.
pub mod meta_key {
    /// Requests progress notifications with this token.
    pub const PROGRESS_TOKEN: &str = "progressToken";
    /// The revision of a modern request.
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// The sender of a modern request.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// The capabilities of the sender of a modern request.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// The minimum level of log messages for a modern request.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// The sender of a modern result.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// The `subscriptions/listen` request that a message belongs to.
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    /// The task that a message belongs to. 2025-11-25.
    pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
    /// W3C trace context; by exception without a prefix.
    pub const TRACEPARENT: &str = "traceparent";
    /// W3C trace context.
    pub const TRACESTATE: &str = "tracestate";
    /// W3C baggage.
    pub const BAGGAGE: &str = "baggage";
}

/// The token that progress notifications for a request must carry: a string or an integer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProgressToken(pub Id);

impl<T: Into<Id>> From<T> for ProgressToken {
    fn from(token: T) -> Self {
        Self(token.into())
    }
}

/// `_meta` of a notification, a result, or a listed item.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Meta(pub Sparse);

impl Meta {
    /// The value of a key as a type of the caller's; `None` if it is absent or has another type.
    pub fn read<T: de::DeserializeOwned>(&self, key: &str) -> Option<T> {
        self.0.get(key).and_then(|value| T::deserialize(value).ok())
    }

    /// Sets a key.
    pub fn set(&mut self, key: &str, value: impl Serialize) {
        if let Ok(value) = serde_json::to_value(value) {
            self.0.insert(key.to_owned(), value);
        }
    }

    /// The sender of a modern result.
    pub fn server_info(&self) -> Option<Implementation> {
        self.read(meta_key::SERVER_INFO)
    }

    /// The `subscriptions/listen` request that this belongs to.
    pub fn subscription_id(&self) -> Option<Id> {
        self.read(meta_key::SUBSCRIPTION_ID)
    }

    /// The token for progress notifications.
    pub fn progress_token(&self) -> Option<ProgressToken> {
        self.read(meta_key::PROGRESS_TOKEN)
    }
}

/// `_meta` of a request from a client, borrowed from the frame.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RequestMeta<'a> {
    /// Requests progress notifications.
    pub progress_token: Option<ProgressToken>,
    /// The revision of a modern request. Its presence is what marks a request as modern.
    pub protocol_version: Option<Cow<'a, str>>,
    /// The sender's capabilities: [`ClientCapabilities`](super::ClientCapabilities), not parsed
    /// yet.
    pub client_capabilities: Option<Raw<'a>>,
    /// The sender: an [`Implementation`], not parsed yet. For display and logs only.
    pub client_info: Option<Raw<'a>>,
    /// The minimum level of log messages.
    pub log_level: Option<LoggingLevel>,
    /// Everything else.
    pub others: RawMembers<'a>,
}

impl<'a> RequestMeta<'a> {
    /// The `_meta` of any request's parameters; empty if they are invalid.
    pub fn of(params: Option<Raw<'a>>) -> Self {
        #[derive(Deserialize, Default)]
        struct Params<'a> {
            #[serde(borrow, rename = "_meta", default)]
            meta: RequestMeta<'a>,
        }
        let params =
            params.and_then(|params| serde_json::from_str::<Params<'_>>(params.get()).ok());
        params.unwrap_or_default().meta
    }

    /// Fills an empty value, if the text is plain.
    pub(crate) fn walk(&mut self, members: &mut Walk<'_, 'a>) -> Result<(), Odd> {
        while members.has_next()? {
            if members.is(meta_key::PROTOCOL_VERSION)? {
                fill(&mut self.protocol_version, Cow::Borrowed(members.string()?))?;
            } else if members.is(meta_key::CLIENT_INFO)? {
                fill(&mut self.client_info, members.value()?)?;
            } else if members.is(meta_key::CLIENT_CAPABILITIES)? {
                fill(&mut self.client_capabilities, members.value()?)?;
            } else if members.is(meta_key::PROGRESS_TOKEN)? {
                fill(&mut self.progress_token, ProgressToken(Id::walk(members)?))?;
            } else if members.is(meta_key::LOG_LEVEL)? {
                return Err(Odd);
            } else {
                self.others.push(members.name()?, members.value()?);
            }
        }
        Ok(())
    }
}

impl RequestMeta<'_> {
    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.progress_token.is_none()
            && self.protocol_version.is_none()
            && self.client_capabilities.is_none()
            && self.client_info.is_none()
            && self.log_level.is_none()
            && self.others.is_empty()
    }

    /// The W3C `traceparent`, if it is present and a string.
    pub fn traceparent(&self) -> Option<String> {
        // W3C Trace Context: 55 characters, more in later versions.
        let raw = self.others.get(meta_key::TRACEPARENT).filter(|raw| raw.get().len() <= 256)?;
        serde_json::from_str(raw.get()).ok()
    }
}

impl Serialize for RequestMeta<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(token) = &self.progress_token {
            map.serialize_entry(meta_key::PROGRESS_TOKEN, token)?;
        }
        if let Some(version) = &self.protocol_version {
            map.serialize_entry(meta_key::PROTOCOL_VERSION, version)?;
        }
        if let Some(info) = self.client_info {
            map.serialize_entry(meta_key::CLIENT_INFO, &info)?;
        }
        if let Some(capabilities) = self.client_capabilities {
            map.serialize_entry(meta_key::CLIENT_CAPABILITIES, &capabilities)?;
        }
        if let Some(level) = self.log_level {
            map.serialize_entry(meta_key::LOG_LEVEL, &level)?;
        }
        for (key, value) in self.others.iter() {
            map.serialize_entry(key, &value)?;
        }
        map.end()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RequestMeta<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RequestMetaVisitor)
    }
}

struct RequestMetaVisitor;

impl<'de> Visitor<'de> for RequestMetaVisitor {
    type Value = RequestMeta<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut meta = RequestMeta::default();
        while let Some(Text(key)) = map.next_key()? {
            match key.as_ref() {
                meta_key::PROGRESS_TOKEN => {
                    once(meta_key::PROGRESS_TOKEN, &mut meta.progress_token, map.next_value()?)?;
                }
                meta_key::PROTOCOL_VERSION => {
                    let Text(version) = map.next_value()?;
                    once(meta_key::PROTOCOL_VERSION, &mut meta.protocol_version, version)?;
                }
                meta_key::CLIENT_CAPABILITIES => {
                    let slot = &mut meta.client_capabilities;
                    once(meta_key::CLIENT_CAPABILITIES, slot, map.next_value()?)?;
                }
                meta_key::CLIENT_INFO => {
                    once(meta_key::CLIENT_INFO, &mut meta.client_info, map.next_value()?)?;
                }
                meta_key::LOG_LEVEL => {
                    once(meta_key::LOG_LEVEL, &mut meta.log_level, map.next_value()?)?;
                }
                _ => meta.others.push(key, map.next_value()?),
            }
        }
        Ok(meta)
    }
}

/// The parameters of a request from a client, all of which may carry `_meta`.
pub trait RequestParams<'a> {
    /// Metadata.
    fn meta(&self) -> &RequestMeta<'a>;

    /// Metadata, mutably.
    fn meta_mut(&mut self) -> &mut RequestMeta<'a>;

    /// The arguments of a tool, which headers may repeat.
    fn arguments(&self) -> Option<Raw<'a>> {
        None
    }

    /// The name of the tool, prompt or task, or the URI of the resource, which a header repeats.
    fn into_name(self) -> Option<Cow<'a, str>>
    where
        Self: Sized,
    {
        None
    }
}

/// What all results have in common.
pub trait ResultBody {
    /// The kind of result. Only modern results have one.
    fn result_type_mut(&mut self) -> &mut Option<ResultType>;

    /// Metadata.
    fn meta_mut(&mut self) -> &mut Option<Meta>;

    /// Members that the specification does not define.
    fn extra_mut(&mut self) -> &mut Sparse;
}

/// Implements [`RequestParams`] for structs with a member `meta`; in braces, the members that
/// headers repeat: the name, and the arguments.
macro_rules! request_params {
    ($($params:ident $({ $name:ident $(, $arguments:ident)? })?),* $(,)?) => {$(
        impl<'a> $crate::model::RequestParams<'a> for $params<'a> {
            fn meta(&self) -> &$crate::model::RequestMeta<'a> {
                &self.meta
            }

            fn meta_mut(&mut self) -> &mut $crate::model::RequestMeta<'a> {
                &mut self.meta
            }

            $($(
                fn arguments(&self) -> Option<$crate::raw::Raw<'a>> {
                    self.$arguments
                }
            )?

                fn into_name(self) -> Option<std::borrow::Cow<'a, str>> {
                    Some(self.$name.into())
                }
            )?
        }
    )*};
}
pub(super) use request_params;

/// Implements [`ResultBody`] for structs with members `result_type`, `meta` and `extra`.
macro_rules! result_body {
    ($($name:ty),* $(,)?) => {$(
        impl $crate::model::ResultBody for $name {
            fn result_type_mut(&mut self) -> &mut Option<$crate::model::ResultType> {
                &mut self.result_type
            }

            fn meta_mut(&mut self) -> &mut Option<$crate::model::Meta> {
                &mut self.meta
            }

            fn extra_mut(&mut self) -> &mut $crate::json::Sparse {
                &mut self.extra
            }
        }
    )*};
}
pub(super) use result_body;
