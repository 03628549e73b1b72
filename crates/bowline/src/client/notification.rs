//! What a server says without being asked, in the order it said it.

use std::pin::Pin;
use std::sync::Arc;

use bowline_proto::error::ErrorObject;
use bowline_proto::json::Json;
use serde::de::DeserializeOwned;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

/// A notification of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    /// Which kind, such as `notifications/message`.
    pub method: Arc<str>,
    /// What it carries; an empty object where it carries nothing.
    pub params: Arc<Json>,
}

impl Notification {
    /// What it carries, as a type of the caller's; `None` if it is of another.
    pub fn read<T: DeserializeOwned>(&self) -> Option<T> {
        self.params.parse().ok()
    }
}

/// Something that a server sent and nobody could use.
///
/// None of it ends the connection. It is told to a hook because it explains calls that time out.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Fault {
    /// An error of the server that answers no call in particular.
    Reported(ErrorObject),
    /// Bytes that are no message; the start of them.
    NotAMessage {
        /// What is wrong with them.
        problem: String,
        /// The first bytes, as far as they are text.
        start: String,
    },
    /// A message longer than allowed, which was skipped.
    TooLong {
        /// How many bytes are allowed.
        limit: usize,
    },
    /// A request that gets no answer, because too many wait and the server does not take theirs.
    Unanswered {
        /// What was asked.
        method: String,
    },
    /// An answer to a question that was never asked.
    UnknownAnswer {
        /// The id it carried.
        id: String,
    },
}

/// Notifications as they come. Ends with the connection.
#[derive(Debug)]
pub struct Notifications(pub(super) broadcast::Receiver<Notification>);

/// The number of notifications that were dropped because the reader was too slow.
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
            Ok(notification) => Some(Ok(notification)),
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
            Ok(notification) => Some(Ok(notification)),
            Err(TryRecvError::Lagged(count)) => Some(Err(Missed(count))),
            Err(TryRecvError::Empty | TryRecvError::Closed) => None,
        }
    }

    /// Waits for the next notification of one method and drops those before it.
    ///
    /// # Cancel safety
    /// What was dropped stays dropped; nothing else is lost.
    pub async fn next_of(&mut self, method: &str) -> Option<Notification> {
        loop {
            match self.next().await? {
                Ok(found) if &*found.method == method => return Some(found),
                _ => {}
            }
        }
    }
}

/// A function that is told of every notification, in order.
pub(super) type OnNotification = Arc<dyn Fn(&Notification) + Send + Sync>;

/// A function that is told of every fault.
pub(super) type OnFault = Arc<dyn Fn(&Fault) + Send + Sync>;

/// A function that is told of every line on a child's standard error.
pub(super) type OnStderr = Arc<dyn Fn(&str) + Send + Sync>;

/// A future on the heap.
pub(super) type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The start of what a server sent, for people.
pub(super) fn start_of(frame: &[u8]) -> String {
    const MOST: usize = 200;
    let text = String::from_utf8_lossy(&frame[..frame.len().min(MOST)]);
    text.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}
