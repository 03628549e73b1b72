//! How a client gets access to a server.

use std::error::Error;
use std::future::Future;
use std::pin::Pin;

use http::{HeaderMap, StatusCode, request::Parts};

/// Authorizes a client's requests to one server, and reacts to rejections.
///
/// An HTTP client asks for [`headers`](Self::headers) before each request, and passes each response
/// to [`handle_answer`](Self::handle_answer) before it uses it. The implementation bounds how often
/// it returns [`Next::SendAgain`].
pub trait Authorize: Send + Sync {
    /// The headers that this request needs: `Authorization`, `DPoP`, or none.
    fn headers<'a>(&'a self, request: &'a Parts) -> AuthorizeFuture<'a, HeaderMap>;

    /// Handles the response to a request. `sent` is the request as it was sent, with the headers
    /// from [`headers`](Self::headers). May log in, refresh, or remember a nonce.
    fn handle_answer<'a>(
        &'a self,
        sent: &'a Parts,
        status: StatusCode,
        headers: &'a HeaderMap,
    ) -> AuthorizeFuture<'a, Next>;
}

/// What the methods of [`Authorize`] return.
pub type AuthorizeFuture<'a, T> =
    Pin<Box<dyn Future<Output = Result<T, AuthorizeError>> + Send + 'a>>;

/// Why a client has no access. The error says which step failed.
pub type AuthorizeError = Box<dyn Error + Send + Sync>;

/// What to do with a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Use the response as it is.
    Use,
    /// Ask for new headers and send the request once more.
    SendAgain,
}
