//! The parts of a modern request that its headers repeat, for proxies that do not read bodies.

use std::fmt;

use ::http::header::{ACCEPT, CONTENT_TYPE};
use ::http::{HeaderMap, HeaderValue};

use super::fields::{Field, Fields};
use super::mismatch::{HeaderMismatch, HeaderProblem, malformed, same};
use super::sentinel::{decode_value, encode_value, is_plain, read_plain};
use super::{JSON, MCP_METHOD, MCP_NAME, MCP_PROTOCOL_VERSION, quote};

/// The parts of a body that the headers of a modern request repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outline<'a> {
    /// `_meta["io.modelcontextprotocol/protocolVersion"]`, whether it is known or not.
    pub revision: &'a str,
    /// `method`.
    pub method: &'a str,
    /// The member of `params` that [`name_source`] names for the method, if present.
    pub name: Option<&'a str>,
}

/// Where `Mcp-Name` comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NameSource {
    /// The member of `params`.
    pub member: &'static str,
    /// Whether the header is required. A client always sends it.
    pub is_required: bool,
}

/// The member that `Mcp-Name` repeats for this method; `None` if the header is ignored.
pub fn name_source(method: &str) -> Option<NameSource> {
    let (member, is_required) = match method {
        "tools/call" | "prompts/get" => ("name", true),
        "resources/read" => ("uri", true),
        // The tasks extension requires it, the core specification does not mention it, and existing
        // clients omit it.
        "tasks/get" | "tasks/update" | "tasks/cancel" => ("taskId", false),
        _ => return None,
    };
    Some(NameSource { member, is_required })
}

impl Outline<'_> {
    /// Checks that the headers agree with the body (2026-07-28, basic/transports/streamable-http,
    /// "Server Validation").
    ///
    /// A body without the revision has no outline and is rejected with -32602. A body without the
    /// required name passes if the header is missing, too: that is an error in the parameters.
    ///
    /// # Errors
    /// When a header is missing, repeated, malformed or different.
    pub fn check(&self, fields: &Fields<'_>) -> Result<(), HeaderMismatch> {
        check_plain(fields.revision, self.revision)
            .map_err(|problem| HeaderMismatch::new("MCP-Protocol-Version", problem))?;
        check_plain(fields.method, self.method)
            .map_err(|problem| HeaderMismatch::new("Mcp-Method", problem))?;
        self.check_name(fields.name).map_err(|problem| HeaderMismatch::new("Mcp-Name", problem))
    }

    fn check_name(&self, field: Field<'_>) -> Result<(), HeaderProblem> {
        let value = only(field)?;
        let Some(source) = name_source(self.method) else {
            return Ok(());
        };
        let said = value
            .map(|value| decode_value(value).map_err(|reason| malformed(value, reason)))
            .transpose()?;
        match (said, self.name) {
            (Some(said), Some(name)) => same(&said, name),
            (Some(said), None) => Err(HeaderProblem::Unexpected { said: said.into_owned() }),
            (None, Some(name)) if source.is_required => {
                Err(HeaderProblem::Missing { body: name.to_owned() })
            }
            (None, _) => Ok(()),
        }
    }

    /// Writes the headers of a POST with this body, `Content-Type` and `Accept` included.
    ///
    /// Those of a tool's arguments come from [`ParamHeaders::encode`](super::ParamHeaders::encode).
    ///
    /// # Errors
    /// When the revision or the method cannot be written in a header, because there is no encoding
    /// for them.
    pub fn write(&self, headers: &mut HeaderMap) -> Result<(), Unsendable> {
        headers.insert(MCP_PROTOCOL_VERSION, plain(self.revision)?);
        headers.insert(MCP_METHOD, plain(self.method)?);
        if let (Some(_), Some(name)) = (name_source(self.method), self.name) {
            headers.insert(MCP_NAME, encode_value(name));
        }
        write_media(headers);
        Ok(())
    }
}

/// The revision or method cannot be written in a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsendable(pub String);

impl fmt::Display for Unsendable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = quote(&self.0);
        write!(f, "{text} cannot be written in a header: expected visible ASCII")
    }
}

impl std::error::Error for Unsendable {}

/// Writes the media types of a POST: that of its body, and those it accepts.
pub(super) fn write_media(headers: &mut HeaderMap) {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
}

fn plain(text: &str) -> Result<HeaderValue, Unsendable> {
    let value = is_plain(text).then(|| HeaderValue::from_str(text).ok());
    value.flatten().ok_or_else(|| Unsendable(text.to_owned()))
}

fn only(field: Field<'_>) -> Result<Option<&HeaderValue>, HeaderProblem> {
    match field {
        Field::Repeated(_) => Err(HeaderProblem::Repeated),
        Field::Absent => Ok(None),
        Field::Once(value) => Ok(Some(value)),
    }
}

fn check_plain(field: Field<'_>, body: &str) -> Result<(), HeaderProblem> {
    let Some(value) = only(field)? else {
        return Err(HeaderProblem::Missing { body: body.to_owned() });
    };
    let said = read_plain(value).map_err(|reason| malformed(value, reason))?;
    same(said, body)
}

#[cfg(test)]
mod tests {
    use ::http::HeaderName;

    use super::*;
    use crate::error::ErrorCode;

    const REVISION: (&str, &str) = ("MCP-Protocol-Version", "2026-07-28");

    fn call(name: Option<&'static str>) -> Outline<'static> {
        of("tools/call", name)
    }

    fn of(method: &'static str, name: Option<&'static str>) -> Outline<'static> {
        Outline { revision: "2026-07-28", method, name }
    }

    fn map(lines: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        headers
    }

    /// Checks the headers after the revision's; `error` is the message's beginning, or nothing.
    fn check(outline: Outline<'_>, lines: &[(&str, &str)], error: &str) {
        let mut all = vec![REVISION];
        all.extend(lines);
        check_all(outline, &all, error);
    }

    fn check_all(outline: Outline<'_>, lines: &[(&str, &str)], error: &str) {
        let found = outline.check(&Fields::read(&map(lines))).err().map(|mismatch| {
            let object = mismatch.to_error_object();
            assert_eq!(object.code, ErrorCode::HEADER_MISMATCH);
            object.message
        });
        let found = found.unwrap_or_default();
        assert_eq!(found.is_empty(), error.is_empty(), "{lines:?}: {found}");
        assert!(found.starts_with(error), "{lines:?}: {found}");
    }

    #[test]
    fn headers_that_agree() {
        let method = ("Mcp-Method", "tools/call");
        check(call(Some("add")), &[method, ("Mcp-Name", "add")], "");
        check(call(Some("add")), &[method, ("mcp-NAME", "  add\t")], "");
        let encoded = ("Mcp-Name", "=?base64?YWRk?=");
        check(call(Some("add")), &[method, encoded], "");
        let encoded = ("Mcp-Name", "=?base64?5LiW55WM?=");
        check(call(Some("世界")), &[method, encoded], "");
        let half = ("Mcp-Name", "=?base64?YWRk");
        check(call(Some("=?base64?YWRk")), &[method, half], "");
        check(call(Some("")), &[method, ("Mcp-Name", "")], "");
        check(call(None), &[method], "");
        check(of("tools/list", None), &[("Mcp-Method", "tools/list")], "");
        let stray = [("Mcp-Method", "tools/list"), ("Mcp-Name", "x")];
        check(of("tools/list", None), &stray, "");
        let task = ("Mcp-Method", "tasks/get");
        check(of("tasks/get", Some("7")), &[task], "");
        check(of("tasks/get", Some("7")), &[task, ("Mcp-Name", "7")], "");
    }

    #[test]
    fn methods_that_disagree() {
        let method = ("Mcp-Method", "tools/call");
        let name = ("Mcp-Name", "add");
        let add = call(Some("add"));
        check(add, &[name], "header Mcp-Method is missing; the body says \"tools/call\"");
        check(add, &[("Mcp-Method", "tools/list"), name], "header Mcp-Method says \"tools/list\"");
        check(add, &[("Mcp-Method", "Tools/Call"), name], "header Mcp-Method says");
        let encoded = ("Mcp-Method", "=?base64?dG9vbHMvY2FsbA==?=");
        check(add, &[encoded, name], "header Mcp-Method says");
        check(add, &[method, method, name], "header Mcp-Method is given more");
    }

    #[test]
    fn names_that_disagree() {
        let method = ("Mcp-Method", "tools/call");
        let name = ("Mcp-Name", "add");
        let add = call(Some("add"));
        check(add, &[method], "header Mcp-Name is missing; the body says \"add\"");
        check(add, &[method, name, name], "header Mcp-Name is given more");
        let other = ("Mcp-Name", "sub");
        check(add, &[method, other], "header Mcp-Name says \"sub\", the body says \"add\"");
        check(add, &[method, ("Mcp-Name", "Add")], "header Mcp-Name says");
        check(add, &[method, ("Mcp-Name", "")], "header Mcp-Name says \"\"");
        let bad = ("Mcp-Name", "=?base64?YWR?=");
        check(add, &[method, bad], "header Mcp-Name: \"=?base64?YWR?=\": marked as");
        let raw = ("Mcp-Name", "世界");
        check(call(Some("世界")), &[method, raw], "header Mcp-Name: \"世界\": contains characters");
        check(call(None), &[method, name], "header Mcp-Name says \"add\", the body has nothing");
        let task = ("Mcp-Method", "tasks/get");
        check(of("tasks/get", Some("7")), &[task, ("Mcp-Name", "8")], "header Mcp-Name says");
        let listed = ("Mcp-Method", "tools/list");
        check(of("tools/list", None), &[listed, name, name], "header Mcp-Name is given more");
    }

    #[test]
    fn the_revision_comes_first() {
        let rest = [("Mcp-Method", "tools/list")];
        let list = of("tools/list", None);
        check_all(list, &rest, "header MCP-Protocol-Version is missing");
        check_all(list, &[], "header MCP-Protocol-Version is missing");
        let other = [("MCP-Protocol-Version", "2025-11-25"), rest[0]];
        check_all(list, &other, "header MCP-Protocol-Version says \"2025-11-25\"");
        let twice = [REVISION, REVISION, rest[0]];
        check_all(list, &twice, "header MCP-Protocol-Version is given more");
        let unknown = Outline { revision: "v999.0.0", ..list };
        check_all(unknown, &[("MCP-Protocol-Version", "v999.0.0"), rest[0]], "");
    }

    #[test]
    fn what_is_written_agrees() {
        for outline in [
            of("tools/list", None),
            of("tools/list", Some("ignored")),
            call(Some("add")),
            call(Some(" 世界\r\nEvil: 1")),
            of("resources/read", Some("file:///a b")),
            of("prompts/get", Some("")),
            of("tasks/cancel", Some("7")),
        ] {
            let mut headers = HeaderMap::new();
            outline.write(&mut headers).unwrap();
            let fields = Fields::read(&headers);
            outline.check(&fields).unwrap();
            crate::http::check_content_type(&fields).unwrap();
            crate::http::check_accept(&::http::Method::POST, &fields).unwrap();
            let named = name_source(outline.method).is_some() && outline.name.is_some();
            assert_eq!(headers.contains_key(MCP_NAME), named);
        }
    }

    #[test]
    fn no_encoding_for_methods() {
        for method in ["a\nb", "世界", " a", "a "] {
            let error = of(method, None).write(&mut HeaderMap::new());
            assert_eq!(error, Err(Unsendable(method.to_owned())));
        }
    }
}
