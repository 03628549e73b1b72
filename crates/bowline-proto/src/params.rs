//! The parameters of a request, scanned once.
//!
//! Before a request reaches its handler, several steps need one or two members of `params` each: to
//! determine its era, its sender, its name for HTTP headers, and whether it may be served at all.
//! [`Params`] finds them all in one walk and keeps them.

use std::borrow::Cow;

use crate::decode::{DecodeError, decode_params};
use crate::members::RawMembers;
use crate::model::{CallToolParams, RequestMeta};
use crate::raw::{Odd, Raw, Walk, Word, fill};
use crate::session::Claim;

/// The parameters of a request, scanned once.
#[derive(Debug, Clone)]
pub struct Params<'a> {
    raw: Option<Raw<'a>>,
    /// What was found. `None` if the parameters are not plain; then each access parses them with
    /// `serde_json`.
    found: Option<Found<'a>>,
}

#[derive(Debug, Clone, Default)]
struct Found<'a> {
    name: Option<Word<'a>>,
    uri: Option<Word<'a>>,
    arguments: Option<Raw<'a>>,
    meta: RequestMeta<'a>,
    /// Whether there are members that change how a request is served.
    has_more: bool,
}

impl<'a> Params<'a> {
    /// Scans raw parameters.
    pub fn of(raw: Option<Raw<'a>>) -> Self {
        let mut found = Found::default();
        let is_plain = raw.is_none_or(|raw| raw.walk(|members| found.walk(members)).is_ok());
        Self { raw, found: is_plain.then_some(found) }
    }

    /// Scans the parameters of a message, of which there must be only one.
    #[inline]
    pub(crate) fn walk(&mut self, message: &mut Walk<'_, 'a>) -> Result<(), Odd> {
        let found = self.found.get_or_insert_default();
        fill(&mut self.raw, message.object(|members| found.walk(members))?)
    }

    /// The text.
    pub fn raw(&self) -> Option<Raw<'a>> {
        self.raw
    }

    /// The era they claim to belong to.
    pub fn claim(&self) -> Claim<'a> {
        match &self.found {
            Some(found) => Claim::of_meta(&found.meta),
            None => Claim::read(self.raw),
        }
    }

    /// The claimed sender of a modern request: capabilities and client information, as text. Empty
    /// if the parameters are invalid; decoding them as their type reports what is wrong.
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
    /// If they are not an object, or have a duplicate member. A member of another type counts as
    /// absent.
    pub fn string(&self, method: &str, member: &str) -> Result<Option<Cow<'a, str>>, DecodeError> {
        let word = match (&self.found, member) {
            (Some(found), "name") => found.name,
            (Some(found), "uri") => found.uri,
            _ => decode_params::<RawMembers<'a>>(method, self.raw)?.get(member).map(Word::Other),
        };
        Ok(word.and_then(Word::text))
    }

    /// The parameters of `tools/call`.
    ///
    /// # Errors
    /// If they do not have that type.
    pub fn call_tool(&self) -> Result<CallToolParams<'a>, DecodeError> {
        if let Some(PlainCall { name, arguments, meta }) = self.plain_call() {
            let (name, meta) = (Cow::Borrowed(name), meta.clone());
            return Ok(CallToolParams { name, arguments, meta, ..CallToolParams::default() });
        }
        decode_params("tools/call", self.raw)
    }

    /// The same for a plain call: a tool, its arguments, and nothing that belongs to tasks or to
    /// answered input requests.
    #[inline]
    pub fn plain_call(&self) -> Option<PlainCall<'_, 'a>> {
        let found = self.found.as_ref().filter(|found| !found.has_more)?;
        let Some(Word::Plain(name)) = found.name else { return None };
        Some(PlainCall { name, arguments: found.arguments, meta: &found.meta })
    }
}

/// The parameters of a plain `tools/call`; see [`Params::plain_call`].
#[derive(Debug, Clone, Copy)]
pub struct PlainCall<'p, 'a> {
    /// The name of the tool.
    pub name: &'a str,
    /// The arguments, an object, if there are any.
    pub arguments: Option<Raw<'a>>,
    /// Metadata.
    pub meta: &'p RequestMeta<'a>,
}

impl Default for Params<'_> {
    fn default() -> Self {
        Self { raw: None, found: Some(Found::default()) }
    }
}

/// Compares the text.
impl PartialEq for Params<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}

impl<'a> Found<'a> {
    fn walk(&mut self, members: &mut Walk<'_, 'a>) -> Result<(), Odd> {
        let mut meta = None;
        while members.has_next()? {
            if members.is("name")? {
                fill(&mut self.name, members.word()?)?;
            } else if members.is("arguments")? {
                let value = members.value()?;
                self.has_more |= !value.is_object();
                fill(&mut self.arguments, value)?;
            } else if members.is("_meta")? {
                fill(&mut meta, members.object(|it| self.meta.walk(it))?)?;
            } else if members.is("uri")? {
                fill(&mut self.uri, members.word()?)?;
            } else {
                let name = members.name()?;
                members.value()?;
                self.has_more |= matches!(name, "task" | "inputResponses" | "requestState");
            }
        }
        Ok(())
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

    /// The scan of plain parameters agrees with `serde_json`.
    fn check(text: &str, is_plain: bool) {
        let raw = Raw::parse(text).unwrap();
        let plain = Params::of(Some(raw));
        assert_eq!(plain.found.is_some(), is_plain, "{text}");
        let slow = Params { raw: Some(raw), found: None };
        assert_eq!(plain.claim(), slow.claim(), "{text}");
        assert_eq!(plain.sender(), slow.sender(), "{text}");
        assert_eq!(plain.call_tool().ok(), slow.call_tool().ok(), "{text}");
        for member in ["name", "uri", "taskId"] {
            assert_eq!(plain.string("m", member), slow.string("m", member), "{text}");
        }
    }

    #[test]
    fn the_scan_agrees_with_serde_json() {
        check("{}", true);
        check(r#"{"name":"echo","arguments":{"message":"hi"}}"#, true);
        check(&format!(r#"{{"name":"echo","arguments":{{}},{META}}}"#), true);
        check(&format!(r#"{{{META},"uri":"file:///a","taskId":"t"}}"#), true);
        check(r#"{"name":"\u0065cho","uri":7}"#, true);
        check(
            "{ \"name\" : \"echo\" ,\n\"arguments\" :\t{ } , \"_meta\": { \"progressToken\" :1 } }",
            true,
        );
        check(r#"{"names":"a","nam":"b","arguments_":{},"meta":{},"_met":{},"":1}"#, true);
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
