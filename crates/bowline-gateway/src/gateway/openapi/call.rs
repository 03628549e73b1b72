//! One call of an operation: the request, its redirects, its answer.

use std::sync::Arc;
use std::time::Duration;

use bowline::model::CallToolResult;
use bowline::with_causes;
use bowline_web::{Authorize, Body, Next, Url, Web, WebError};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use serde_json::{Map, Value};

use super::answer::{Position, answer};
use super::operation::{Arguments, NEXT, Operation};
use super::parameter::Place;

/// How often one request is sent: redirects, and a token that is renewed.
const TRIES: usize = 5;

/// Calls operations of one API.
pub(super) struct Caller {
    pub(super) base: Url,
    pub(super) headers: HeaderMap,
    pub(super) authorize: Option<Arc<dyn Authorize>>,
    pub(super) web: Web,
    pub(super) timeout: Duration,
    pub(super) output: usize,
}

/// A request that may be sent again.
struct Outgoing {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Bytes,
}

impl Caller {
    /// Calls an operation. What goes wrong is a failed result, which the model reads.
    pub(super) async fn call(
        &self,
        operation: &Operation,
        arguments: &Value,
        traceparent: Option<&str>,
    ) -> CallToolResult {
        let none = Map::new();
        let arguments = arguments.as_object().unwrap_or(&none);
        let called = async {
            let from = arguments.get(NEXT).and_then(Value::as_str).filter(|_| operation.has_next);
            let from = from.map(Position::parse).transpose()?;
            let mut outgoing = self.outgoing(operation, arguments)?;
            if let Some(value) = traceparent.and_then(|it| HeaderValue::from_str(it).ok()) {
                outgoing.headers.insert(HeaderName::from_static("traceparent"), value);
            }
            let response = self.send(outgoing).await?;
            let answered = answer(response, operation, from, self.output).await;
            answered.map_err(|error| broken(&error))
        };
        match tokio::time::timeout(self.timeout, called).await {
            Ok(Ok(result)) => result,
            Ok(Err(why)) => CallToolResult::failure(why),
            Err(_) => {
                let mut why = format!("the API did not answer within {:?}", self.timeout);
                if !operation.method.is_safe() {
                    why += "; the request may have been carried out";
                }
                CallToolResult::failure(why)
            }
        }
    }

    fn outgoing(
        &self,
        operation: &Operation,
        arguments: &Map<String, Value>,
    ) -> Result<Outgoing, String> {
        let mut headers = HeaderMap::new();
        let mut query: Vec<String> = self.base.query().map(str::to_owned).into_iter().collect();
        for parameter in &operation.parameters {
            let value = arguments.get(&parameter.argument).filter(|it| !it.is_null());
            let Some(value) = value else { continue };
            match parameter.place {
                Place::Path => {}
                Place::Query => query.push(parameter.spelled(value)?),
                Place::Header => {
                    let name = HeaderName::try_from(&parameter.name);
                    let name = name.map_err(|_| format!("{}: invalid", parameter.argument))?;
                    headers.insert(name, parameter.header(value)?);
                }
            }
        }
        query.retain(|it| !it.is_empty());
        let mut text = self.base.root().to_owned() + self.base.path().trim_end_matches('/');
        text += &path(operation, arguments)?;
        if !query.is_empty() {
            text = format!("{text}?{}", query.join("&"));
        }
        let url = Url::parse(&text).ok().filter(|it| it.is_same_origin(&self.base));
        let url = url.ok_or("the arguments do not make a URL; help: shorter ones may")?;
        let accept = HeaderValue::from_static("application/json, */*;q=0.5");
        headers.insert(ACCEPT, accept);
        let agent = concat!("bowline-gateway/", env!("CARGO_PKG_VERSION"));
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        let body = body(operation, arguments);
        if let (Some(described), false) = (&operation.body, body.is_empty()) {
            headers.insert(CONTENT_TYPE, described.media.clone());
        }
        // What is configured wins.
        for (name, value) in &self.headers {
            headers.insert(name, value.clone());
        }
        Ok(Outgoing { method: operation.method.clone(), url, headers, body })
    }

    /// Sends a request, and again where the same origin redirects it or a token was renewed.
    async fn send(&self, mut outgoing: Outgoing) -> Result<Response<Body>, String> {
        for _ in 0..TRIES {
            let (response, again) = self.send_once(&outgoing).await?;
            if again {
                continue;
            }
            match outgoing.redirected(&response) {
                Some(url) => outgoing.url = url,
                None => return Ok(response),
            }
        }
        Err(format!("the API redirects more than {TRIES} times"))
    }

    async fn send_once(&self, outgoing: &Outgoing) -> Result<(Response<Body>, bool), String> {
        let mut request = Request::new(outgoing.body.clone());
        request.method_mut().clone_from(&outgoing.method);
        request.uri_mut().clone_from(outgoing.url.uri());
        request.headers_mut().clone_from(&outgoing.headers);
        let Some(authorize) = &self.authorize else {
            let sent = self.web.send(request).await;
            return Ok((sent.map_err(|error| self.explained(&error))?, false));
        };
        let refused = |error: bowline_web::AuthorizeError| {
            format!("the gateway gets no token for the API: {}", with_causes(&*error))
        };
        let (mut parts, body) = request.into_parts();
        parts.headers.extend(authorize.headers(&parts).await.map_err(refused)?);
        let sent = parts.clone();
        let response = self.web.send(Request::from_parts(parts, body)).await;
        let response = response.map_err(|error| self.explained(&error))?;
        let next = authorize.handle_answer(&sent, response.status(), response.headers()).await;
        Ok((response, next.map_err(refused)? == Next::SendAgain))
    }

    fn explained(&self, error: &WebError) -> String {
        match error {
            WebError::Forbidden { .. } => {
                let help = "help: if this is right, the gateway's configuration can say so";
                format!("{error}; {help}, with base = \"{}\"", self.base)
            }
            error => broken(error),
        }
    }
}

fn broken(error: &WebError) -> String {
    format!("the API cannot be used: {}", with_causes(error))
}

/// The path of a request.
fn path(operation: &Operation, arguments: &Map<String, Value>) -> Result<String, String> {
    let mut out = String::new();
    for (at, part) in operation.path.iter().enumerate() {
        if at % 2 == 0 {
            out += part;
            continue;
        }
        let mut all = operation.parameters.iter();
        let parameter = all.find(|it| it.place == Place::Path && it.name == *part);
        let parameter = parameter.ok_or("a part of the path has no parameter")?;
        let value = arguments.get(&parameter.argument).filter(|it| !it.is_null());
        let value = value.ok_or_else(|| format!("{} is missing", parameter.argument))?;
        out += &parameter.spelled(value)?;
    }
    // Several values can be one segment.
    if out.split('/').any(|it| matches!(it, "." | "..")) {
        return Err("the arguments make a path with . or .. in it".to_owned());
    }
    Ok(out)
}

/// The body of a request; empty if it has none.
fn body(operation: &Operation, arguments: &Map<String, Value>) -> Bytes {
    let Some(body) = &operation.body else { return Bytes::new() };
    let value = match &body.arguments {
        Arguments::Whole(name) => arguments.get(name).map(Value::to_string),
        Arguments::Members(names) => {
            let given =
                names.iter().filter_map(|it| Some((it.clone(), arguments.get(it)?.clone())));
            let given: Map<_, _> = given.collect();
            let is_sent = body.is_required || !given.is_empty();
            is_sent.then(|| Value::Object(given).to_string())
        }
    };
    value.unwrap_or_default().into()
}

impl Outgoing {
    /// Where the same origin redirects a request to that may be sent again as it is.
    fn redirected(&self, response: &Response<Body>) -> Option<Url> {
        let is_read = matches!(self.method, Method::GET | Method::HEAD);
        let keeps = match response.status() {
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => true,
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND | StatusCode::SEE_OTHER => is_read,
            _ => false,
        };
        let location = response.headers().get(LOCATION).filter(|_| keeps)?.to_str().ok()?;
        self.url.join(location).ok().filter(|url| url.is_same_origin(&self.url))
    }
}
