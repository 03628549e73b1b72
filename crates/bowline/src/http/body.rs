//! Bodies of responses: empty, bytes, or a stream of events.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::server::account::{Account, Reservation, Spent, UNCOUNTED};

/// The body of a response.
pub struct Body(Payload);

enum Payload {
    Bytes(Option<Bytes>),
    Stream(Box<dyn Source>, Option<Arc<Account>>),
}

/// Makes bytes count until they have been sent.
///
/// # Errors
/// When there is no memory left for them.
pub(super) fn hold(bytes: Bytes, account: Arc<Account>) -> Result<Bytes, Spent> {
    let reserved = Reservation::of_answer(account, bytes.len())?;
    Ok(Bytes::from_owner(Held { bytes, _reserved: reserved }))
}

struct Held {
    bytes: Bytes,
    _reserved: Reservation,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A source of bytes for a streamed body. Dropped with the connection.
pub(super) trait Source: Send {
    /// Polls for the next bytes; `None` is the end.
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>>;
}

impl Body {
    pub(super) fn empty() -> Self {
        Self(Payload::Bytes(None))
    }

    pub(super) fn bytes(bytes: impl Into<Bytes>) -> Self {
        Self(Payload::Bytes(Some(bytes.into())))
    }

    pub(super) fn stream(source: Box<dyn Source>, account: Option<Arc<Account>>) -> Self {
        Self(Payload::Stream(source, account))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = match &mut self.0 {
            Payload::Bytes(bytes) => Poll::Ready(bytes.take()),
            Payload::Stream(source, None) => source.poll_bytes(cx),
            Payload::Stream(source, Some(account)) => match ready!(source.poll_bytes(cx)) {
                // A client that does not read what it asks for loses the stream.
                Some(bytes) if bytes.len() > UNCOUNTED => {
                    Poll::Ready(hold(bytes, Arc::clone(account)).ok())
                }
                bytes => Poll::Ready(bytes),
            },
        };
        bytes.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Payload::Bytes(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Payload::Bytes(bytes) => {
                let length = bytes.as_ref().map_or(0, Bytes::len);
                SizeHint::with_exact(u64::try_from(length).unwrap_or(u64::MAX))
            }
            Payload::Stream(..) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Payload::Bytes(bytes) => f.debug_tuple("Body").field(bytes).finish(),
            Payload::Stream(..) => f.write_str("Body(stream)"),
        }
    }
}
