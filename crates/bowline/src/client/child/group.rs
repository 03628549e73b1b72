//! A process and all its descendants, as far as they did not leave its group.

use std::time::Duration;

use tokio::process::Child;

/// A process that leads a group, and all its descendants that stayed in it.
///
/// For those who start programs themselves, in a group of their own (`process_group(0)`): ending
/// the program alone leaves behind what it started. It is not ended when this is dropped.
#[derive(Debug)]
pub struct ProcessGroup {
    #[cfg(unix)]
    id: Option<rustix::process::Pid>,
}

/// How often to look whether a group is gone. Only the leader can be waited for.
const LOOK: Duration = Duration::from_millis(20);

#[cfg(unix)]
impl ProcessGroup {
    /// The group of a child that was started as the leader of one.
    pub fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self { id: id.and_then(rustix::process::Pid::from_raw) }
    }

    /// The number of the group, which is its leader's.
    pub fn id(&self) -> Option<i32> {
        self.id.map(|id| id.as_raw_nonzero().get())
    }

    /// Whether anybody is left. One that is dead and not yet reaped by its parent counts.
    pub fn is_alive(&self) -> bool {
        self.id.is_some_and(|id| rustix::process::test_kill_process_group(id).is_ok())
    }

    /// Asks all of them to end.
    pub fn terminate(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    /// Ends all of them.
    pub fn kill(&self) {
        self.signal(rustix::process::Signal::KILL);
    }

    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(id) = self.id {
            // Nobody left to be told is what was wanted.
            let _ = rustix::process::kill_process_group(id, signal);
        }
    }
}

#[cfg(not(unix))]
impl ProcessGroup {
    /// Other systems have no groups; the child alone is ended, when it is dropped.
    pub fn of(_: &Child) -> Self {
        Self {}
    }

    /// The number of the group: none.
    #[expect(clippy::unused_self, reason = "the same on every system")]
    pub fn id(&self) -> Option<i32> {
        None
    }

    /// Whether anybody is left, as far as it can be told.
    #[expect(clippy::unused_self, reason = "the same on every system")]
    pub fn is_alive(&self) -> bool {
        false
    }

    /// Asks nobody.
    #[expect(clippy::unused_self, reason = "the same on every system")]
    pub fn terminate(&self) {}

    /// Ends nobody.
    #[expect(clippy::unused_self, reason = "the same on every system")]
    pub fn kill(&self) {}
}

impl ProcessGroup {
    /// Waits until nobody is left.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn gone(&self) {
        while self.is_alive() {
            tokio::time::sleep(LOOK).await;
        }
    }
}
