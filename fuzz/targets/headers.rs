//! Headers: what is written parses to the same, and only listed origins and hosts are accepted.
//!
//! An input is a letter that selects the part, then lines: no header can contain a line feed.

#![no_main]

use bowline_proto::http::{
    Access, Fields, MAX_SESSION_ID, MCP_METHOD, MCP_NAME, MCP_PROTOCOL_VERSION, MCP_SESSION_ID,
    Media, Outline, ParamHeaders, SEC_FETCH_SITE, SessionId, check_accept, check_content_type,
    decode_value, encode_value, legacy_revision, name_source, write_legacy,
};
use bowline_proto::raw::Raw;
use bowline_proto::revision::Revision;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, ORIGIN};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|input: &[u8]| {
    let Some((part, rest)) = input.split_first() else {
        return;
    };
    match part {
        b'v' => value(rest),
        b'o' => outline(rest),
        b'p' => params(rest),
        b'a' => access(rest),
        b'm' => media(rest),
        b's' => session(rest),
        _ => {}
    }
});

fn lines(input: &[u8]) -> impl Iterator<Item = &[u8]> {
    input.split(|byte| *byte == b'\n')
}

/// Assigns the lines to the headers in turn. Lines that no header can contain are skipped, and so
/// are empty ones, so that a header can be absent.
fn headers(input: &[u8], names: &[HeaderName]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (line, name) in lines(input).zip(names.iter().cycle()) {
        if let Ok(value) = HeaderValue::from_bytes(line)
            && !line.is_empty()
        {
            headers.append(name, value);
        }
    }
    headers
}

fn value(input: &[u8]) {
    if let Ok(text) = std::str::from_utf8(input) {
        let written = encode_value(text);
        assert_eq!(decode_value(&written).as_deref(), Ok(text));
    }
    let Ok(value) = HeaderValue::from_bytes(input) else {
        return;
    };
    let Ok(read) = decode_value(&value) else {
        return;
    };
    let written = encode_value(&read);
    assert_eq!(decode_value(&written).as_deref(), Ok(&*read));
    let seen = value.to_str().expect("it was read").trim_matches([' ', '\t']);
    // Base64 has one encoding: a text that must be encoded was written exactly so. A tab may be
    // plain.
    if written.as_bytes().starts_with(b"=?base64?") && *read != *seen {
        assert_eq!(written, *seen);
    }
}

fn outline(input: &[u8]) {
    let mut texts = lines(input).map(|line| std::str::from_utf8(line).unwrap_or("tools/call"));
    let revision = texts.next().unwrap_or_default();
    let method = texts.next().unwrap_or_default();
    let outline = Outline { revision, method, name: texts.next() };
    let mut written = HeaderMap::new();
    if outline.write(&mut written).is_ok() {
        assert_eq!(outline.check(&Fields::read(&written)), Ok(()));
        assert_eq!(check_content_type(&Fields::read(&written)).map_err(drop), Ok(()));
        assert_eq!(check_accept(&Method::POST, &Fields::read(&written)).map_err(drop), Ok(()));
    }
    let names = [MCP_PROTOCOL_VERSION, MCP_METHOD, MCP_NAME];
    let rest = lines(input).skip(3).collect::<Vec<_>>().join(&b'\n');
    let foreign = headers(&rest, &names);
    if outline.check(&Fields::read(&foreign)).is_err() {
        return;
    }
    let read = |name: &HeaderName| foreign.get(name).map(|value| decode_value(value).ok());
    assert!(foreign[MCP_PROTOCOL_VERSION].to_str().is_ok_and(|text| text.trim() == revision));
    assert!(foreign[MCP_METHOD].to_str().is_ok_and(|text| text.trim() == method));
    if let Some((source, said)) = name_source(method).zip(read(&MCP_NAME)) {
        assert_eq!(said.as_deref(), outline.name, "{source:?}");
    }
    assert!(names.iter().all(|name| foreign.get_all(name).iter().count() <= 1));
}

/// A schema on the first line, arguments on the others.
fn params(input: &[u8]) {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (schema, arguments) = input.split_at(end);
    let Ok(schema) = serde_json::from_slice::<Value>(schema) else {
        return;
    };
    let Ok(wanted) = ParamHeaders::parse(&schema) else {
        return;
    };
    let arguments = serde_json::from_slice::<Raw<'_>>(arguments).ok();
    let Ok(encoded) = wanted.encode(arguments) else {
        assert!(wanted.check(&HeaderMap::new(), arguments).is_err());
        return;
    };
    let headers: HeaderMap = encoded.iter().cloned().collect();
    assert_eq!(headers.len(), encoded.len(), "a duplicate name");
    assert_eq!(wanted.check(&headers, arguments), Ok(()));
    for (name, value) in &encoded {
        let mut fewer = headers.clone();
        fewer.remove(name);
        assert!(wanted.check(&fewer, arguments).is_err(), "{name} is missing");
        let mut more = headers.clone();
        more.append(name, value.clone());
        assert!(wanted.check(&more, arguments).is_err(), "{name} appears twice");
        let mut other = headers.clone();
        let text = decode_value(value).expect("we wrote it");
        // Not a zero: `00` is the same number as `0`.
        other.insert(name, encode_value(&format!("{text}1")));
        assert!(wanted.check(&other, arguments).is_err(), "{name} differs");
    }
    let tree = arguments.and_then(|raw| serde_json::from_str(raw.get()).ok());
    if let Some(tree) = tree {
        repeats(&schema, &tree, &headers);
    }
}

/// Each annotated argument appears in its header, according to the tree.
fn repeats(schema: &Value, argument: &Value, headers: &HeaderMap) {
    if let Some(name) = schema.get("x-mcp-header").and_then(Value::as_str) {
        let value = headers.get(format!("mcp-param-{name}").to_ascii_lowercase());
        let said = value.map(|value| decode_value(value).expect("we wrote it"));
        match argument {
            Value::String(text) => assert_eq!(said.as_deref(), Some(text.as_str())),
            Value::Bool(is_true) => assert_eq!(said, Some(is_true.to_string().into())),
            Value::Number(number) => {
                let safe = number.as_i64().filter(|number| number.abs() < 1 << 53);
                if let Some(number) = safe {
                    assert_eq!(said, Some(number.to_string().into()));
                }
            }
            Value::Null | Value::Array(_) | Value::Object(_) => assert_eq!(said, None),
        }
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, schema) in properties.into_iter().flatten() {
        if let Some(argument) = argument.get(name) {
            repeats(schema, argument, headers);
        }
    }
}

/// A letter that selects the list, the target's authority (or an empty line), then headers in turn.
fn access(input: &[u8]) {
    let Some((choice, rest)) = input.split_first() else {
        return;
    };
    let target = lines(rest).next().unwrap_or_default();
    let target = std::str::from_utf8(target).ok().filter(|text| !text.is_empty());
    let rest = rest.split_at(rest.iter().position(|b| *b == b'\n').map_or(rest.len(), |at| at + 1));
    let headers = headers(rest.1, &[HOST, ORIGIN, SEC_FETCH_SITE]);
    let mut gate = Access::new();
    if choice & 1 != 0 {
        gate = gate.with_host("mcp.example.com").expect("a host");
        gate = gate.with_host("api.example.com:8443").expect("a host");
        gate = gate.with_origin("https://app.example.com").expect("an origin");
    }
    if choice & 2 != 0 {
        gate = gate.without_loopback();
    }
    if choice & 4 != 0 {
        gate = gate.with_any_host();
    }
    match gate.check(target, &Fields::read(&headers)) {
        Ok(()) => let_in(*choice, target, &headers),
        Err(denied) => assert!(!denied.to_string().is_empty()),
    }
}

/// What must hold for an accepted request, judged by its text alone.
fn let_in(choice: u8, target: Option<&str>, headers: &HeaderMap) {
    let (is_named, is_loopback, is_any) = (choice & 1 != 0, choice & 2 == 0, choice & 4 != 0);
    let only = |name: &HeaderName| {
        let mut values = headers.get_all(name).iter();
        let value = values.next();
        assert!(values.next().is_none(), "{name} twice");
        value.map(|value| value.to_str().expect("ASCII").trim().to_ascii_lowercase())
    };
    let is_local = |name: &str| is_loopback && is_loopback_name(name);
    let host = only(&HOST);
    let seen = target.map(str::to_ascii_lowercase);
    if let (Some(seen), Some(host)) = (&seen, &host) {
        assert_eq!(name_and_port(seen), name_and_port(host));
    }
    let host = seen.or(host).expect("a request without a host");
    let (name, port) = name_and_port(&host);
    let is_listed =
        is_named && (name == "mcp.example.com" || name == "api.example.com" && port == Some(8443));
    assert!(is_listed || is_local(&name) || is_any, "{host}");
    let mut is_trusted = false;
    if let Some(origin) = only(&ORIGIN) {
        let (scheme, page) = origin.split_once("://").expect("an origin has a scheme");
        let (page, page_port) = name_and_port(page);
        let default = match scheme {
            "https" => Some(443),
            "http" => Some(80),
            _ => None,
        };
        is_trusted = is_named
            && scheme == "https"
            && page == "app.example.com"
            && page_port.or(default) == Some(443);
        let is_own = (is_listed || is_local(&name))
            && page == name
            && page_port.or(default) == port.or(default);
        let is_page = default.is_some() && (is_own || is_local(&page));
        assert!(is_trusted || is_page, "{origin} to {host}");
    }
    let mut sites = headers.get_all(SEC_FETCH_SITE).iter();
    let is_foreign = sites.any(|site| site.as_bytes().eq_ignore_ascii_case(b"cross-site"));
    assert!(is_trusted || !is_foreign, "a page on another site");
}

fn is_loopback_name(name: &str) -> bool {
    matches!(name, "localhost" | "127.0.0.1" | "::1")
}

/// Splits lower-case text into a name and a port. Addresses are written in their shortest form.
fn name_and_port(text: &str) -> (String, Option<u16>) {
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, Some(port)),
        _ => (text, None),
    };
    let port = port.map(|port| port.parse().expect("a port is a number"));
    let inner = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    let name = match inner.map(str::parse::<std::net::Ipv6Addr>) {
        Some(address) => address.expect("an address").to_string(),
        None => name.strip_suffix('.').unwrap_or(name).to_owned(),
    };
    let is_name = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' | b'_' | b':');
    assert!(name.bytes().all(is_name), "{text}");
    (name, port)
}

fn media(input: &[u8]) {
    let headers = headers(input, &[ACCEPT, CONTENT_TYPE]);
    let is_json = Media::of(&headers) == Some(Media::Json);
    assert_eq!(check_content_type(&Fields::read(&headers)).is_ok(), is_json);
    let types = headers.get_all(CONTENT_TYPE).iter().map(|value| value.to_str().unwrap_or("\0"));
    let types: Vec<_> = types.map(str::to_ascii_lowercase).collect();
    if Media::of(&headers).is_some() {
        assert_eq!(types.len(), 1);
    }
    if is_json {
        assert!(types[0].trim_start().starts_with("application/json"));
    }
    let fields = Fields::read(&headers);
    let takes_both = check_accept(&Method::POST, &fields).is_ok();
    let takes_stream = check_accept(&Method::GET, &fields).is_ok();
    assert!(takes_stream || !takes_both);
    let mut accepted = headers.get_all(ACCEPT).iter();
    let is_said = |value: &HeaderValue| {
        let text = String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
        ["text/event-stream", "text/*", "*/*"].iter().any(|range| text.contains(range))
    };
    // Unless it mentions them, streams are accepted only if the header is absent.
    if takes_stream && !accepted.any(is_said) {
        let is_blank = |byte: &u8| b" \t,".contains(byte);
        assert!(headers.get_all(ACCEPT).iter().all(|value| value.as_bytes().iter().all(is_blank)));
    }
}

fn session(input: &[u8]) {
    let headers = headers(input, &[MCP_SESSION_ID, MCP_PROTOCOL_VERSION]);
    let fields = Fields::read(&headers);
    let revision = legacy_revision(&fields, None);
    assert!(revision.as_ref().map_or(true, |revision| !revision.is_modern()));
    for negotiated in Revision::ALL.into_iter().filter(|revision| !revision.is_modern()) {
        let spoken = legacy_revision(&fields, Some(negotiated));
        assert_eq!(spoken.is_ok(), revision.is_ok());
        assert!(spoken.map_or(true, |spoken| spoken == negotiated));
    }
    let count = headers.get_all(MCP_SESSION_ID).iter().count();
    assert_eq!(fields.session_id(), SessionId::find(&headers));
    match fields.session_id() {
        Ok(None) => assert_eq!(count, 0),
        Ok(Some(id)) => {
            assert_eq!((count, headers[MCP_SESSION_ID].to_str().ok()), (1, Some(id.as_str())));
            assert!(id.as_str().len() <= MAX_SESSION_ID);
            assert!(id.as_str().bytes().all(|byte| byte.is_ascii_graphic()));
            assert!(format!("{id:?}").chars().count() <= "SessionId(1234…)".chars().count());
            let mut written = HeaderMap::new();
            write_legacy(&mut written, &Method::POST, revision.ok(), Some(&id));
            assert_eq!(SessionId::find(&written).ok().flatten().as_ref(), Some(&id));
            assert_eq!(SessionId::parse(id.as_str()), Some(id));
        }
        Err(_) => assert!(count > 0),
    }
}
