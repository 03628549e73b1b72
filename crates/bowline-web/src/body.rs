//! Bodies: a request's in one piece or passed on, a response's as a stream.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;

use crate::WebError;

/// The body of a response, as it arrives. Dropping it cancels the rest.
pub struct Body {
    incoming: Incoming,
    host: Arc<str>,
}

impl Body {
    pub(crate) fn new(incoming: Incoming, host: Arc<str>) -> Self {
        Self { incoming, host }
    }

    /// The next bytes; `None` at the end. Trailers are skipped.
    ///
    /// # Errors
    /// When the connection ends before the body does.
    ///
    /// # Cancel safety
    /// Nothing is lost: what was not returned comes with the next call.
    pub async fn chunk(&mut self) -> Option<Result<Bytes, WebError>> {
        loop {
            let next = |cx: &mut Context<'_>| http_body::Body::poll_frame(Pin::new(&mut *self), cx);
            match std::future::poll_fn(next).await? {
                Ok(frame) => match frame.into_data() {
                    Ok(bytes) if bytes.is_empty() => {}
                    Ok(bytes) => return Some(Ok(bytes)),
                    Err(_) => {}
                },
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Collects the rest of the body. A body that arrives in one piece is not copied.
    ///
    /// # Errors
    /// [`WebError::TooLarge`] when it has, or announces, more than `limit` bytes; otherwise as
    /// [`chunk`](Self::chunk).
    pub async fn collect(mut self, limit: usize) -> Result<Bytes, WebError> {
        let host = Arc::clone(&self.host);
        let too_large = || WebError::TooLarge { host: host.to_string(), limit };
        if http_body::Body::size_hint(&self).lower() > limit as u64 {
            return Err(too_large());
        }
        let mut first = Bytes::new();
        let mut whole = BytesMut::new();
        while let Some(chunk) = self.chunk().await.transpose()? {
            if first.len() + whole.len() + chunk.len() > limit {
                return Err(too_large());
            }
            if first.is_empty() && whole.is_empty() {
                first = chunk;
            } else {
                whole.extend_from_slice(&std::mem::take(&mut first));
                whole.extend_from_slice(&chunk);
            }
        }
        Ok(if whole.is_empty() { first } else { whole.freeze() })
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = WebError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, WebError>>> {
        let host = Arc::clone(&self.host);
        Pin::new(&mut self.incoming)
            .poll_frame(cx)
            .map_err(|error| WebError::from_http(&host, error))
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Body(from {})", self.host)
    }
}

/// The body of a request.
pub(crate) enum Upload {
    /// In one piece.
    Whole(Option<Bytes>),
    /// As it comes.
    Stream(Stream),
}

/// A body of any type that is passed on as it comes.
type Stream = Pin<Box<dyn http_body::Body<Data = Bytes, Error = BoxError> + Send>>;

/// Why such a body broke off.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl Upload {
    pub(crate) fn whole(bytes: Bytes) -> Self {
        Self::Whole(Some(bytes).filter(|bytes| !bytes.is_empty()))
    }

    pub(crate) fn stream<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        Self::Stream(Box::pin(Boxed(Box::pin(body))))
    }
}

impl http_body::Body for Upload {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut *self {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Stream(body) => body.as_mut().poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Stream(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                let length = bytes.as_ref().map_or(0, Bytes::len);
                SizeHint::with_exact(u64::try_from(length).unwrap_or(u64::MAX))
            }
            Self::Stream(body) => body.size_hint(),
        }
    }
}

/// A body whose errors have one type.
struct Boxed<B>(Pin<Box<B>>);

impl<B> http_body::Body for Boxed<B>
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.0.as_mut().poll_frame(cx).map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}
