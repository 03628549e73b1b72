//! What two peers must remember of each other, as state machines.
//!
//! Nothing here reads, writes, waits or knows the time. Whoever owns a connection feeds these parts
//! with what came in and when, and does what they say. Handles that they keep for their owner (a
//! oneshot sender, something to abort a task with) are opaque to them. Their verbs:
//!
//! - `handle_*` takes in something that happened, and says what follows from it;
//! - `poll_*` gives out what there is to do or send, one at a time, until there is nothing;
//! - `open` begins something that is waited on, and gives it a name;
//! - `close`, and `drain` for all at once, ends it and gives back what was kept for it.
//!
//! | part | of | remembers |
//! |---|---|---|
//! | [`Calls`] | both sides | which answers are awaited, and until when |
//! | [`Inbound`] | both sides | which requests are being worked on, and how to stop them |
//! | [`classify`] | server | nothing: which era a message belongs to |
//! | [`Lifecycle`] | server | where a stream or session stands in its handshake |
//! | [`Connect`] | client | what has been tried to find a common revision |
//! | [`Subscription`] | server | what a listener wants to hear and has not heard yet |
//! | [`Replay`] | server | what a legacy HTTP session has sent |
//!
//! Each belongs to one owner, which takes `&mut`; none is shared, and none needs to be. Where time
//! matters, it is an argument, and `next_deadline` says when to come back.

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
