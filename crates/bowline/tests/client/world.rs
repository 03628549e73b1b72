//! A server with one of everything, and clients to it over every transport in every revision.

use std::time::Duration;

use bowline::client::{Client, ClientBuilder, FormAnswer, Preference, Verdicts};
use bowline::model::{CreateMessageResult, ElicitFormParams, LoggingLevel};
use bowline::{
    Context, Elicited, ErrorObject, HandlerError, Prompt, Resource, Revision, Server, Structured,
    Tool, tool,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Deserialize, Serialize, schemars::JsonSchema)]
pub(crate) struct Total {
    pub(crate) total: i64,
}

#[derive(Deserialize, Serialize, schemars::JsonSchema)]
struct Who {
    name: String,
}

#[tool]
async fn sum(a: i64, b: i64) -> Structured<Total> {
    Structured(Total { total: a + b })
}

#[tool]
async fn count(context: Context) -> &'static str {
    for step in 1..=3 {
        context.progress(f64::from(step), 3.0, "counting");
        tokio::task::yield_now().await;
    }
    "counted"
}

#[tool]
async fn ask(context: Context) -> Result<String, HandlerError> {
    match context.elicit::<Who>("Who are you?").await? {
        Elicited::Accepted(who) => Ok(format!("hello, {}", who.name)),
        _ => Ok("somebody who does not say".to_owned()),
    }
}

#[tool]
async fn roots(context: Context) -> Result<String, HandlerError> {
    Ok(context.roots().await?.into_iter().map(|root| root.uri).collect())
}

#[tool]
async fn sleep() -> &'static str {
    tokio::time::sleep(Duration::from_secs(600)).await;
    "awake"
}

#[tool]
async fn log(context: Context) -> &'static str {
    context.log(LoggingLevel::Warning, "careful").await;
    "logged"
}

#[tool]
async fn grow(context: Context) -> Result<&'static str, String> {
    let tool = Tool::new("grown", || async { "I am new" });
    context.registry().add(tool).map_err(|error| error.to_string())?;
    Ok("done")
}

#[tool]
async fn touch(context: Context) -> &'static str {
    context.registry().resource_updated("test://static");
    "touched"
}

#[tool]
async fn trace(context: Context) -> String {
    context.traceparent().unwrap_or("none").to_owned()
}

/// A server with one of everything.
pub(crate) fn server() -> Server {
    Server::new("everything", "1.0.0")
        .with(sum)
        .with(count)
        .with(ask)
        .with(roots)
        .with(sleep)
        .with(log)
        .with(grow)
        .with(touch)
        .with(trace)
        .with(Resource::text("test://static", "static", "some text"))
        .with(Prompt::new("hello", || async { "Say hello" }))
}

/// How a client reaches its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Via {
    Memory,
    Http,
    /// HTTP+SSE, which only the oldest revision has.
    Sse,
}

pub(crate) async fn named(form: ElicitFormParams) -> Result<FormAnswer, ErrorObject> {
    assert_eq!(form.message, "Who are you?");
    Ok(FormAnswer::accept(&json!({ "name": "Ada" })))
}

pub(crate) fn builder(revision: Revision) -> ClientBuilder {
    Client::builder("test", "1.0.0")
        .preference(Preference::Pin(revision))
        .verdicts(Verdicts::new())
        .on_form(named)
        .on_sampling(|_| async { Err::<CreateMessageResult, _>(ErrorObject::internal("no model")) })
        .roots(["file:///a"])
}

/// Serves over HTTP until the test ends; gives the URL.
pub(crate) async fn serve(http: bowline::http::Http) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(http.serve_on(listener));
    format!("http://{address}/mcp")
}

pub(crate) async fn connect(via: Via, builder: ClientBuilder) -> Client {
    let connected = match via {
        Via::Memory => builder.connect(server()).await,
        Via::Http => builder.connect(serve(server().http()).await).await,
        Via::Sse => {
            let url = serve(server().http()).await;
            builder.connect(url.replace("/mcp", "/sse")).await
        }
    };
    connected.unwrap()
}

/// Every way to reach a server, in every revision that has it.
pub(crate) fn ways() -> Vec<(Via, Revision)> {
    let mut ways = vec![(Via::Sse, Revision::V2024_11_05)];
    for revision in Revision::ALL {
        ways.push((Via::Memory, revision));
        ways.push((Via::Http, revision));
    }
    ways
}

/// Runs a test over every transport in every revision.
pub(crate) async fn everywhere<F: Future<Output = ()>>(test: impl Fn(Revision, Client) -> F) {
    for (via, revision) in ways() {
        let client = connect(via, builder(revision)).await;
        let done = tokio::time::timeout(super::fixture::GUARD, test(revision, client)).await;
        assert!(done.is_ok(), "{via:?} in {revision} hangs");
    }
}
