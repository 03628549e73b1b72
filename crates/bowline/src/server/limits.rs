//! The limits of a server, with their defaults.

use std::time::Duration;

/// How much a client may send, hold open or make a server remember.
///
/// ```
/// use std::time::Duration;
/// use bowline::{Limits, Server};
///
/// let deadline = Duration::from_secs(30);
/// let limits = Limits { requests_in_flight: 16, deadline, ..Limits::default() };
/// let server = Server::new("careful", "1.0.0").limits(limits);
/// ```
#[derive(Debug, Clone)]
pub struct Limits {
    /// The longest line on a stream, in bytes: 16 MiB. A longer one is rejected and skipped.
    pub line_length: usize,
    /// Requests of one connection that run at a time: 128. Further ones are queued.
    pub requests_in_flight: usize,
    /// Bytes of queued requests: 1 MiB. Beyond it, reading pauses.
    pub requests_waiting: usize,
    /// Bytes of pending output on one connection: 1 MiB. Beyond it, reading pauses, and handlers
    /// that log or ask wait.
    pub outbox: usize,
    /// How long one request may take: 5 minutes. After that, the handler is dropped and the request
    /// fails with an error.
    pub deadline: Duration,
    /// How long a handler waits for an answer from the client's user or model: 10 minutes.
    pub ask_timeout: Duration,
    /// How long running requests get to finish when the connection or the server ends: 5 seconds.
    /// After that, they fail with an error. Requests that arrive after the server was told to stop
    /// are rejected.
    pub grace: Duration,
    /// How long running requests get to finish after a client on a byte stream has closed its
    /// side: 1 second, after which they are dropped without an answer; official clients kill a
    /// server that takes 2. Nothing but answers is sent meanwhile. A client that only ever wrote,
    /// such as a file in a pipe, gets the [grace](Self::grace) period and everything else.
    pub farewell: Duration,
    /// Items on one page of a list: 1,000.
    pub page: usize,
    /// Tools, prompts, resources and templates that can be registered, each: 100,000.
    pub registry: usize,
    /// The longest sealed request state that is issued or accepted, in bytes: 64 KiB.
    pub request_state: usize,
    /// How long a sealed request state stays valid: 15 minutes.
    pub request_state_age: Duration,
    /// How often one request may ask the client: 16 rounds.
    pub rounds: u32,
    /// Progress notifications of one request per second: 20, after a burst of as many. If some are
    /// skipped, the newest one is sent before the answer.
    pub progress_per_second: u32,
    /// Resources that one listener may subscribe to, and as many tasks or other names that
    /// extensions report: 1,024.
    pub subscriptions: usize,
    /// Listen requests that one connection may have open at a time: 64.
    pub listens: usize,
    /// Messages in one batch, which only 2025-03-26 has: 100. A longer one is rejected as a whole.
    /// On a stream, where the answers are sent as one line, those that [`Limits::memory`] has no
    /// room for are replaced with errors; over HTTP they are sent one by one.
    pub batch: usize,
    /// The longest description that a client may give of itself, in bytes: 32 KiB for `clientInfo`
    /// and `clientCapabilities` together, or for the parameters of `initialize`. Longer ones are
    /// rejected. Ids and progress tokens may have [1,024 bytes](bowline_proto::wire::Id::LONGEST),
    /// URIs of subscriptions 8,192.
    pub identity: usize,
    /// Principals whose [session state](crate::Context::session_state) is kept where there are no
    /// sessions: 1,024. Beyond it, that of the principal that was idle longest is dropped.
    pub principals: usize,
    /// Bytes that all clients together may make the server hold, such as bodies and queued
    /// requests: 64 MiB. A quarter is kept for what is not longer than 64 KiB. What does not fit
    /// is rejected: over HTTP with 503 and `Retry-After`, elsewhere with an error.
    pub memory: usize,
    /// The share of it that one party may take: 16 MiB. A party is a principal, or else an address
    /// (of IPv6 a /64 network), or else a connection.
    pub memory_per_party: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            line_length: 16 << 20,
            requests_in_flight: 128,
            requests_waiting: 1 << 20,
            outbox: 1 << 20,
            deadline: Duration::from_secs(300),
            ask_timeout: Duration::from_secs(600),
            grace: Duration::from_secs(5),
            farewell: Duration::from_secs(1),
            page: 1_000,
            registry: 100_000,
            request_state: 64 << 10,
            request_state_age: Duration::from_secs(900),
            rounds: 16,
            progress_per_second: 20,
            subscriptions: 1_024,
            listens: 64,
            batch: 100,
            identity: 32 << 10,
            principals: 1_024,
            memory: 64 << 20,
            memory_per_party: 16 << 20,
        }
    }
}
