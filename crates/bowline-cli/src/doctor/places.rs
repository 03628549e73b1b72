//! Other paths where the server may be.

use std::time::Duration;

use bowline::proto::revision::Revision;
use bowline::proto::wire::Message;
use bowline_check::frames::{Http, HttpRequest};
use bowline_web::Url;
use http::Method;
use serde_json::json;
use tokio::time::timeout;

use super::conversation::{HttpTalk, frame, is_event_stream, read_start};

/// Paths that servers commonly use, the most likely first.
const USUAL: [&str; 8] =
    ["/mcp", "/mcp/", "/api/mcp", "/v1/mcp", "/mcp/v1", "/", "/sse", "/message"];

/// How long one path may take.
const LOOK: Duration = Duration::from_secs(3);

/// The first of the usual paths where something speaks MCP.
pub(crate) async fn find(talk: &HttpTalk, patience: Duration) -> Option<Url> {
    let here = talk.url.path();
    let search = async {
        for path in USUAL.into_iter().filter(|path| *path != here) {
            let url = talk.url.join(path).ok()?;
            if timeout(LOOK, speaks(&talk.http.at(url.uri().clone()))).await.unwrap_or(false) {
                return Some(url);
            }
        }
        None
    };
    timeout(patience, search).await.ok().flatten()
}

async fn speaks(http: &Http) -> bool {
    let frame = frame(1, "server/discover", json!({}), Revision::LATEST);
    let Ok(response) = http.send(&HttpRequest::post(&frame, &[])).await else { return false };
    // A server that requires a login is the right one.
    if response.status().as_u16() == 401 || is_event_stream(&response) {
        return true;
    }
    let body = read_start(response.into_body()).await;
    Message::parse(&body).is_ok() || opens_sse(http).await
}

/// Whether a GET opens an event stream, as in HTTP+SSE.
pub(crate) async fn opens_sse(http: &Http) -> bool {
    let response = http.send(&HttpRequest::without_body(Method::GET, &[])).await;
    response.is_ok_and(|response| is_event_stream(&response))
}
