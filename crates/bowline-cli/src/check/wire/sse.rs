//! HTTP+SSE, the transport of 2024-11-05: one stream of events comes down, its first event names
//! the address that messages are posted to.

use std::time::Duration;

use bowline::proto::http::Media;
use http::{Method, StatusCode, Uri};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::post::{Ask, Post};
use super::stream::FRAMES;
use super::{Changes, Frame, Heard, Lost};
use crate::check::evidence::shorten;
use crate::doctor::{Address, Events};

/// A stream that is read, until this is dropped.
pub(super) struct Sse {
    /// Where messages go.
    pub(super) endpoint: Post,
    reader: JoinHandle<()>,
}

impl Sse {
    pub(super) async fn open(
        post: &Post,
        patience: Duration,
    ) -> Result<(Self, mpsc::Receiver<Frame>), Lost> {
        let (first, events) = begin(post, patience).await.map_err(|error| error.lost)?;
        let place = endpoint(&post.url, &first).map_err(Lost::Unreachable)?;
        let mut endpoint = post.clone();
        endpoint.url = place;
        let (sender, down) = mpsc::channel(FRAMES);
        let reader = tokio::spawn(read(
            events,
            sender,
            #[cfg(test)]
            post.clone(),
        ));
        Ok((Self { endpoint, reader }, down))
    }

    /// Posts a frame; gives the answer unless that says that it was taken, in which case it says
    /// nothing else.
    pub(super) async fn send(
        &self,
        frame: &str,
        changes: Changes<'_>,
        patience: Duration,
    ) -> Result<Option<Heard>, Lost> {
        // What is in the body of an answer is nobody's business.
        let heard = self.endpoint.ask(&Ask::post(frame, changes), patience).await?;
        let is_taken = heard.status.is_some_and(|status| status.is_success());
        Ok((!is_taken).then_some(heard))
    }
}

impl Drop for Sse {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// Why there is no stream.
pub(in crate::check) struct Unopened {
    pub(in crate::check) lost: Lost,
    /// If an answer came.
    status: Option<StatusCode>,
}

/// Opens the stream; gives its first event and what follows.
pub(in crate::check) async fn begin(
    post: &Post,
    patience: Duration,
) -> Result<(Frame, Events), Unopened> {
    let opening = async {
        let sent = post.send(&Ask::verb(Method::GET, &[])).await;
        let (head, body) = sent.map_err(|lost| Unopened { lost, status: None })?.into_parts();
        let closed = |why: String| Unopened { lost: Lost::Closed(why), status: Some(head.status) };
        if head.status != StatusCode::OK {
            return Err(closed(format!("GET was answered with {}", head.status)));
        }
        if Media::of(&head.headers) != Some(Media::EventStream) {
            return Err(closed("the answer to GET is no stream of events".to_owned()));
        }
        let mut events = Events::new(body);
        match events.next().await {
            Some(first) => {
                #[cfg(test)]
                let first = post.changed(first);
                Ok((first, events))
            }
            None => Err(closed("the stream ended before its first event".to_owned())),
        }
    };
    let silent = || Unopened { lost: Lost::Silent(patience), status: None };
    timeout(patience, opening).await.unwrap_or_else(|_| Err(silent()))
}

/// Where the first event says that messages go, or why they cannot.
pub(in crate::check) fn endpoint(url: &Uri, (kind, data): &Frame) -> Result<Uri, String> {
    let text = String::from_utf8_lossy(data);
    if kind.as_deref() != Some("endpoint") {
        let kind = kind.as_deref().unwrap_or("message");
        return Err(format!("the first event is {:?}, not \"endpoint\"", shorten(kind, 80)));
    }
    let here = Address::parse(&url.to_string()).map_err(|wrong| wrong.cause)?;
    let wrong = || format!("the endpoint is no address of this server: {:?}", shorten(&text, 160));
    here.resolve(text.trim()).ok_or_else(wrong)
}

/// Whether a GET opens such a stream; the status if it does not, and one came.
pub(in crate::check) async fn look(
    post: &Post,
    patience: Duration,
) -> Result<(), Option<StatusCode>> {
    match begin(post, patience).await {
        Ok(((Some(kind), _), _)) if kind == "endpoint" => Ok(()),
        Err(Unopened { status, .. }) => Err(status),
        Ok(_) => Err(Some(StatusCode::OK)),
    }
}

async fn read(mut events: Events, sender: mpsc::Sender<Frame>, #[cfg(test)] post: Post) {
    while let Some(event) = events.next().await {
        #[cfg(test)]
        let event = post.changed(event);
        if !event.1.is_empty() && sender.send(event).await.is_err() {
            return;
        }
    }
}
