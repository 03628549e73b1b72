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
//! questions, watch changes, cancel a call by dropping it, read structured content into a type with
//! [`structured`](crate::client::ToolCall::structured).
//!
//! | for a test | there is |
//! |---|---|
//! | in one revision, or in each | [`connect_in`], [`each_revision`] |
//! | with handlers for the server's questions, timeouts, limits | [`builder`] |
//! | with a principal, scopes, headers, extensions | `over_http`, with the features `http` and `client-http` |
//! | of a store of your own for tasks | [`task_store_contract`], [`task_store_bytes_contract`] |
//! | of deadlines and long waits | `#[tokio::test(start_paused = true)]`: nothing here waits for anything but the clock |

#[cfg(all(feature = "client-http", feature = "http"))]
mod over_http;

#[cfg(all(feature = "client-http", feature = "http"))]
pub use self::over_http::{OverHttp, over_http};
use crate::Revision;
use crate::client::{Client, ClientBuilder, OpenError, Preference, Target};
pub use crate::server::tasks::contract::{task_store_bytes_contract, task_store_contract};

/// Connects to a server in the newest revision.
///
/// # Errors
/// When the server cannot be built.
pub async fn connect(server: impl Into<Target>) -> Result<Client, OpenError> {
    connect_in(server, Revision::LATEST).await
}

/// Connects to a server in a revision of choice.
///
/// # Errors
/// When the server cannot be built, or does not speak the revision.
pub async fn connect_in(
    server: impl Into<Target>,
    revision: Revision,
) -> Result<Client, OpenError> {
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

/// Runs a test in every revision, one after the other, with a [`builder`] for each. If it panics,
/// standard error says in which.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use bowline::{Server, Tool, testing};
/// use serde_json::json;
///
/// testing::each_revision(async |client| {
///     let hello = Tool::new("hello", || async { "hello" });
///     let client = client.connect(Server::new("greeter", "1.0.0").with(hello)).await.unwrap();
///     assert_eq!(client.call_tool("hello", json!({})).text().await.unwrap(), "hello");
/// })
/// .await;
/// # }
/// ```
pub async fn each_revision(test: impl AsyncFn(ClientBuilder)) {
    for revision in Revision::ALL {
        let _blame = Blame(revision);
        test(builder(revision)).await;
    }
}

/// Names the revision in which a test panics.
struct Blame(Revision);

impl Drop for Blame {
    #[expect(clippy::print_stderr, reason = "a test's panic goes there, too")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("in revision {}", self.0);
        }
    }
}
