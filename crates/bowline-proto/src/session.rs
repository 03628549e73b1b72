//! The state that peers keep about each other, as state machines.
//!
//! Nothing here reads, writes, waits or knows the time. The owner of a connection passes in what
//! happened and when, and does what the result says. Handles that are kept for the owner (a oneshot
//! sender, something that aborts a task) are opaque. The verbs:
//!
//! - `handle_*` takes an event and returns what follows from it;
//! - `poll_*` returns what there is to do or send, one at a time, until there is nothing left;
//! - `open` starts something to wait for, and returns its id;
//! - `close`, or `drain` for all at once, ends it and returns what was kept for it.
//!
//! | part | of | remembers |
//! |---|---|---|
//! | [`Calls`] | both sides | which answers are awaited, and until when |
//! | [`Inbound`] | both sides | which requests are in progress, and how to stop them |
//! | [`classify`] | server | nothing; it finds the era of a message |
//! | [`Lifecycle`] | server | how far the handshake of a stream or session is |
//! | [`Connect`] | client | what was tried to find a common revision |
//! | [`Subscription`] | server | what a listener subscribed to, and which changes are pending |
//! | [`Replay`] | server | what a legacy HTTP session has sent |
//!
//! Each belongs to one owner and takes `&mut self`; none needs to be shared. Where time matters, it
//! is a parameter, and `next_deadline` says when to call again.

mod calls;
mod claim;
mod classify;
mod connect;
mod inbound;
mod lifecycle;
mod replay;
mod subscriptions;

pub use self::calls::{Calls, Expired, Pending, Recipient, Timeout};
pub use self::claim::Claim;
pub use self::classify::{
    Class, Facts, Kind, Refusal, RefusalStatus, Rules, Sessions, Transport, classify,
};
pub use self::connect::{
    Action, Connect, ConnectError, Event, PROBE_TIMEOUT, Preference, Question, Rejection,
};
pub use self::inbound::{BeginError, Inbound, SameId, Ticket};
pub use self::lifecycle::{Admission, Lifecycle, Phase, Reaction};
pub use self::replay::{EventId, Missed, Replay, ReplayLimits, ResumeError, StreamId};
pub use self::subscriptions::{Promised, Subscription, SubscriptionLimits, Topic};

#[cfg(test)]
mod tests;
