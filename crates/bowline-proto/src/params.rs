//! The parameters of a request, looked over once.
//!
//! Before a request reaches its handler, its era is found out, its sender, its name for the headers
//! of HTTP and whether it may be served at all. Each of these asks for one or two members of
//! `params`. [`Params`] finds them in one walk and keeps them.

use std::borrow::Cow;

use crate::decode::{DecodeError, decode_params};
use crate::members::RawMembers;
use crate::model::{CallToolParams, RequestMeta};
use crate::raw::{Odd, Raw, Walk, fill, text};
use crate::session::Claim;

/// The parameters of a request, looked over once.
#[derive(Debug, Clone)]
pub struct Params<'a> {
    raw: Option<Raw<'a>>,
    /// What was found. `None` for parameters that are not plain: whoever wants something of them
    /// reads them by the book.
    found: Option<Found<'a>>,
}

#[derive(Debug, Clone, Default)]
struct Found<'a> {
    name: Option<Raw<'a>>,
    uri: Option<Raw<'a>>,
    arguments: Option<Raw<'a>>,
    meta: RequestMeta<'a>,
    /// Whether there is something that changes how a request is served.
    has_more: bool,
}

impl<'a> Params<'a> {
    /// Looks them over.
    pub fn of(raw: Option<Raw<'a>>) -> Self {
        let found = match raw {
            Some(raw) => raw.walk(Found::walk).ok(),
            None => Some(Found::default()),
        };
        Self { raw, found }
    }

    /// Looks over those that a message holds.
    pub(crate) fn walk(message: &mut Walk<'_, 'a>) -> Result<Self, Odd> {
        let (raw, found) = message.object(Found::walk)?;
        Ok(Self { raw: Some(raw), found: Some(found) })
    }

    /// The text.
    pub fn raw(&self) -> Option<Raw<'a>> {
        self.raw
    }

    /// Which era they claim to belong to.
    pub fn claim(&self) -> Claim<'a> {
        match &self.found {
            Some(found) => Claim::of_meta(&found.meta),
            None => Claim::read(self.raw),
        }
    }

    /// Who says to have sent a modern request: capabilities and information, as text. Nothing, if
    /// they are not what parameters are; whoever reads them as their type says what is wrong.
    pub fn sender(&self) -> [Option<&'a str>; 2] {
        let described = |meta: &RequestMeta<'a>| {
            [meta.client_capabilities, meta.client_info].map(|raw| raw.map(Raw::get))
        };
        match &self.found {
            Some(found) => described(&found.meta),
            None => described(&RequestMeta::of(self.raw)),
        }
    }

    /// A member that is a string.
    ///
    /// # Errors
    /// When they are no object, or have a member twice. A member of another type is not there.
    pub fn string(&self, method: &str, member: &str) -> Result<Option<Cow<'a, str>>, DecodeError> {
        let raw = match (&self.found, member) {
            (Some(found), "name") => found.name,
            (Some(found), "uri") => found.uri,
            _ => decode_params::<RawMembers<'a>>(method, self.raw)?.get(member),
        };
        let Some(raw) = raw else { return Ok(None) };
        Ok(text(raw).ok().or_else(|| serde_json::from_str(raw.get()).ok().map(Cow::Owned)))
    }

    /// The parameters of `tools/call`.
    ///
    /// # Errors
    /// When they are something else.
    pub fn call_tool(&self) -> Result<CallToolParams<'a>, DecodeError> {
        if let Some(found) = &self.found
            && !found.has_more
            && let Some(Ok(name)) = found.name.map(text)
        {
            let (arguments, meta) = (found.arguments, found.meta.clone());
            return Ok(CallToolParams { name, arguments, meta, ..CallToolParams::default() });
        }
        decode_params("tools/call", self.raw)
    }
}

impl Default for Params<'_> {
    fn default() -> Self {
        Self::of(None)
    }
}

/// The same text is the same.
impl PartialEq for Params<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}

impl<'a> Found<'a> {
    fn walk(members: &mut Walk<'_, 'a>) -> Result<Self, Odd> {
        let mut found = Self::default();
        let mut meta = None;
        while let Some(key) = members.next()? {
            match key {
                "name" => fill(&mut found.name, members.value()?)?,
                "uri" => fill(&mut found.uri, members.value()?)?,
                "arguments" => {
                    let value = members.value()?;
                    found.has_more |= !value.is_object();
                    fill(&mut found.arguments, value)?;
                }
                "_meta" => fill(&mut meta, members.object(RequestMeta::walk)?.1)?,
                "task" | "inputResponses" | "requestState" => {
                    members.value()?;
                    found.has_more = true;
                }
                _ => drop(members.value()?),
            }
        }
        found.meta = meta.unwrap_or_default();
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const META: &str = concat!(
        r#""_meta":{"progressToken":7,"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
        r#""io.modelcontextprotocol/clientInfo":{"name":"ink","version":"1"},"#,
        r#""io.modelcontextprotocol/clientCapabilities":{},"traceparent":"00-1-2-01"}"#
    );

    /// What is kept of plain parameters is what the book says.
    fn check(text: &str, is_plain: bool) {
        let raw = Raw::parse(text).unwrap();
        let plain = Params::of(Some(raw));
        assert_eq!(plain.found.is_some(), is_plain, "{text}");
        let book = Params { raw: Some(raw), found: None };
        assert_eq!(plain.claim(), book.claim(), "{text}");
        assert_eq!(plain.sender(), book.sender(), "{text}");
        assert_eq!(plain.call_tool().ok(), book.call_tool().ok(), "{text}");
        for member in ["name", "uri", "taskId"] {
            assert_eq!(plain.string("m", member), book.string("m", member), "{text}");
        }
    }

    #[test]
    fn plain_parameters_are_read_by_the_book() {
        check("{}", true);
        check(r#"{"name":"echo","arguments":{"message":"hi"}}"#, true);
        check(&format!(r#"{{"name":"echo","arguments":{{}},{META}}}"#), true);
        check(&format!(r#"{{{META},"uri":"file:///a","taskId":"t"}}"#), true);
        check(r#"{"name":"\u0065cho","uri":7}"#, true);
        check(r#"{"name":"echo","arguments":null}"#, true);
        check(r#"{"name":"echo","arguments":[1]}"#, true);
        check(r#"{"name":"echo","task":{"ttl":1},"requestState":"s","inputResponses":{}}"#, true);
        check(
            r#"{"name":"echo","_meta":{"io.modelcontextprotocol/clientCapabilities":null}}"#,
            true,
        );
        check(r#"{"name":"echo","_meta":{"io.modelcontextprotocol/logLevel":"debug"}}"#, false);
        check(r#"{"name":"echo","_meta":{"io.modelcontextprotocol/protocolVersion":1}}"#, false);
        check(r#"{"name":"echo","_meta":{"progressToken":1.5}}"#, false);
        check(r#"{"name":"echo","_meta":null}"#, false);
        check(r#"{"name":"echo","name":"echo"}"#, false);
        check(r#"{"n\u0061me":"echo"}"#, false);
        check("[1]", false);
    }
}
