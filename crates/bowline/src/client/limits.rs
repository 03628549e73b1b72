//! Every bound that a client enforces, with its default. Servers are not trusted either.

use std::time::Duration;

/// Limits on what a server may send, or make a client wait for or remember.
///
/// ```
/// use bowline::client::{Client, ClientLimits};
///
/// let limits = ClientLimits { list_items: 1_000, ..ClientLimits::default() };
/// let client = Client::builder("careful", "1.0.0").limits(limits);
/// ```
#[derive(Debug, Clone)]
pub struct ClientLimits {
    /// The longest message, in bytes: 16 MiB. A longer answer fails its call with
    /// [`CallError::LimitExceeded`](super::CallError::LimitExceeded); any other longer message is
    /// skipped. Raise it for servers with large results.
    pub message_length: usize,
    /// Bytes that wait to be written to a stream: 4 MiB. Beyond it, calls wait.
    pub outbox: usize,
    /// Pages of one list: 10,000.
    pub list_pages: u64,
    /// Items of one list, from all pages: 100,000.
    pub list_items: u64,
    /// Requests of the server that are handled at a time: 64. Further ones are rejected.
    pub questions: usize,
    /// How often a modern call is repeated with answers: 10.
    pub rounds: u32,
    /// How often a modern call is repeated because the server asks for time, not answers: 5.
    pub waits: u32,
    /// Notifications that are held for a slow reader: 1,024. Beyond it the oldest are dropped, and
    /// the reader learns how many.
    pub notifications: usize,
    /// Progress reports that are held for a slow reader: 64. Beyond it new ones are dropped.
    pub progress: usize,
    /// Results that the cache holds: 256.
    pub cache_entries: usize,
    /// Bytes of results that the cache holds: 8 MiB.
    pub cache_bytes: usize,
    /// Tools whose schema and headers are remembered: 10,000.
    pub tools: usize,
    /// How long a stream of changes may stay silent: 5 minutes. After that it is reopened, because
    /// a vanished peer looks the same.
    pub stream_silence: Duration,
    /// Lines of a child's standard error that are kept for error messages: 20.
    pub stderr_lines: usize,
    /// Bytes of each such line: 1,000.
    pub stderr_line_length: usize,
    /// How long a child may take to exit after its standard input was closed: 2 seconds.
    pub exit_grace: Duration,
    /// How long it may take to exit after TERM: 2 seconds. After that it is killed.
    pub term_grace: Duration,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            message_length: 16 << 20,
            outbox: 4 << 20,
            list_pages: 10_000,
            list_items: 100_000,
            questions: 64,
            rounds: 10,
            waits: 5,
            notifications: 1024,
            progress: 64,
            cache_entries: 256,
            cache_bytes: 8 << 20,
            tools: 10_000,
            stream_silence: Duration::from_secs(5 * 60),
            stderr_lines: 20,
            stderr_line_length: 1000,
            exit_grace: Duration::from_secs(2),
            term_grace: Duration::from_secs(2),
        }
    }
}

/// A limit of this client that a server exceeded. It is not the server's: the client can raise it,
/// by the setting of the same name in [`ClientLimits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClientLimit {
    /// [`ClientLimits::message_length`].
    MessageLength,
    /// [`ClientLimits::list_pages`].
    ListPages,
    /// [`ClientLimits::list_items`].
    ListItems,
    /// [`ClientLimits::rounds`].
    Rounds,
    /// [`ClientLimits::waits`].
    Waits,
}

impl ClientLimit {
    /// The name of the setting in [`ClientLimits`], such as `message_length`.
    #[must_use]
    pub fn setting(self) -> &'static str {
        match self {
            Self::MessageLength => "message_length",
            Self::ListPages => "list_pages",
            Self::ListItems => "list_items",
            Self::Rounds => "rounds",
            Self::Waits => "waits",
        }
    }

    /// What the server did, for people who know nothing of Rust: `the answer is longer than
    /// 16777216 bytes, a limit of this client`.
    #[must_use]
    pub fn explain(self, most: u64) -> String {
        let (what, unit) = match self {
            Self::MessageLength => ("the answer is longer than", "bytes"),
            Self::ListPages => ("the list has more than", "pages"),
            Self::ListItems => ("the list has more than", "items"),
            Self::Rounds => ("the server asks back more than", "times"),
            Self::Waits => ("the server asks for time more than", "times"),
        };
        format!("{what} {most} {unit}, a limit of this client")
    }
}

/// How long things may take.
#[derive(Debug, Clone)]
pub struct Timeouts {
    /// To connect, including restarts of a server that dies on the first request: 60 seconds. Long
    /// enough for a package runner to download the server.
    pub connect: Duration,
    /// For a process to answer the first request of the modern era before the client also tries the
    /// legacy handshake: 1 second. Some old servers do not answer methods that they do not know.
    pub probe: Duration,
    /// Without an answer and without progress: 60 seconds.
    pub idle: Duration,
    /// For one answer in total, whatever progress is reported: 1 hour. Each round of questions
    /// starts over, and the time that the user takes to answer them does not count.
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(60),
            probe: Duration::from_secs(1),
            idle: Duration::from_secs(60),
            total: Duration::from_secs(60 * 60),
        }
    }
}
