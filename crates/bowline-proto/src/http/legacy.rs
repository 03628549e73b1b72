//! The headers of a session: its id, and the revision it speaks.

use std::fmt;

use ::http::header::ACCEPT;
use ::http::{HeaderMap, HeaderValue, Method};

use super::fields::{Field, Fields};
use super::outline::write_media;
use super::status::Refusal;
use super::{EVENT_STREAM, MCP_PROTOCOL_VERSION, MCP_SESSION_ID};
use crate::revision::Revision;

/// The maximum length of a session id. Some servers use signed tokens.
pub const MAX_SESSION_ID: usize = 4096;

/// The id of a session: visible ASCII, not empty, at most [`MAX_SESSION_ID`] bytes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SessionId(HeaderValue);

impl SessionId {
    /// Parses an id; `None` if it is invalid.
    pub fn parse(text: &str) -> Option<Self> {
        HeaderValue::from_str(text).ok().and_then(Self::from_value)
    }

    /// The session id in the response to a handshake.
    ///
    /// # Errors
    /// When there are several ids, or an invalid one: 400.
    pub fn find(headers: &HeaderMap) -> Result<Option<Self>, Refusal> {
        Self::read(Field::of(headers.get_all(MCP_SESSION_ID)))
    }

    pub(super) fn read(field: Field<'_>) -> Result<Option<Self>, Refusal> {
        match field {
            Field::Absent => Ok(None),
            Field::Once(value) => match Self::from_value(value.clone()) {
                Some(id) => Ok(Some(id)),
                None => Err(Refusal::SessionMalformed),
            },
            Field::Repeated(_) => Err(Refusal::SessionMalformed),
        }
    }

    fn from_value(value: HeaderValue) -> Option<Self> {
        let is_id = (1..=MAX_SESSION_ID).contains(&value.len())
            && value.as_bytes().iter().all(u8::is_ascii_graphic);
        is_id.then_some(Self(value))
    }

    /// The id.
    pub fn as_str(&self) -> &str {
        self.0.to_str().expect("an id is visible ASCII")
    }

    /// The id as the value of its header.
    pub fn as_value(&self) -> &HeaderValue {
        &self.0
    }
}

/// Shortened, because anyone who reads a whole id in a log can join the session.
impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.as_str();
        write!(f, "SessionId({}…)", &text[..text.len().min(4)])
    }
}

/// The revision to speak on a legacy request.
///
/// The negotiated revision holds for the whole session; a header with another legacy revision is
/// ignored, since some clients always send the one they prefer. Without a session the header
/// decides, and without a header it is [`Revision::UNSTATED`].
///
/// # Errors
/// When the header is not a legacy revision, or is repeated: 400.
pub fn legacy_revision(
    fields: &Fields<'_>,
    negotiated: Option<Revision>,
) -> Result<Revision, Refusal> {
    let (value, is_repeated) = match fields.revision {
        Field::Absent => return Ok(negotiated.unwrap_or(Revision::UNSTATED)),
        Field::Once(value) => (value, false),
        Field::Repeated(value) => (value, true),
    };
    let text = String::from_utf8_lossy(value.as_bytes().trim_ascii());
    match text.parse::<Revision>() {
        Ok(named) if !named.is_modern() && !is_repeated => Ok(negotiated.unwrap_or(named)),
        _ => Err(Refusal::Revision(text.into_owned())),
    }
}

/// Writes the headers of a legacy request; `negotiated` and `session` come from the handshake.
pub fn write_legacy(
    headers: &mut HeaderMap,
    method: &Method,
    negotiated: Option<Revision>,
    session: Option<&SessionId>,
) {
    match *method {
        Method::POST => write_media(headers),
        Method::GET => {
            headers.insert(ACCEPT, HeaderValue::from_static(EVENT_STREAM));
        }
        _ => {}
    }
    if let Some(revision) = negotiated.filter(|revision| revision.has_version_header()) {
        let value = HeaderValue::from_static(revision.as_str());
        headers.insert(MCP_PROTOCOL_VERSION, value);
    }
    if let Some(session) = session {
        headers.insert(MCP_SESSION_ID, session.as_value().clone());
    }
}

#[cfg(test)]
mod tests {
    use ::http::HeaderName;
    use ::http::header::CONTENT_TYPE;

    use super::*;

    fn map(name: &HeaderName, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        headers
    }

    #[test]
    fn the_revision_of_a_request() {
        use Revision::{V2025_03_26, V2025_06_18, V2025_11_25};
        fn check(values: &[&str], negotiated: Option<Revision>, expected: Option<Revision>) {
            let headers = map(&MCP_PROTOCOL_VERSION, values);
            let found = legacy_revision(&Fields::read(&headers), negotiated);
            assert_eq!(found.ok(), expected, "{values:?}");
        }
        check(&[], None, Some(V2025_03_26));
        check(&[], Some(V2025_11_25), Some(V2025_11_25));
        check(&["2025-06-18"], None, Some(V2025_06_18));
        check(&[" 2025-06-18 "], None, Some(V2025_06_18));
        check(&["2024-11-05"], None, Some(Revision::V2024_11_05));
        check(&["2025-06-18"], Some(V2025_11_25), Some(V2025_11_25));
        check(&["2026-07-28"], Some(V2025_11_25), None);
        check(&["2026-07-28"], None, None);
        check(&["1999-01-01"], Some(V2025_11_25), None);
        check(&["1999-01-01"], None, None);
        check(&[""], None, None);
        check(&["\u{e9}"], None, None);
        check(&["2025-06-18", "2025-06-18"], None, None);
        check(&["2025-06-18, 2025-11-25"], None, None);
    }

    #[test]
    fn session_ids() {
        fn check(text: &str, is_id: bool) {
            let headers = map(&MCP_SESSION_ID, &[text]);
            let found = SessionId::find(&headers);
            assert_eq!(found.is_ok(), is_id, "{text:?}");
            let parsed = SessionId::parse(text);
            assert_eq!(found.ok().flatten(), parsed);
            assert_eq!(parsed.as_ref().map(SessionId::as_str), is_id.then_some(text));
        }
        check("1868a90c-5b0f-4d3a", true);
        check("!~", true);
        check(&"x".repeat(MAX_SESSION_ID), true);
        check(&"x".repeat(MAX_SESSION_ID + 1), false);
        check("", false);
        check("a b", false);
        check("a\tb", false);
        check("\u{e9}", false);

        assert_eq!(SessionId::parse("a\r\nb"), None);
        assert_eq!(SessionId::find(&HeaderMap::new()), Ok(None));
        let twice = map(&MCP_SESSION_ID, &["a", "a"]);
        assert_eq!(SessionId::find(&twice), Err(Refusal::SessionMalformed));
    }

    #[test]
    fn logs_do_not_hold_a_whole_session_id() {
        let id = SessionId::parse("secret-session").unwrap();
        assert_eq!(format!("{id:?}"), "SessionId(secr…)");
    }

    #[test]
    fn what_a_legacy_client_sends() {
        fn check(method: &Method, negotiated: Option<Revision>, expected: &[&HeaderName]) {
            let id = SessionId::parse("abc").unwrap();
            let mut headers = HeaderMap::new();
            write_legacy(&mut headers, method, negotiated, negotiated.map(|_| &id));
            let found: Vec<_> = headers.keys().collect();
            assert_eq!(found.len(), expected.len(), "{found:?}");
            assert!(expected.iter().all(|name| headers.contains_key(*name)));
            assert!(crate::http::check_accept(method, &Fields::read(&headers)).is_ok());
        }
        let all = [&CONTENT_TYPE, &ACCEPT, &MCP_SESSION_ID, &MCP_PROTOCOL_VERSION];
        check(&Method::POST, None, &all[..2]);
        check(&Method::POST, Some(Revision::V2025_03_26), &all[..3]);
        check(&Method::POST, Some(Revision::V2025_06_18), &all);
        check(&Method::GET, Some(Revision::V2025_11_25), &all[1..]);
        check(&Method::DELETE, Some(Revision::V2025_11_25), &all[2..]);
    }
}
