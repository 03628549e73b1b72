//! The HTTP client under Bowline: for talking to servers that are not trusted.
//!
//! It follows no redirect, decompresses nothing and keeps no cookies. What it does: pooled
//! connections (HTTP/1.1 and HTTP/2), TLS with the system's roots or given ones, proxies of the
//! environment, deadlines, and a guard on the addresses it may reach.
//!
//! ```no_run
//! # async fn example() -> Result<(), bowline_web::WebError> {
//! use bowline_web::{Reach, Web};
//!
//! let web = Web::builder().reach(Reach::public()).build()?;
//! let request = http::Request::get("https://example.com/").body(Default::default()).unwrap();
//! let answer = web.fetch(request).await?;
//! println!("{}: {} bytes", answer.status(), answer.body().len());
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
