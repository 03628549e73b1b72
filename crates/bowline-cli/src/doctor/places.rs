//! Other paths where the server may be.

use std::time::Duration;

use bowline::proto::revision::Revision;
use bowline::proto::wire::Message;
use bowline_check::frames::message::request;
use bowline_check::frames::{Http, HttpRequest};
use bowline_web::Url;
use http::Method;
use serde_json::json;
use tokio::time::timeout;

/// Paths that servers commonly use, the most likely first.
const USUAL: [&str; 8] =
    ["/mcp", "/mcp/", "/api/mcp", "/v1/mcp", "/mcp/v1", "/", "/sse", "/message"];

/// How long one path may take.
const LOOK: Duration = Duration::from_secs(3);

/// The first of the usual paths where something speaks MCP.
pub(crate) async fn find(http: &Http, patience: Duration) -> Option<Url> {
    let here = Url::try_from(http.url.clone()).ok()?;
    let search = async {
        for path in USUAL.into_iter().filter(|path| *path != here.path()) {
            let url = here.join(path).ok()?;
            if speaks(&http.at(url.uri().clone())).await {
                return Some(url);
            }
        }
        None
    };
    timeout(patience, search).await.ok().flatten()
}

async fn speaks(http: &Http) -> bool {
    let frame = request(Revision::LATEST, &json!(1), "server/discover", json!({})).to_string();
    let reply = http.exchange(&HttpRequest::post(&frame, &[]), LOOK, |_| true).await;
    // A server that requires a login is the right one.
    let speaks = reply.is_ok_and(|reply| {
        let is_stream = reply.status.is_success() && reply.is_stream();
        reply.status == 401 || is_stream || Message::parse(&reply.body).is_ok()
    });
    speaks || opens_sse(http, LOOK).await
}

/// Whether a GET opens an event stream, as in HTTP+SSE.
pub(crate) async fn opens_sse(http: &Http, patience: Duration) -> bool {
    let request = HttpRequest::without_body(Method::GET, &[]);
    let reply = http.exchange(&request, patience, |_| true).await;
    reply.is_ok_and(|reply| reply.status.is_success() && reply.is_stream())
}
