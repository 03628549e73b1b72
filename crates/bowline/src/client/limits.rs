//! Every bound that a client enforces, with its default. Servers are not trusted either.

use std::time::Duration;

/// Limits on what a server may send, or make a client wait for or remember.
///
/// Everything that a server chooses and the client keeps is bounded in bytes of its JSON text:
///
/// | what is kept | limits |
/// |---|---|
/// | a message while it is read, the result of a call | `message_length` |
/// | a list while it is collected, with its cursors | `list_bytes`, `list_items`, `list_pages` |
/// | who the server is: name, icons, capabilities, instructions | `peer_bytes` |
/// | notifications and progress that nobody has read, requests that are not answered | `queued_bytes`, `notifications`, `progress`, `questions` |
/// | definitions of tools, for their headers and the check of their output | `tool_bytes`, `tools`, `schema_bytes` |
/// | cached results | `cache_bytes`, `cache_entries` |
/// | URIs of resources that changed | `changed_bytes` |
/// | names of the questions of a task | `task_bytes`, `task_questions` |
/// | the last lines of standard error | `stderr_lines`, `stderr_line_length` |
/// | session id, URL for messages, id of the last event | heads of 128 KiB, URLs of 64 KiB, ids of 4 KiB |
/// | the body of an error response | 1 MiB |
///
/// A [`Proxy`](crate::Proxy) keeps what its client keeps, and the four lists.
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
    /// Bytes of one list, from all pages: 32 MiB.
    pub list_bytes: usize,
    /// Bytes of what a server says about itself when a connection is opened: 1 MiB. That is its
    /// name, icons, capabilities and instructions.
    pub peer_bytes: usize,
    /// Bytes that are held until somebody takes them: 8 MiB, for notifications, progress reports
    /// and requests of the server together. Beyond it, notifications and reports are dropped as if
    /// there were too many, and requests are rejected.
    pub queued_bytes: usize,
    /// Requests of the server that are handled at a time: 64. Further ones are rejected.
    pub questions: usize,
    /// How often a modern call is repeated with answers: 10.
    pub rounds: u32,
    /// How often a modern call is repeated because the server asks for time, not answers: 5.
    pub waits: u32,
    /// Questions that one task may ask: 100.
    pub task_questions: usize,
    /// Bytes of the keys of these questions: 64 KiB.
    pub task_bytes: usize,
    /// How often in a row a task may be found waiting for input although nobody is asked anything
    /// new: 60.
    pub task_repeats: u32,
    /// The shortest time between two polls of a task, whatever its server wants: 100 milliseconds.
    pub task_poll_shortest: Duration,
    /// The longest time between two polls of a task, whatever its server wants: 60 seconds. Also
    /// the time between polls while the server reports changes by itself.
    pub task_poll_longest: Duration,
    /// How often in a row asking for a task may fail, because the network does or the server
    /// restarts, before the client gives up: 5. It waits longer each time.
    pub task_failures: u32,
    /// Tasks that the client subscribes to at a time: 16. Further ones are only polled.
    pub task_streams: usize,
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
    /// Bytes of the names and schemas of these tools: 4 MiB. Results of further tools are not
    /// checked against their output schema.
    pub tool_bytes: usize,
    /// Bytes of one schema of a tool: 1 MiB. A longer one is not used to check results, nor
    /// searched for headers.
    pub schema_bytes: usize,
    /// Bytes of the URIs of resources that have changed, for each [`Changes`](super::Changes) that
    /// nobody reads: 1 MiB. Beyond it, the URI that was subscribed to is reported instead.
    pub changed_bytes: usize,
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
            list_bytes: 32 << 20,
            peer_bytes: 1 << 20,
            queued_bytes: 8 << 20,
            questions: 64,
            rounds: 10,
            waits: 5,
            task_questions: 100,
            task_bytes: 64 << 10,
            task_repeats: 60,
            task_poll_shortest: Duration::from_millis(100),
            task_poll_longest: Duration::from_secs(60),
            task_failures: 5,
            task_streams: 16,
            notifications: 1024,
            progress: 64,
            cache_entries: 256,
            cache_bytes: 8 << 20,
            tools: 10_000,
            tool_bytes: 4 << 20,
            schema_bytes: 1 << 20,
            changed_bytes: 1 << 20,
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
    /// [`ClientLimits::list_bytes`].
    ListBytes,
    /// [`ClientLimits::peer_bytes`].
    PeerBytes,
    /// [`ClientLimits::rounds`].
    Rounds,
    /// [`ClientLimits::waits`].
    Waits,
    /// [`ClientLimits::task_questions`].
    TaskQuestions,
    /// [`ClientLimits::task_bytes`].
    TaskBytes,
    /// [`ClientLimits::task_repeats`].
    TaskRepeats,
}

impl ClientLimit {
    /// The name of the setting in [`ClientLimits`], such as `message_length`.
    #[must_use]
    pub fn setting(self) -> &'static str {
        match self {
            Self::MessageLength => "message_length",
            Self::ListPages => "list_pages",
            Self::ListItems => "list_items",
            Self::ListBytes => "list_bytes",
            Self::PeerBytes => "peer_bytes",
            Self::Rounds => "rounds",
            Self::Waits => "waits",
            Self::TaskQuestions => "task_questions",
            Self::TaskBytes => "task_bytes",
            Self::TaskRepeats => "task_repeats",
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
            Self::ListBytes => ("all pages of the list together have more than", "bytes"),
            Self::PeerBytes => ("what the server says about itself has more than", "bytes"),
            Self::Rounds => ("the server asks back more than", "times"),
            Self::Waits => ("the server asks for time more than", "times"),
            Self::TaskQuestions => ("the task asks more than", "questions"),
            Self::TaskBytes => ("the names of the task's questions have more than", "bytes"),
            Self::TaskRepeats => {
                ("the task waits for input, though it asked nothing new more than", "times")
            }
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
    /// starts over, and the time that the user takes to answer them does not count. A task is one
    /// answer: its time counts from its creation, and starts over when it asked something.
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
