//! HTTP+SSE, the transport of 2024-11-05: one event stream comes down, and its first event names
//! the URL to post messages to.

use std::time::Duration;

use bowline::proto::http::Media;
use bowline_web::{Body, Url};
use http::{Method, Response, StatusCode, Uri};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{Direction, Event, Events, Http, HttpRequest, Lost, Tap};

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

/// Why there is no stream.
pub enum NoStream {
    /// No response came.
    Lost(Lost),
    /// The response is not an event stream.
    Response(Box<Response<Body>>),
    /// The stream ended before its first event.
    Ended,
    /// The first event does not name a URL of this server.
    Endpoint(String),
}

impl NoStream {
    /// The status of the response, if one came.
    #[must_use]
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Lost(_) => None,
            Self::Response(response) => Some(response.status()),
            Self::Ended | Self::Endpoint(_) => Some(StatusCode::OK),
        }
    }
}

impl From<NoStream> for Lost {
    fn from(error: NoStream) -> Self {
        match error {
            NoStream::Lost(lost) => lost,
            NoStream::Response(response) if response.status() != StatusCode::OK => {
                Self::Closed(format!("GET returned {}", response.status()))
            }
            NoStream::Response(_) => {
                Self::Closed("the response to GET is not an event stream".to_owned())
            }
            NoStream::Ended => Self::Closed("the stream ended before its first event".to_owned()),
            NoStream::Endpoint(why) => Self::Unreachable(why),
        }
    }
}

impl HttpSse {
    /// Opens the stream and waits for its first event.
    ///
    /// # Errors
    /// When there is no stream, or it does not begin with the URL to post to.
    pub async fn open(http: &Http, patience: Duration) -> Result<Self, NoStream> {
        let (first, mut stream) = Self::begin(http, patience).await?;
        let url = endpoint(&http.url, &first).map_err(NoStream::Endpoint)?;
        let (sender, events) = mpsc::channel(EVENTS);
        // Heard when they are taken: a tap may depend on the task of its owner.
        let tap = std::mem::take(&mut stream.tap);
        let reading = tokio::spawn(read(
            stream,
            sender,
            #[cfg(test)]
            http.clone(),
        ));
        Ok(Self { endpoint: http.at(url), events, tap, reading })
    }

    /// Opens the stream; returns its first event and the rest.
    ///
    /// # Errors
    /// When there is no stream.
    pub async fn begin(http: &Http, patience: Duration) -> Result<(Event, Events), NoStream> {
        let opening = async {
            let request = HttpRequest::without_body(Method::GET, &[]);
            let response = http.send(&request).await.map_err(NoStream::Lost)?;
            let is_stream = Media::of(response.headers()) == Some(Media::EventStream);
            if response.status() != StatusCode::OK || !is_stream {
                return Err(NoStream::Response(Box::new(response)));
            }
            let mut events = Events::new(response.into_body(), http.tap());
            let first = events.next().await.ok_or(NoStream::Ended)?;
            #[cfg(test)]
            let first = changed(http, first);
            Ok((first, events))
        };
        let silent = || Err(NoStream::Lost(Lost::Silent(patience)));
        timeout(patience, opening).await.unwrap_or_else(|_| silent())
    }

    /// The next event with data, or `None` once the stream has ended.
    ///
    /// # Cancel safety
    /// No event is lost.
    pub async fn next(&mut self) -> Option<Event> {
        let event = self.events.recv().await?;
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
pub fn endpoint(url: &Uri, first: &Event) -> Result<Uri, String> {
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
pub fn resolve(url: &Uri, reference: &str) -> Option<Uri> {
    let url = Url::try_from(url.clone()).ok()?;
    let other = url.join(reference).ok().filter(|other| other.is_same_origin(&url))?;
    Some(other.uri().clone())
}

async fn read(mut stream: Events, sender: mpsc::Sender<Event>, #[cfg(test)] http: Http) {
    while let Some(event) = stream.next().await {
        #[cfg(test)]
        let event = changed(&http, event);
        if !event.data.is_empty() && sender.send(event).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
fn changed(http: &Http, mut event: Event) -> Event {
    if let Some(fault) = &http.fault {
        (fault.event)(&mut event);
    }
    event
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
