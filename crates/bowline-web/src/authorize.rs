//! What a client does so that a server lets it in.

use std::error::Error;
use std::future::Future;
use std::pin::Pin;

use http::{HeaderMap, StatusCode, request::Parts};

/// Proves to one server that a client may come in, and reacts when it is turned away.
///
/// An HTTP client asks for [`headers`](Self::headers) before each request, and shows each answer
/// to [`handle_answer`](Self::handle_answer) before it looks at it. The implementation bounds
/// how often it says [`Next::SendAgain`].
pub trait Authorize: Send + Sync {
    /// The headers that this request needs: `Authorization`, `DPoP`, or none.
    fn headers<'a>(&'a self, request: &'a Parts) -> AuthorizeFuture<'a, HeaderMap>;

    /// Takes in the answer to a request. `sent` is the request as it was sent, with the headers
    /// that [`headers`](Self::headers) gave. May log in, refresh, or remember a nonce.
    fn handle_answer<'a>(
        &'a self,
        sent: &'a Parts,
        status: StatusCode,
        headers: &'a HeaderMap,
    ) -> AuthorizeFuture<'a, Next>;
}

/// What the methods of [`Authorize`] give.
pub type AuthorizeFuture<'a, T> =
    Pin<Box<dyn Future<Output = Result<T, AuthorizeError>> + Send + 'a>>;

/// Why a client cannot be let in. The cause tells which step failed.
pub type AuthorizeError = Box<dyn Error + Send + Sync>;

/// What to do after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Use the answer as it is.
    Use,
    /// Ask for new headers and send the request once more.
    SendAgain,
}
