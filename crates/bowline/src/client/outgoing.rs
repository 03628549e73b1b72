//! A call as text, ready to be sent as often as it takes.
//!
//! The parameters are encoded once, without `_meta`. What differs from one sending to the next is
//! written around them: the id, the answers to a server's questions, the progress token.

use std::borrow::Cow;

use bowline_proto::error::ErrorObject;
use bowline_proto::json::Json;
use bowline_proto::members::{Members, RawMembers};
use bowline_proto::method::Method;
use bowline_proto::model::{
    ClientCapabilities, Implementation, LoggingLevel, RequestParams, meta_key,
};
use bowline_proto::raw::Raw;
use bowline_proto::revision::{Adapt, Revision};
use bowline_proto::wire::{
    Id, encode_error, encode_notification, encode_request, encode_request_with, encode_response,
};
use serde::Serialize;

use super::error::CallError;
use super::trace::TraceContext;

/// One call.
#[derive(Debug, Clone)]
pub(super) struct Outgoing<'a> {
    pub(super) method: Cow<'static, str>,
    /// `params` without `_meta`: an object.
    params: Cow<'a, str>,
    /// The members of `_meta` that the caller set.
    meta: Vec<(String, String)>,
    /// What headers repeat.
    #[cfg_attr(not(feature = "client-http"), expect(dead_code, reason = "for HTTP only"))]
    pub(super) repeated: Repeated<'a>,
}

/// The parts of the parameters that the headers of a modern HTTP request repeat.
#[derive(Debug, Clone, Default)]
#[cfg_attr(not(feature = "client-http"), expect(dead_code, reason = "for HTTP only"))]
pub(super) struct Repeated<'a> {
    /// The name of a tool, prompt or task, or the URI of a resource.
    pub(super) name: Option<Cow<'a, str>>,
    /// The arguments of a tool, as text.
    pub(super) arguments: Option<&'a str>,
}

/// What one sending adds to a call.
#[derive(Debug, Default)]
pub(super) struct Round {
    pub(super) answers: Option<Members<Json>>,
    pub(super) state: Option<String>,
}

/// What every request on a connection carries besides its parameters.
#[derive(Debug, Clone)]
pub(super) struct Claim {
    revision: Revision,
    /// Members of `_meta`, in the modern era.
    fixed: Vec<(&'static str, String)>,
    /// The same as text, with commas between them.
    text: String,
}

/// What one request carries besides its parameters.
pub(super) struct Beside<'a> {
    pub(super) claim: &'a Claim,
    pub(super) log_level: Option<LoggingLevel>,
    pub(super) wants_progress: bool,
    pub(super) trace: Option<&'a TraceContext>,
}

impl Claim {
    /// What requests of this revision say about their sender.
    pub(super) fn new(
        revision: Revision,
        info: &Implementation,
        capabilities: &ClientCapabilities,
    ) -> Self {
        if !revision.is_modern() {
            return Self { revision, fixed: Vec::new(), text: String::new() };
        }
        let (mut info, mut capabilities) = (info.clone(), capabilities.clone());
        // Neither can fail: what a revision lacks is dropped.
        let _ = info.adapt(revision);
        let _ = capabilities.adapt(revision);
        let fixed = vec![
            (meta_key::PROTOCOL_VERSION, text(&revision)),
            (meta_key::CLIENT_INFO, text(&info)),
            (meta_key::CLIENT_CAPABILITIES, text(&capabilities)),
        ];
        let members = fixed.iter().map(|(key, value)| format!("{}:{value}", text(key)));
        let text = members.collect::<Vec<_>>().join(",");
        Self { revision, fixed, text }
    }

    /// The revision that requests are encoded for.
    #[cfg(feature = "client-http")]
    pub(super) fn revision(&self) -> Revision {
        self.revision
    }

    /// Whether requests name their sender.
    pub(super) fn is_modern(&self) -> bool {
        self.revision.is_modern()
    }
}

impl<'a> Outgoing<'a> {
    /// A call whose types are known.
    pub(super) fn typed<M: Method>(
        mut params: M::Params<'a>,
        revision: Revision,
    ) -> Result<Self, CallError>
    where
        M::Params<'a>: RequestParams<'a>,
    {
        params.adapt(revision)?;
        let own = std::mem::take(params.meta_mut());
        let unsendable = |error: serde_json::Error| CallError::unsendable(M::NAME, error);
        let text = serde_json::to_string(&params).map_err(unsendable)?;
        let meta = if own.is_empty() {
            Vec::new()
        } else {
            split_meta(&serde_json::to_string(&own).map_err(unsendable)?)
                .map_err(|problem| CallError::unsendable(M::NAME, problem))?
        };
        let arguments = params.arguments().map(Raw::get);
        let repeated = Repeated { name: params.into_name(), arguments };
        Ok(Self { method: Cow::Borrowed(M::NAME), params: Cow::Owned(text), meta, repeated })
    }

    /// A call whose parameters have been written: an object without `_meta` that has the same form
    /// in every revision.
    pub(super) fn written(method: &'static str, params: &'a str, repeated: Repeated<'a>) -> Self {
        let (method, params) = (Cow::Borrowed(method), Cow::Borrowed(params));
        Self { method, params, meta: Vec::new(), repeated }
    }

    /// A call of any method, with parameters that only its caller understands.
    pub(super) fn json(method: &str, params: &'a Json) -> Result<Self, CallError> {
        let unsendable = |problem: String| CallError::unsendable(method, problem);
        let all: RawMembers<'a> = params
            .parse()
            .map_err(|error| unsendable(format!("params must be an object: {error}")))?;
        let mut object = String::from("{");
        let mut meta = Vec::new();
        let mut repeated = Repeated::default();
        for (key, value) in all.iter() {
            if key == "_meta" {
                meta = split_meta(value.get()).map_err(unsendable)?;
                continue;
            }
            repeated.note(method, key, value.get());
            let comma = if object.len() == 1 { "" } else { "," };
            object.push_str(&format!("{comma}{}:{}", text(key), value.get()));
        }
        object.push('}');
        let method = Cow::Owned(method.to_owned());
        Ok(Self { method, params: Cow::Owned(object), meta, repeated })
    }

    /// The members of the parameters without `_meta`, separated by commas: the key of the call in
    /// the cache.
    pub(super) fn members(&self) -> &str {
        // An object that `serde_json` wrote, or `raw` did, without blanks around it.
        &self.params[1..self.params.len() - 1]
    }

    /// Appends the request, without a line break in or after it.
    pub(super) fn encode(&self, out: &mut Vec<u8>, id: &Id, round: &Round, beside: &Beside<'_>) {
        let has_meta = !self.meta.is_empty() || beside.is_something();
        if self.members().is_empty()
            && !has_meta
            && round.answers.is_none()
            && round.state.is_none()
        {
            encode_request::<()>(out, id, &self.method, None).expect("a name has a JSON form");
            return;
        }
        encode_request_with(out, id, &self.method, |out| {
            let mut params = Object::open(out);
            params.members(self.members());
            if let Some(answers) = &round.answers {
                params.member("inputResponses", answers);
            }
            if let Some(state) = &round.state {
                params.member("requestState", state);
            }
            if has_meta {
                self.write_meta(params.key("_meta"), id, beside);
            }
            params.close();
        });
    }

    fn write_meta(&self, out: &mut Vec<u8>, id: &Id, beside: &Beside<'_>) {
        let is_ours = |key: &str| !self.meta.iter().any(|(own, _)| own == key);
        let mut meta = Object::open(out);
        for (key, value) in &self.meta {
            meta.key(key).extend_from_slice(value.as_bytes());
        }
        if self.meta.is_empty() {
            meta.members(&beside.claim.text);
        } else {
            let fixed = beside.claim.fixed.iter().filter(|(key, _)| is_ours(key));
            fixed.for_each(|(key, value)| meta.key(key).extend_from_slice(value.as_bytes()));
        }
        if let Some(level) = beside.log_level.filter(|_| is_ours(meta_key::LOG_LEVEL)) {
            meta.member(meta_key::LOG_LEVEL, &level);
        }
        if beside.wants_progress && is_ours(meta_key::PROGRESS_TOKEN) {
            meta.member(meta_key::PROGRESS_TOKEN, id);
        }
        if let Some(trace) = beside.trace.filter(|_| is_ours(meta_key::TRACEPARENT)) {
            meta.member(meta_key::TRACEPARENT, &trace.traceparent);
            if let Some(state) = &trace.tracestate {
                meta.member(meta_key::TRACESTATE, state);
            }
            if let Some(baggage) = &trace.baggage {
                meta.member(meta_key::BAGGAGE, baggage);
            }
        }
        meta.close();
    }
}

impl<'a> Repeated<'a> {
    /// Notes a parameter, if headers repeat it.
    #[cfg(feature = "client-http")]
    fn note(&mut self, method: &str, key: &str, value: &'a str) {
        let source = bowline_proto::http::name_source(method);
        if source.is_some_and(|source| source.member == key) {
            self.name = serde_json::from_str::<String>(value).ok().map(Cow::Owned);
        }
        if key == "arguments" {
            self.arguments = Some(value);
        }
    }

    #[cfg(not(feature = "client-http"))]
    fn note(&mut self, _: &str, _: &str, _: &'a str) {}
}

impl Beside<'_> {
    fn is_something(&self) -> bool {
        self.claim.is_modern()
            || self.log_level.is_some()
            || self.wants_progress
            || self.trace.is_some()
    }
}

/// A JSON object being written.
struct Object<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> Object<'a> {
    fn open(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        let start = out.len();
        Self { out, start }
    }

    fn comma(&mut self) {
        if self.out.len() > self.start {
            self.out.push(b',');
        }
    }

    /// Appends members that are text already.
    fn members(&mut self, members: &str) {
        self.out.extend_from_slice(members.as_bytes());
    }

    /// Appends a key; its value must follow.
    fn key(&mut self, key: &str) -> &mut Vec<u8> {
        self.comma();
        write(self.out, key);
        self.out.push(b':');
        self.out
    }

    fn member<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) {
        write(self.key(key), value);
    }

    fn close(self) {
        self.out.push(b'}');
    }
}

fn write<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(out, value).expect("names, numbers and JSON text have a JSON form");
}

fn text<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).expect("names, numbers and declarations have a JSON form")
}

fn split_meta(object: &str) -> Result<Vec<(String, String)>, String> {
    let members: RawMembers<'_> = serde_json::from_str(object)
        .map_err(|error| format!("params._meta must be an object: {error}"))?;
    Ok(members.iter().map(|(key, value)| (key.to_owned(), value.get().to_owned())).collect())
}

/// Writes the notification that cancels a request.
pub(super) fn cancelled(out: &mut Vec<u8>, id: &Id, reason: &str) {
    let params = serde_json::json!({ "requestId": id, "reason": reason });
    encode_notification(out, "notifications/cancelled", Some(&params))
        .expect("a tree of JSON values has a JSON form");
}

/// Writes the answer to a request of the server.
pub(super) fn answered(out: &mut Vec<u8>, id: &Id, answer: &Result<Json, ErrorObject>) {
    match answer {
        Ok(result) => {
            encode_response(out, id, result).expect("text that is JSON already has a JSON form");
        }
        Err(error) => encode_error(out, id, error),
    }
}

#[cfg(test)]
mod tests {
    use bowline_proto::method::{CallTool, ListTools};
    use bowline_proto::model::{CallToolParams, PaginatedParams};
    use serde_json::{Value, json};

    use super::*;

    fn sent(outgoing: &Outgoing<'_>, revision: Revision, round: &Round, progress: bool) -> Value {
        let claim = Claim::new(revision, &Implementation::new("me", "1"), &Default::default());
        let beside =
            Beside { claim: &claim, log_level: None, wants_progress: progress, trace: None };
        let mut out = Vec::new();
        outgoing.encode(&mut out, &Id::from(7_i64), round, &beside);
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn legacy_requests_carry_no_meta() {
        let list =
            Outgoing::typed::<ListTools>(PaginatedParams::default(), Revision::LATEST_LEGACY);
        let sent = sent(&list.unwrap(), Revision::LATEST_LEGACY, &Round::default(), false);
        assert_eq!(sent, json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/list" }));
    }

    #[test]
    fn modern_requests_name_their_sender() {
        let list = Outgoing::typed::<ListTools>(PaginatedParams::default(), Revision::LATEST);
        let sent = sent(&list.unwrap(), Revision::LATEST, &Round::default(), true);
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "me", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
            "progressToken": 7
        });
        assert_eq!(sent["params"], json!({ "_meta": meta }));
    }

    #[cfg(feature = "client-http")]
    #[test]
    fn what_headers_repeat_is_noted() {
        let arguments = json!({ "name": 1 });
        let params = Json::from(json!({ "name": "a\"b", "arguments": arguments, "uri": "u:x" }));
        for (method, name) in
            [("tools/call", Some("a\"b")), ("resources/read", Some("u:x")), ("x/y", None)]
        {
            let call = Outgoing::json(method, &params).unwrap();
            assert_eq!(call.repeated.name.as_deref(), name, "{method}");
            assert_eq!(call.repeated.arguments, Some(r#"{"name":1}"#));
        }
        let arguments = Some(Raw::parse(r#"{"x":1}"#).unwrap());
        let params = CallToolParams { name: "t".into(), arguments, ..CallToolParams::default() };
        let call = Outgoing::typed::<CallTool>(params, Revision::LATEST).unwrap();
        assert_eq!(call.repeated.name.as_deref(), Some("t"));
        assert_eq!(call.repeated.arguments, Some(r#"{"x":1}"#));
    }

    #[test]
    fn a_round_adds_answers_and_state_to_the_letter() {
        let params = CallToolParams { name: "a\"b".into(), ..CallToolParams::default() };
        let call = Outgoing::typed::<CallTool>(params, Revision::LATEST_LEGACY).unwrap();
        let answers: Members<Json> = [("k", Json::from(json!({ "x": 1 })))].into_iter().collect();
        let round = Round { answers: Some(answers), state: Some("s\n".to_owned()) };
        let sent = sent(&call, Revision::LATEST_LEGACY, &round, false);
        let params =
            json!({ "name": "a\"b", "inputResponses": { "k": { "x": 1 } }, "requestState": "s\n" });
        assert_eq!(sent["params"], params);
    }

    #[test]
    fn meta_of_the_caller_wins() {
        let params = json!({ "x": 1, "_meta": { "progressToken": "mine", "y": 2 } }).into();
        let call = Outgoing::json("x/y", &params).unwrap();
        let sent = sent(&call, Revision::LATEST_LEGACY, &Round::default(), true);
        assert_eq!(sent["params"], json!({ "x": 1, "_meta": { "progressToken": "mine", "y": 2 } }));
        let error = Outgoing::json("x/y", &json!([1]).into()).unwrap_err();
        assert!(error.to_string().starts_with("x/y: params must be an object"), "{error}");
    }
}
