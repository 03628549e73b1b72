//! The headers of a request that the protocol uses, collected in one pass.
//!
//! A lookup hashes the name. A request needs ten of them, and most are present, so walking over all
//! headers once costs a fraction of that.

use ::http::{HeaderMap, HeaderValue};

use super::legacy::SessionId;
use super::status::Refusal;

/// The bytes of a header line besides name and value: a colon, a space and the line break.
const LINE: usize = 4;

/// The headers of a request, with those that the protocol uses at hand.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'h> {
    pub(super) all: &'h HeaderMap,
    pub(super) accept: Field<'h>,
    pub(super) content_type: Field<'h>,
    pub(super) host: Field<'h>,
    pub(super) method: Field<'h>,
    pub(super) name: Field<'h>,
    pub(super) origin: Field<'h>,
    pub(super) revision: Field<'h>,
    pub(super) session_id: Field<'h>,
    /// Whether a browser reports a page on another site. Unknown values are ignored, as the W3C
    /// specifies.
    pub(super) is_cross_site: bool,
    length: usize,
}

impl<'h> Fields<'h> {
    /// Collects the headers of a request.
    pub fn read(headers: &'h HeaderMap) -> Self {
        let mut fields = Self {
            all: headers,
            accept: Field::Absent,
            content_type: Field::Absent,
            host: Field::Absent,
            method: Field::Absent,
            name: Field::Absent,
            origin: Field::Absent,
            revision: Field::Absent,
            session_id: Field::Absent,
            is_cross_site: false,
            length: 0,
        };
        for (name, value) in headers {
            fields.length += name.as_str().len() + value.len() + LINE;
            let field = match name.as_str() {
                "accept" => &mut fields.accept,
                "content-type" => &mut fields.content_type,
                "host" => &mut fields.host,
                "mcp-method" => &mut fields.method,
                "mcp-name" => &mut fields.name,
                "mcp-protocol-version" => &mut fields.revision,
                "mcp-session-id" => &mut fields.session_id,
                "origin" => &mut fields.origin,
                "sec-fetch-site" => {
                    let site = value.as_bytes().trim_ascii();
                    fields.is_cross_site |= site.eq_ignore_ascii_case(b"cross-site");
                    continue;
                }
                _ => continue,
            };
            field.add(value);
        }
        fields
    }

    /// Their length in bytes, as HTTP/1.1 writes them.
    pub fn length(&self) -> usize {
        self.length
    }

    /// All headers.
    pub fn headers(&self) -> &'h HeaderMap {
        self.all
    }

    /// The value of `Host`, if it alone decides about a request to a bare path, because no page
    /// sent it.
    ///
    /// For the same value, [`Access::check`](super::Access::check) always decides the same.
    pub fn host_alone(&self) -> Option<&'h [u8]> {
        match (self.host, self.origin) {
            (Field::Once(host), Field::Absent) if !self.is_cross_site => Some(host.as_bytes()),
            _ => None,
        }
    }

    /// `MCP-Protocol-Version`; the first one if it is repeated.
    pub fn revision(&self) -> Option<&'h HeaderValue> {
        self.revision.first()
    }

    /// Whether `Mcp-Session-Id` is present, valid or not.
    pub fn has_session_id(&self) -> bool {
        self.session_id.first().is_some()
    }

    /// The session that the request names.
    ///
    /// # Errors
    /// When there are several ids, or an invalid one: 400.
    pub fn session_id(&self) -> Result<Option<SessionId>, Refusal> {
        SessionId::read(self.session_id)
    }
}

/// One header.
#[derive(Debug, Clone, Copy)]
pub(super) enum Field<'h> {
    Absent,
    Once(&'h HeaderValue),
    /// The first of several.
    Repeated(&'h HeaderValue),
}

impl<'h> Field<'h> {
    /// Creates it from all values in a map.
    pub(super) fn of(values: impl IntoIterator<Item = &'h HeaderValue>) -> Self {
        let mut field = Self::Absent;
        for value in values {
            field.add(value);
        }
        field
    }

    fn add(&mut self, value: &'h HeaderValue) {
        *self = match *self {
            Self::Absent => Self::Once(value),
            Self::Once(first) | Self::Repeated(first) => Self::Repeated(first),
        };
    }

    pub(super) fn first(self) -> Option<&'h HeaderValue> {
        match self {
            Self::Absent => None,
            Self::Once(value) | Self::Repeated(value) => Some(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use ::http::HeaderName;
    use ::http::header::{ACCEPT, CONTENT_TYPE, HOST, ORIGIN};

    use super::*;
    use crate::http::{MCP_METHOD, MCP_NAME, MCP_PROTOCOL_VERSION, MCP_SESSION_ID, SEC_FETCH_SITE};

    #[test]
    fn each_header_is_found_by_its_name() {
        fn check(name: &HeaderName, field: for<'f, 'h> fn(&'f Fields<'h>) -> Field<'h>) {
            let mut headers = HeaderMap::new();
            headers.insert("x-other", HeaderValue::from_static("other"));
            assert!(matches!(field(&Fields::read(&headers)), Field::Absent), "{name}");
            headers.append(name, HeaderValue::from_static("one"));
            let found = field(&Fields::read(&headers));
            assert!(matches!(found, Field::Once(value) if value == "one"), "{name}");
            headers.append(name, HeaderValue::from_static("two"));
            let found = field(&Fields::read(&headers));
            assert!(matches!(found, Field::Repeated(value) if value == "one"), "{name}");
        }
        check(&ACCEPT, |fields| fields.accept);
        check(&CONTENT_TYPE, |fields| fields.content_type);
        check(&HOST, |fields| fields.host);
        check(&MCP_METHOD, |fields| fields.method);
        check(&MCP_NAME, |fields| fields.name);
        check(&ORIGIN, |fields| fields.origin);
        check(&MCP_PROTOCOL_VERSION, |fields| fields.revision);
        check(&MCP_SESSION_ID, |fields| fields.session_id);
    }

    #[test]
    fn pages_do_not_pass_for_their_host_alone() {
        fn check(lines: &[(HeaderName, &'static str)], expected: Option<&str>) {
            let mut headers = HeaderMap::new();
            for (name, value) in lines {
                headers.append(name, HeaderValue::from_static(value));
            }
            let found = Fields::read(&headers).host_alone();
            assert_eq!(found, expected.map(str::as_bytes), "{lines:?}");
        }
        let host = (HOST, "localhost");
        check(&[], None);
        check(&[host.clone(), (SEC_FETCH_SITE, "none")], Some("localhost"));
        check(&[host.clone(), (ACCEPT, "*/*")], Some("localhost"));
        check(&[host.clone(), host.clone()], None);
        check(&[host.clone(), (ORIGIN, "http://localhost")], None);
        check(&[host, (SEC_FETCH_SITE, "cross-site")], None);
    }

    #[test]
    fn their_length_is_that_of_all_lines() {
        let mut headers = HeaderMap::new();
        assert_eq!(Fields::read(&headers).length(), 0);
        headers.append(HOST, HeaderValue::from_static("a"));
        headers.append("x-other", HeaderValue::from_static(""));
        headers.append("x-other", HeaderValue::from_static("bc"));
        assert_eq!(Fields::read(&headers).length(), "host: a--x-other: --x-other: bc--".len());
    }

    #[test]
    fn one_word_of_another_site_is_enough() {
        fn check(values: &[&'static str], expected: bool) {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(SEC_FETCH_SITE, HeaderValue::from_static(value));
            }
            assert_eq!(Fields::read(&headers).is_cross_site, expected, "{values:?}");
        }
        check(&[], false);
        check(&["same-origin"], false);
        check(&[" Cross-Site "], true);
        check(&["none", "cross-site", "none"], true);
    }
}
