//! A count of what a proxy could not pass on.

use std::sync::atomic::{AtomicU64, Ordering};

/// Something that a proxy could not pass on. [The module](crate::proxy) says why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Loss {
    /// A question that was refused because no call was in flight.
    QuestionOutsideCall,
    /// A question that was refused because calls of several callers were in flight.
    AmbiguousQuestion,
    /// A question that was refused because its caller cannot answer it.
    UnansweredQuestion,
    /// A form that was cancelled because the caller's revision has no choice of several.
    MultiSelect,
    /// A log message that was dropped because it belongs to no single call.
    LogOutsideCall,
    /// An announcement of changed roots that the upstream server did not get.
    RootsPush,
    /// A call that was cancelled because its caller did not come back with answers in time.
    ExpiredCall,
    /// An answer for a call that no longer waited for it.
    LateAnswer,
    /// Structured content that became text because the caller's revision takes only objects.
    StructuredContent,
    /// A call whose answer was lost with the connection. It may have been executed.
    BrokenCall,
    /// A connection of its own for a call, which does not see the state of others.
    SeparateConnection,
    /// A subscription to a resource that the upstream server refuses, or for which the proxy has no
    /// place. Its subscriber hears of no changes, until the server grants it.
    Subscription,
}

/// How many kinds there are.
const KINDS: usize = Loss::Subscription as usize + 1;

/// How often something could not be passed on.
#[derive(Debug, Default)]
pub struct Losses([AtomicU64; KINDS]);

impl Losses {
    /// How often this has happened.
    pub fn count(&self, loss: Loss) -> u64 {
        self.0[loss as usize].load(Ordering::Relaxed)
    }

    pub(super) fn add(&self, loss: Loss) {
        self.0[loss as usize].fetch_add(1, Ordering::Relaxed);
    }
}
