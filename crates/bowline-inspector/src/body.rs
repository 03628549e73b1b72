//! Bodies: a whole one, or the feed as it grows.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;

use crate::feed::Feed;

/// The body of a response.
pub(crate) enum Body {
    Whole(Option<Bytes>),
    Feed { feed: Feed, next: NextEvents },
}

/// The events that a page waits for.
type NextEvents = Pin<Box<dyn Future<Output = (String, u64)> + Send>>;

/// How many bytes of the feed go out at a time.
const PIECE: usize = 256 << 10;

impl Body {
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::Whole(Some(bytes.into()))
    }

    /// Everything after an event, without an end.
    pub(crate) fn feed(feed: &Feed, after: u64) -> Self {
        Self::Feed { next: wait(feed, after), feed: feed.clone() }
    }
}

fn wait(feed: &Feed, after: u64) -> NextEvents {
    let feed = feed.clone();
    Box::pin(async move { feed.after(after, PIECE).await })
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|it| Ok(Frame::data(it)))),
            Self::Feed { feed, next } => {
                let (lines, last) = std::task::ready!(next.as_mut().poll(cx));
                *next = wait(feed, last);
                Poll::Ready(Some(Ok(Frame::data(lines.into()))))
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::Feed { .. } => SizeHint::default(),
        }
    }
}

/// Reads a request's body, unless it exceeds the limit or breaks off.
pub(crate) async fn read(mut body: Incoming, limit: usize) -> Option<Bytes> {
    let mut whole = BytesMut::new();
    while let Some(frame) =
        std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await.transpose().ok()?
    {
        let Ok(bytes) = frame.into_data() else { continue };
        if whole.len() + bytes.len() > limit {
            return None;
        }
        whole.extend_from_slice(&bytes);
    }
    Some(whole.freeze())
}
