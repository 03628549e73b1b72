//! Where the server may be, when it is not where the URL says.

use std::time::Duration;

use bowline::proto::http::Media;
use bowline::proto::revision::Revision;
use bowline::proto::wire::Message;
use http::{Method, Uri};
use serde_json::json;
use tokio::time::timeout;

use super::http::{Talk, read_start};
use super::report::Diagnosis;
use super::wire::encode;

/// Paths that servers like, the most telling first.
const USUAL: [&str; 8] =
    ["/mcp", "/mcp/", "/api/mcp", "/v1/mcp", "/mcp/v1", "/", "/sse", "/message"];

/// How long one path may take.
const LOOK: Duration = Duration::from_secs(3);

/// Where something speaks MCP, of the usual paths.
pub(crate) async fn find(talk: &Talk, patience: Duration) -> Option<Uri> {
    let here = talk.address.uri.path();
    let search = async {
        for path in USUAL {
            let Some(uri) = talk.address.at(path).filter(|_| path != here) else { continue };
            if timeout(LOOK, speaks(talk, &uri)).await.unwrap_or(false) {
                return Some(uri);
            }
        }
        None
    };
    timeout(patience, search).await.ok().flatten()
}

/// Whether an address answers as MCP servers do.
async fn speaks(talk: &Talk, uri: &Uri) -> bool {
    let frame = encode(1, "server/discover", json!({}), Revision::LATEST);
    let headers = talk.headers_for("server/discover", Revision::LATEST);
    let Ok(response) = talk.send(Method::POST, uri.clone(), headers, frame).await else {
        return false;
    };
    // Who must log in first has found the door.
    if response.status().as_u16() == 401 {
        return true;
    }
    let is_stream = Media::of(response.headers()) == Some(Media::EventStream);
    if response.status().is_success() && is_stream {
        return true;
    }
    let body = read_start(response.into_body()).await;
    Message::parse(&body).is_ok() || opens_sse(talk, uri).await
}

/// Whether a GET opens a stream of events, as HTTP+SSE has it.
pub(crate) async fn opens_sse(talk: &Talk, uri: &Uri) -> bool {
    let mut headers = talk.base_headers().clone();
    bowline::proto::http::write_legacy(&mut headers, &Method::GET, None, None);
    match talk.send(Method::GET, uri.clone(), headers, Vec::new()).await {
        Ok(response) => {
            response.status().is_success()
                && Media::of(response.headers()) == Some(Media::EventStream)
        }
        Err(_) => false,
    }
}

/// What to say when it was found elsewhere.
pub(crate) fn elsewhere(talk: &Talk, status: u16, uri: &Uri) -> Diagnosis {
    Diagnosis::refused(
        format!(
            "nothing speaks MCP at {} (HTTP {status}); something does at {}",
            talk.address.uri.path(),
            uri.path()
        ),
        format!("Use {uri}"),
    )
}
