//! A [`Client`] of a server in memory, for unit tests, in any revision.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use bowline::{Server, Tool, testing};
//! use serde_json::json;
//!
//! let server = Server::new("greeter", "1.0.0").with(Tool::new("hello", || async { "hello" }));
//! let client = testing::connect(server).await?;
//! assert_eq!(client.call_tool("hello", json!({})).text().await?, "hello");
//! # Ok(())
//! # }
//! ```
//!
//! The server runs as it would on stdio: every message is encoded and parsed. The client is the one
//! that applications use, so a test can do whatever they can: await progress, answer the server's
//! questions, watch changes, cancel a call by dropping it.

use crate::client::{Client, ClientBuilder, OpenError, Preference};
use crate::{Revision, Server};

/// Connects to a server in the newest revision.
///
/// # Errors
/// When the server cannot be built.
pub async fn connect(server: Server) -> Result<Client, OpenError> {
    connect_in(server, Revision::LATEST).await
}

/// Connects to a server in a revision of choice.
///
/// # Errors
/// When the server cannot be built, or does not speak the revision.
pub async fn connect_in(server: Server, revision: Revision) -> Result<Client, OpenError> {
    builder(revision).connect(server).await
}

/// A client that speaks one revision and keeps no results, for tests that set more than that:
/// handlers for the server's questions, timeouts, limits.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use bowline::client::FormAnswer;
/// use bowline::{Revision, Server, testing};
/// use serde_json::json;
///
/// let client = testing::builder(Revision::LATEST)
///     .on_form(|_| async { Ok(FormAnswer::accept(&json!({ "name": "Ada" }))) })
///     .connect(Server::new("asks", "1.0.0"))
///     .await?;
/// # Ok(())
/// # }
/// ```
pub fn builder(revision: Revision) -> ClientBuilder {
    Client::builder("test", "1.0.0").preference(Preference::Pin(revision)).without_cache()
}
