//! Clients of a service in memory: build requests, and read responses whole or event by event.

use std::future::poll_fn;
use std::pin::pin;
use std::time::Duration;

use bowline::Revision;
use bowline::http::{Body, HttpService};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response};
use http_body::Body as _;
use serde_json::{Value, json};

/// Longer than anything here may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Waits with a timeout.
pub(crate) async fn soon<F: Future>(what: &str, work: F) -> F::Output {
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(output) => output,
        Err(_) => panic!("{what}: nothing came"),
    }
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let look = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    soon(what, look).await;
}

/// Lets this much time pass at once, so that a test need not hurry to be there before it is over.
pub(crate) async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

/// How much of a load to run: a part by default, all with `BOWLINE_FULL=1`.
pub(crate) fn scaled(part: usize, all: usize) -> usize {
    if std::env::var_os("BOWLINE_FULL").is_some() { all } else { part }
}

/// A request to send.
#[derive(Clone)]
pub(crate) struct Ask {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Ask {
    pub(crate) fn new(method: Method, path: &str) -> Self {
        let ask =
            Self { method, path: path.to_owned(), headers: HeaderMap::new(), body: String::new() };
        ask.with("host", "localhost").with("accept", "application/json, text/event-stream")
    }

    pub(crate) fn post(body: impl ToString) -> Self {
        let ask = Self::new(Method::POST, "/mcp").with("content-type", "application/json");
        Self { body: body.to_string(), ..ask }
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(named(name), HeaderValue::from_str(value).unwrap());
        self
    }

    /// Adds a header, even if it is already present.
    pub(crate) fn and(mut self, name: &str, value: &str) -> Self {
        self.headers.append(named(name), HeaderValue::from_str(value).unwrap());
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.remove(named(name));
        self
    }

    pub(crate) fn path(self, path: &str) -> Self {
        Self { path: path.to_owned(), ..self }
    }

    pub(crate) fn into_request(self) -> Request<String> {
        let mut request = Request::new(self.body);
        *request.method_mut() = self.method;
        *request.uri_mut() = self.path.parse().unwrap();
        *request.headers_mut() = self.headers;
        request
    }
}

fn named(name: &str) -> HeaderName {
    HeaderName::from_bytes(name.as_bytes()).unwrap()
}

/// A complete modern request.
pub(crate) fn modern(id: impl Into<Value>, method: &str, params: Value) -> Ask {
    modern_with(id, method, params, json!({}))
}

/// The same from a client with these capabilities.
pub(crate) fn modern_with(
    id: impl Into<Value>,
    method: &str,
    mut params: Value,
    capabilities: Value,
) -> Ask {
    let name = params.get("name").or_else(|| params.get("uri")).and_then(Value::as_str);
    let name = name.map(str::to_owned);
    let meta = params["_meta"].take();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    for (key, value) in meta.as_object().into_iter().flatten() {
        params["_meta"][key] = value.clone();
    }
    let ask = Ask::post(request(id, method, params))
        .with("mcp-protocol-version", "2026-07-28")
        .with("mcp-method", method);
    match name {
        Some(name) => ask.with("mcp-name", &name),
        None => ask,
    }
}

/// A modern call of a tool without arguments.
pub(crate) fn call(id: impl Into<Value>, tool: &str) -> Ask {
    modern(id, "tools/call", json!({ "name": tool }))
}

pub(crate) fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params })
}

pub(crate) fn initialize(revision: &str) -> Value {
    let params = json!({
        "protocolVersion": revision,
        "capabilities": { "elicitation": {}, "sampling": {} },
        "clientInfo": { "name": "test", "version": "1" },
    });
    request(0, "initialize", params)
}

/// A whole answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    /// The error code.
    pub(crate) fn code(&self) -> Option<i64> {
        self.json()["error"]["code"].as_i64()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The text of a tool's result, in JSON or in the last event.
    pub(crate) fn text(&self) -> String {
        let last = events(&self.body).pop().map(|event| event.json());
        text(&last.unwrap_or_else(|| self.json()))
    }
}

/// The first text of a tool's result.
pub(crate) fn text(answer: &Value) -> String {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

/// One event of a stream.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) retry: Option<String>,
    pub(crate) data: String,
    pub(crate) is_comment: bool,
}

impl Event {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or(Value::Null)
    }

    pub(crate) fn method(&self) -> String {
        self.json()["method"].as_str().unwrap_or_default().to_owned()
    }
}

/// Parses all events in a text.
pub(crate) fn events(text: &str) -> Vec<Event> {
    text.split_inclusive("\n\n").filter(|part| part.ends_with("\n\n")).map(event).collect()
}

fn event(text: &str) -> Event {
    let mut event = Event::default();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.trim_start().to_owned();
        match field {
            "" => event.is_comment = true,
            "id" => event.id = Some(value),
            "event" => event.name = Some(value),
            "retry" => event.retry = Some(value),
            "data" => event.data.push_str(&value),
            other => panic!("{other} is not a field"),
        }
    }
    event
}

/// A response that is read as it arrives.
pub(crate) struct Stream {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    body: Body,
    read: String,
}

impl Stream {
    pub(crate) fn new(response: Response<Body>) -> Self {
        let (parts, body) = response.into_parts();
        Self { status: parts.status.as_u16(), headers: parts.headers, body, read: String::new() }
    }

    async fn chunk(&mut self) -> Option<String> {
        let mut body = pin!(&mut self.body);
        let frame = poll_fn(|cx| body.as_mut().poll_frame(cx)).await?;
        let data = frame.unwrap().into_data().unwrap();
        Some(String::from_utf8(data.to_vec()).unwrap())
    }

    /// The next event, comments included; `None` is the end.
    pub(crate) async fn next_any(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = self.read.find("\n\n") {
                let rest = self.read.split_off(end + 2);
                return Some(event(&std::mem::replace(&mut self.read, rest)));
            }
            let chunk = soon("the next event", self.chunk()).await?;
            self.read.push_str(&chunk);
        }
    }

    /// The next event with data.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            match self.next_any().await {
                Some(event) if event.is_comment => {}
                other => return other,
            }
        }
    }

    pub(crate) async fn rest(mut self) -> Answer {
        while let Some(chunk) = soon("the rest", self.chunk()).await {
            self.read.push_str(&chunk);
        }
        Answer { status: self.status, headers: self.headers, body: self.read }
    }
}

/// Sends a request and returns its response unread.
pub(crate) async fn open(service: &HttpService, ask: Ask) -> Stream {
    Stream::new(soon("a response", service.handle(ask.into_request())).await)
}

/// Sends a request and reads its answer.
pub(crate) async fn send(service: &HttpService, ask: Ask) -> Answer {
    open(service, ask).await.rest().await
}

/// A legacy session.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) service: HttpService,
    pub(crate) id: String,
    pub(crate) revision: &'static str,
    /// The user, sent in a header.
    pub(crate) user: Option<String>,
}

impl Session {
    pub(crate) async fn open(service: &HttpService, revision: Revision) -> Self {
        Self::open_as(service, revision, None).await
    }

    pub(crate) async fn open_as(
        service: &HttpService,
        revision: Revision,
        user: Option<&str>,
    ) -> Self {
        let service = service.clone();
        let user = user.map(str::to_owned);
        let new = Self { service, id: String::new(), revision: revision.as_str(), user };
        let answer = send(&new.service, new.sign(Ask::post(initialize(new.revision)))).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(answer.json()["result"]["protocolVersion"], new.revision);
        let session = Self { id: answer.header("mcp-session-id").unwrap().to_owned(), ..new };
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(send(&session.service, session.post(ready)).await.status, 202);
        session
    }

    fn sign(&self, ask: Ask) -> Ask {
        match &self.user {
            Some(user) => ask.with("x-user", user),
            None => ask,
        }
    }

    fn within(&self, ask: Ask) -> Ask {
        let ask = self.sign(ask).with("mcp-session-id", &self.id);
        if self.revision >= "2025-06-18" {
            return ask.with("mcp-protocol-version", self.revision);
        }
        ask
    }

    pub(crate) fn post(&self, message: Value) -> Ask {
        self.within(Ask::post(message))
    }

    pub(crate) fn get(&self) -> Ask {
        self.within(Ask::new(Method::GET, "/mcp"))
    }

    pub(crate) fn delete(&self) -> Ask {
        self.within(Ask::new(Method::DELETE, "/mcp"))
    }

    pub(crate) fn call(&self, id: impl Into<Value>, tool: &str, arguments: Value) -> Ask {
        self.post(request(id, "tools/call", json!({ "name": tool, "arguments": arguments })))
    }
}
