//! The HTTP client under Bowline, made for servers that are not trusted.
//!
//! It pools connections (HTTP/1.1 and HTTP/2), speaks TLS with the system's root certificates or
//! given ones, honours the environment's proxies and deadlines, and restricts which addresses may
//! be reached. It does not follow redirects, decompress bodies or keep cookies. [`Url`] and
//! [`Host`] are the workspace's one URL type and its one definition of loopback.
//!
//! ```no_run
//! # async fn example() -> Result<(), bowline_web::WebError> {
//! use bowline_web::{Reach, Web};
//!
//! let web = Web::builder().reach(Reach::public()).build()?;
//! let request = http::Request::get("https://example.com/").body(Default::default()).unwrap();
//! let response = web.fetch(request).await?;
//! println!("{}: {} bytes", response.status(), response.body().len());
//! # Ok(())
//! # }
//! ```

mod address;
mod authorize;
mod body;
mod connect;
mod error;
mod host;
mod proxy;
mod reach;
mod stream;
mod tls;
mod url;
mod web;

pub use authorize::{Authorize, AuthorizeError, AuthorizeFuture, Next};
pub use body::Body;
pub use error::{Cause, WebError};
pub use host::Host;
pub use proxy::Proxy;
pub use reach::Reach;
pub use url::{Origin, Url, UrlError};
pub use web::{FetchLimits, Web, WebBuilder};
