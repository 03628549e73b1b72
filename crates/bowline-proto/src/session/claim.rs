//! The protocol version that a request claims in `params._meta`.
//!
//! Read before the other parameters, because the era decides how those are read.

use std::borrow::Cow;
use std::fmt;

use crate::model::RequestMeta;
use crate::raw::Raw;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::wire::{Message, Text};

/// The claim in `params._meta`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Claim<'a> {
    pub(super) version: Member<Cow<'a, str>>,
    pub(super) capabilities: Member<()>,
}

/// A member of `_meta`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Member<T> {
    #[default]
    Absent,
    Is(T),
    /// Of the wrong type, or repeated.
    Malformed,
}

impl<'a> Claim<'a> {
    /// Reads the claim of `params`. Borrows, and skips all but two members of `_meta`.
    pub fn read(params: Option<Raw<'a>>) -> Self {
        let Some(params) = params else {
            return Self::default();
        };
        // Params that are not an object claim nothing; decoding them reports what is wrong.
        serde_json::from_str(params.get()).unwrap_or_default()
    }

    /// The claim of a message. Answers claim nothing.
    pub fn of_message(message: &Message<'a>) -> Self {
        match message {
            Message::Request(request) => request.params.claim(),
            Message::Notification(notification) => Self::read(notification.params),
            Message::Response(_) | Message::Fault(_) => Self::default(),
        }
    }

    /// The claim of parameters with this `_meta`.
    pub(crate) fn of_meta(meta: &RequestMeta<'a>) -> Self {
        let version = meta.protocol_version.clone().map_or(Member::Absent, Member::Is);
        let capabilities = match meta.client_capabilities {
            None => Member::Absent,
            Some(raw) if raw.is_object() => Member::Is(()),
            Some(_) => Member::Malformed,
        };
        Self { version, capabilities }
    }

    /// A well-formed claim.
    pub fn of(version: &'a str) -> Self {
        Self { version: Member::Is(Cow::Borrowed(version)), capabilities: Member::Is(()) }
    }

    /// The claimed version, if it is a string.
    pub fn version(&self) -> Option<&str> {
        match &self.version {
            Member::Is(version) => Some(version),
            Member::Absent | Member::Malformed => None,
        }
    }

    pub(super) fn is_absent(&self) -> bool {
        self.version == Member::Absent
    }
}

pub(super) const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
pub(super) const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

impl<'de: 'a, 'a> Deserialize<'de> for Claim<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ParamsVisitor)
    }
}

struct ParamsVisitor;

impl<'de> Visitor<'de> for ParamsVisitor {
    type Value = Claim<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("params, which are an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut claim = None;
        while let Some(Text(key)) = map.next_key()? {
            if key != "_meta" {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let raw: Raw<'_> = map.next_value()?;
            let read = serde_json::from_str(raw.get()).map(|MetaClaim(read)| read);
            // Readers differ in which of two they take, so neither counts.
            claim = match claim {
                None => Some(read.unwrap_or_default()),
                Some(_) => {
                    Some(Claim { version: Member::Malformed, capabilities: Member::Malformed })
                }
            };
        }
        Ok(claim.unwrap_or_default())
    }
}

struct MetaClaim<'a>(Claim<'a>);

impl<'de: 'a, 'a> Deserialize<'de> for MetaClaim<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MetaVisitor).map(Self)
    }
}

struct MetaVisitor;

impl<'de> Visitor<'de> for MetaVisitor {
    type Value = Claim<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("_meta, which is an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut claim = Claim::default();
        while let Some(Text(key)) = map.next_key()? {
            let raw: Raw<'_> = map.next_value()?;
            match key.as_ref() {
                VERSION_KEY => claim.version.set(read_text(raw)),
                CAPABILITIES_KEY => {
                    let is_object = raw.get().starts_with('{');
                    claim.capabilities.set(is_object.then_some(()));
                }
                _ => {}
            }
        }
        Ok(claim)
    }
}

fn read_text(raw: Raw<'_>) -> Option<Cow<'_, str>> {
    serde_json::from_str(raw.get()).ok().map(|Text(text)| text)
}

impl<T> Member<T> {
    fn set(&mut self, value: Option<T>) {
        *self = match (&self, value) {
            (Self::Absent, Some(value)) => Self::Is(value),
            _ => Self::Malformed,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(params: &str, version: &Member<&str>, capabilities: &Member<()>) {
        let raw: Raw<'_> = serde_json::from_str(params).unwrap();
        let claim = Claim::read(Some(raw));
        let found = match &claim.version {
            Member::Is(version) => Member::Is(version.as_ref()),
            Member::Absent => Member::Absent,
            Member::Malformed => Member::Malformed,
        };
        assert_eq!(&found, version, "{params}");
        assert_eq!(&claim.capabilities, capabilities, "{params}");
    }

    #[test]
    fn claims_are_read_from_meta_only() {
        use Member::{Absent, Is, Malformed};
        const V: &str = r#""io.modelcontextprotocol/protocolVersion""#;
        const C: &str = r#""io.modelcontextprotocol/clientCapabilities""#;
        check("{}", &Absent, &Absent);
        check("[1]", &Absent, &Absent);
        check(r#"{"_meta":{}}"#, &Absent, &Absent);
        check(r#"{"_meta":null}"#, &Absent, &Absent);
        check(r#"{"_meta":7}"#, &Absent, &Absent);
        check(&format!(r#"{{{V}:"a"}}"#), &Absent, &Absent);
        check(&format!(r#"{{"arguments":{{"_meta":{{{V}:"a"}}}}}}"#), &Absent, &Absent);
        check(&format!(r#"{{"x":[1],"_meta":{{"y":{{}},{V}:"a",{C}:{{}}}}}}"#), &Is("a"), &Is(()));
        check(&format!(r#"{{"_meta":{{{V}:""}}}}"#), &Is(""), &Absent);
        check(r#"{"_meta":{"io.modelcontextprotocol\/protocolVersion":"a"}}"#, &Is("a"), &Absent);
        check(&format!(r#"{{"_meta":{{{V}:null,{C}:null}}}}"#), &Malformed, &Malformed);
        check(&format!(r#"{{"_meta":{{{V}:1,{C}:[]}}}}"#), &Malformed, &Malformed);
        check(&format!(r#"{{"_meta":{{{V}:"a",{V}:"a"}}}}"#), &Malformed, &Absent);
        check(&format!(r#"{{"_meta":{{{V}:"a"}},"_meta":{{}}}}"#), &Malformed, &Malformed);
    }
}
