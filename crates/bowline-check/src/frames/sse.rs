//! HTTP+SSE, the transport of 2024-11-05: one event stream comes down, and its first event names
//! the URL to post messages to.

use std::time::Duration;

use bowline::proto::http::Media;
use bowline::proto::sse::Parser;
use bowline_web::{Body, Url};
use http::{Method, StatusCode, Uri};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::events::parse;
use super::{Direction, Event, Http, HttpRequest, LIMIT, Lost, Tap};

/// Events that may wait to be looked at; beyond that the server has to wait.
const EVENTS: usize = 256;

/// An open stream and where to post. The stream is read until this is dropped.
pub struct HttpSse {
    /// Where messages go.
    pub endpoint: Http,
    events: mpsc::Receiver<Event>,
    tap: Tap,
    reading: JoinHandle<()>,
}

impl HttpSse {
    /// Opens the stream, and takes the URL to post to from its first event.
    ///
    /// # Errors
    /// When there is no stream, or it does not begin with the URL to post to.
    pub async fn open(http: &Http, patience: Duration) -> Result<Self, Lost> {
        let (first, mut stream) = Self::begin(http, patience).await?;
        stream.endpoint.url = endpoint(&http.url, &first).map_err(Lost::Unreachable)?;
        Ok(stream)
    }

    /// Opens the stream; returns its first event, too.
    ///
    /// # Errors
    /// When there is no stream.
    pub(crate) async fn begin(http: &Http, patience: Duration) -> Result<(Event, Self), Lost> {
        let opening = async {
            let response = http.send(&HttpRequest::without_body(Method::GET, &[])).await?;
            if response.status() != StatusCode::OK {
                return Err(Lost::Status(response.status()));
            }
            let closed = |why: &str| Lost::Closed(why.to_owned());
            if Media::of(response.headers()) != Some(Media::EventStream) {
                return Err(closed("the response to GET is not an event stream"));
            }
            let (sender, events) = mpsc::channel(EVENTS);
            let reading = tokio::spawn(read(response.into_body(), sender));
            let mut stream = Self { endpoint: http.clone(), events, tap: http.tap(), reading };
            let first = stream.next().await;
            Ok((first.ok_or_else(|| closed("the stream ended before its first event"))?, stream))
        };
        timeout(patience, opening).await.unwrap_or(Err(Lost::Silent(patience)))
    }

    /// The next event with data, or `None` once the stream has ended.
    ///
    /// # Cancel safety
    /// No event is lost.
    pub async fn next(&mut self) -> Option<Event> {
        let event = self.events.recv().await?;
        // Heard when it is taken: a tap may depend on the task of its owner.
        if event.is_message() {
            self.tap.hear(Direction::Received, &event.data);
        }
        Some(event)
    }
}

impl Drop for HttpSse {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

/// The URL that the first event of a stream at `url` names.
///
/// # Errors
/// When the event is not an `endpoint`, or names another server.
pub(crate) fn endpoint(url: &Uri, first: &Event) -> Result<Uri, String> {
    let name = first.name.as_deref().unwrap_or("message");
    if name != "endpoint" {
        return Err(format!("the first event is {name:?}, not \"endpoint\""));
    }
    let text = String::from_utf8_lossy(&first.data);
    let reference = text.trim();
    resolve(url, reference)
        .ok_or_else(|| format!("the endpoint is not a URL of this server: {reference:?}"))
}

/// Resolves a reference that stays on the same origin.
pub(crate) fn resolve(url: &Uri, reference: &str) -> Option<Uri> {
    let url = Url::try_from(url.clone()).ok()?;
    let other = url.join(reference).ok().filter(|other| other.is_same_origin(&url))?;
    Some(other.uri().clone())
}

async fn read(mut body: Body, sender: mpsc::Sender<Event>) {
    let mut parser = Parser::new(LIMIT);
    while let Some(Ok(chunk)) = body.chunk().await {
        for event in parse(&mut parser, &chunk) {
            if !event.data.is_empty() && sender.send(event).await.is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_stay_on_the_same_server() {
        let here: Uri = "https://a:8/x?y=1".parse().unwrap();
        for (reference, found) in [
            ("/m?s=1", Some("https://a:8/m?s=1")),
            ("m?s=1", Some("https://a:8/m?s=1")),
            ("?s=1", Some("https://a:8/x?s=1")),
            ("https://a:8/m", Some("https://a:8/m")),
            ("https://a/m", None),
            ("http://a:8/m", None),
            ("//b/m", None),
        ] {
            let resolved = resolve(&here, reference).map(|uri| uri.to_string());
            assert_eq!(resolved.as_deref(), found, "{reference}");
        }
    }
}
