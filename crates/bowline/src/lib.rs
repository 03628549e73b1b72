//! The Model Context Protocol for Rust.
//!
//! A server is built from functions. It speaks every revision of the protocol at once, and its
//! author never needs to know that there are several.
//!
//! ```no_run
//! use bowline::{Server, tool};
//!
//! /// Greet someone.
//! #[tool]
//! async fn greet(
//!     /// Whom to greet.
//!     name: String,
//! ) -> String {
//!     format!("Hello, {name}!")
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), bowline::ServeError> {
//!     Server::new("hello", "1.0.0").with(greet).serve_stdio().await
//! }
//! ```
//!
//! Everything that the attributes do can be done without them: [`Tool`], [`Prompt`] and
//! [`Resource`] are built from closures. Types of arguments and results derive what [`serde`] and
//! [`schemars`] provide; both are re-exported. Handlers reach the client through [`Context`]:
//! progress, logs, questions to its user and its model. [`Registry`] changes a server while it
//! runs. `testing` (feature `testing`) calls it from a unit test.
//!
//! `Client` (feature `client`) is the other side: it connects to any server, in any revision.
//! `Proxy` makes another server a part of this one, and [`agent`] hands tools to models.
//!
//! The `guide` module has a tutorial and a page for each larger subject.
//!
//! | feature | brings |
//! |---|---|
//! | `macros`, on by default | `#[tool]`, `#[prompt]`, `#[resource]`, `#[server]` |
//! | `http`, `http2`, `tls` | servers over HTTP/1.1, over HTTP/2 as well, with TLS |
//! | `auth` | servers that reject requests without a valid token |
//! | `client`, `client-http` | clients of commands and streams; of URLs |
//! | `client-auth` | clients that log in |
//! | `events` | **experimental:** servers that report events, by webhooks too |
//! | `log-layer` | `ClientLog`: a `tracing` layer that sends a server's events to its client |
//! | `skills` | servers with folders of skills, clients that verify what they read |
//! | `testing` | `testing`: a client of a server in memory, for unit tests |

pub mod agent;
#[cfg(feature = "client")]
pub mod client;
mod clock;
#[cfg(feature = "events")]
pub mod events;
#[cfg(any(doc, doctest))]
pub mod guide;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "log-layer")]
mod log;
mod outbox;
#[doc(hidden)]
pub mod private;
#[cfg(feature = "client")]
pub mod proxy;
mod random;
mod rarely;
pub mod seal;
mod server;
#[cfg(feature = "skills")]
pub mod skills;
pub mod stdio;
mod stream;
#[cfg(feature = "testing")]
pub mod testing;
pub mod uri_template;

#[cfg(feature = "macros")]
pub use bowline_macros::{prompt, resource, server, tool};
pub use bowline_proto as proto;
pub use bowline_proto::base64;
pub use bowline_proto::error::{ErrorCode, ErrorObject};
pub use bowline_proto::json::Json;
pub use bowline_proto::model;
pub use bowline_proto::revision::{Era, Revision, Revisions};
/// Derive [`JsonSchema`](schemars::JsonSchema) with it: `#[schemars(crate = "bowline::schemars")]`.
pub use schemars;
/// Derive `Deserialize` and `Serialize` with it: `#[serde(crate = "bowline::serde")]`.
pub use serde;

#[cfg(feature = "client")]
pub use self::client::Client;
#[cfg(feature = "log-layer")]
pub use self::log::ClientLog;
#[cfg(feature = "client")]
pub use self::proxy::Proxy;
pub use self::server::*;
pub use bowline_proto::causes::with_causes;

/// Compiles the examples of the READMEs, that of the repository and that of the crate.
#[cfg(all(doctest, feature = "http", feature = "testing"))]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../README.md")]
struct Readme;

/// Compiles those of the book, whose other pages have none or are guides.
#[cfg(all(doctest, feature = "auth", feature = "testing"))]
#[doc = include_str!("../../../docs/auth.md")]
#[doc = include_str!("../../../docs/deploy.md")]
#[doc = include_str!("../../../docs/eras.md")]
#[doc = include_str!("../../../docs/replay.md")]
#[doc = include_str!("../../../docs/skills.md")]
struct Book;
