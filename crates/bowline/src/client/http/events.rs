//! Reads a stream of events: dispatches messages, and remembers where to resume after a break.

use std::sync::Arc;
use std::time::Duration;

use bowline_proto::json::Json;
use bowline_proto::sse::Parser;
use bowline_proto::wire::Id;
use bowline_web::Body;

use super::HttpLink;
use crate::client::exchange::ExchangeError;
use crate::client::limits::ClientLimit;
use crate::client::notification::Fault;
use crate::client::shared::{Link, Shared};
use crate::with_causes;

/// A stream of events, across breaks.
pub(super) struct Events {
    shared: Arc<Shared>,
    link: Arc<HttpLink>,
    parser: Parser,
    limit: usize,
    /// How long to wait before reopening the stream, if the server says.
    pub(super) retry: Option<Duration>,
}

/// The longest wait that a server can demand.
const LONGEST_RETRY: Duration = Duration::from_secs(60);

impl Events {
    pub(super) fn new(shared: &Arc<Shared>, link: &Arc<HttpLink>) -> Self {
        let limit = shared.profile.limits.message_length;
        let (shared, link) = (Arc::clone(shared), Arc::clone(link));
        Self { shared, link, parser: Parser::new(limit), limit, retry: None }
    }

    /// Where to resume, if the server numbers its events.
    pub(super) fn last_id(&self) -> Option<String> {
        self.parser.last_event_id().map(str::to_owned)
    }

    /// Reads until `call` is answered, and returns the answer; `None` when the stream ends first.
    /// Silence longer than `silence` counts as the end.
    pub(super) async fn read(
        &mut self,
        mut body: Body,
        call: Option<&Id>,
        silence: Option<Duration>,
    ) -> Result<Option<Result<Json, ExchangeError>>, ExchangeError> {
        self.parser.restart();
        let link = Link::Http(Arc::clone(&self.link));
        loop {
            let chunk = match silence {
                Some(silence) => match tokio::time::timeout(silence, body.chunk()).await {
                    Ok(chunk) => chunk,
                    Err(_) => return Ok(None),
                },
                None => body.chunk().await,
            };
            let chunk = match chunk {
                Some(Ok(chunk)) => chunk,
                Some(Err(error)) => {
                    tracing::debug!(error = %with_causes(&error), "a stream broke off");
                    return Ok(None);
                }
                None => return Ok(None),
            };
            if let Some(answer) = self.take_in(&link, &chunk, call)? {
                return Ok(Some(answer));
            }
        }
    }

    fn take_in(
        &mut self,
        link: &Link,
        chunk: &[u8],
        call: Option<&Id>,
    ) -> Result<Option<Result<Json, ExchangeError>>, ExchangeError> {
        let mut rest = chunk;
        let mut answer = None;
        while let Some(event) = self.parser.next_event(&mut rest) {
            let event = match event {
                Ok(event) => event,
                Err(error) => {
                    self.shared.fault(&Fault::TooLong { limit: error.limit });
                    if call.is_some() {
                        return Err(ExchangeError::TooMuch(ClientLimit::MessageLength, self.limit));
                    }
                    continue;
                }
            };
            if let Some(millis) = event.retry {
                self.retry = Some(Duration::from_millis(millis).min(LONGEST_RETRY));
            }
            let is_message = event.event.is_none_or(|name| name == "message");
            if let Some(data) = event.data.filter(|data| is_message && !data.is_empty()) {
                let this = self.shared.handle_frame(data, link, call);
                answer = answer.or(this);
            }
        }
        Ok(answer)
    }

    /// The first event of HTTP+SSE, which says where messages go. `None` when it is another event.
    pub(super) async fn endpoint(&mut self, body: &mut Body) -> Option<String> {
        let mut leftover = Vec::new();
        while let Some(Ok(chunk)) = body.chunk().await {
            leftover.extend_from_slice(&chunk);
            let mut rest = &leftover[..];
            while let Some(event) = self.parser.next_event(&mut rest) {
                let event = event.ok()?;
                if event.event == Some("endpoint") {
                    return event.data.and_then(|data| String::from_utf8(data.to_vec()).ok());
                }
                if event.data.is_some() {
                    return None;
                }
            }
            leftover.clear();
        }
        None
    }
}
