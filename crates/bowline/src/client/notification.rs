//! Notifications of a server, in order.

use std::pin::Pin;
use std::sync::Arc;

use bowline_proto::error::ErrorObject;
use bowline_proto::json::Json;
use serde::de::DeserializeOwned;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use super::budget::Share;

/// A notification of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    /// The method, such as `notifications/message`.
    pub method: Arc<str>,
    /// The parameters; an empty object if there are none.
    pub params: Arc<Json>,
}

impl Notification {
    /// Parses the parameters; `None` if they are not of that type.
    pub fn read<T: DeserializeOwned>(&self) -> Option<T> {
        self.params.parse().ok()
    }
}

/// Something that a server sent and the client could not use.
///
/// It does not end the connection. A hook receives it, because it may explain calls that time out.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Fault {
    /// An error of the server that belongs to no call.
    Reported(ErrorObject),
    /// Bytes that are not a message.
    NotAMessage {
        /// What is wrong with them.
        problem: String,
        /// The first bytes, as text.
        start: String,
    },
    /// A message that was too long and was skipped.
    TooLong {
        /// How many bytes are allowed.
        limit: usize,
    },
    /// A request that gets no answer, because the server does not read those to earlier ones.
    Unanswered {
        /// Its method.
        method: String,
    },
    /// An answer to a request that was never sent.
    UnknownAnswer {
        /// Its id.
        id: String,
    },
}

/// A stream of notifications. Ends with the connection.
#[derive(Debug)]
pub struct Notifications(pub(super) broadcast::Receiver<Told>);

/// A place in the queue of notifications.
#[derive(Debug, Clone)]
pub(super) enum Told {
    /// A notification, with its part of the budget until every reader has taken it.
    Notification(Notification, #[expect(dead_code, reason = "held")] Arc<Share>),
    /// One that the budget had no room for.
    Dropped,
}

impl Told {
    fn take(self) -> Result<Notification, Missed> {
        match self {
            Self::Notification(notification, _) => Ok(notification),
            Self::Dropped => Err(Missed(1)),
        }
    }
}

/// The number of notifications that were dropped because the reader was too slow, or they were too
/// large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} notifications were dropped: the reader was too slow")]
pub struct Missed(pub u64);

impl Notifications {
    /// Waits for the next notification. Returns `None` when the connection has ended.
    ///
    /// # Errors
    /// When notifications were dropped before this one. The stream goes on after that.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn next(&mut self) -> Option<Result<Notification, Missed>> {
        match self.0.recv().await {
            Ok(told) => Some(told.take()),
            Err(RecvError::Lagged(count)) => Some(Err(Missed(count))),
            Err(RecvError::Closed) => None,
        }
    }

    /// Returns the next notification if it has already arrived.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub fn try_next(&mut self) -> Option<Result<Notification, Missed>> {
        match self.0.try_recv() {
            Ok(told) => Some(told.take()),
            Err(TryRecvError::Lagged(count)) => Some(Err(Missed(count))),
            Err(TryRecvError::Empty | TryRecvError::Closed) => None,
        }
    }

    /// Waits for the next notification of one method and drops those before it.
    ///
    /// # Cancel safety
    /// Notifications that were dropped stay dropped; no others are lost.
    pub async fn next_of(&mut self, method: &str) -> Option<Notification> {
        loop {
            match self.next().await? {
                Ok(found) if &*found.method == method => return Some(found),
                _ => {}
            }
        }
    }
}

/// A function that receives every notification, in order.
pub(super) type OnNotification = Arc<dyn Fn(&Notification) + Send + Sync>;

/// A function that receives every fault.
pub(super) type OnFault = Arc<dyn Fn(&Fault) + Send + Sync>;

/// A function that receives every line of a child's standard error.
pub(super) type OnStderr = Arc<dyn Fn(&str) + Send + Sync>;

/// A future on the heap.
pub(super) type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The start of what a server sent, for people.
pub(super) fn start_of(frame: &[u8]) -> String {
    const MOST: usize = 200;
    let text = String::from_utf8_lossy(&frame[..frame.len().min(MOST)]);
    text.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}
