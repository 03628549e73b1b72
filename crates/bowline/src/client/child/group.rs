//! A process and all descendants that stayed in its group.

use std::time::Duration;

use tokio::process::Child;

/// A process that leads a group, with all descendants that stayed in it.
///
/// For applications that start programs themselves, in a new group (`process_group(0)`): killing
/// the program alone leaves its children behind. Dropping this does not end the group.
#[derive(Debug)]
pub struct ProcessGroup {
    #[cfg(unix)]
    id: Option<rustix::process::Pid>,
}

/// How often to check whether a group is gone. Only its leader can be waited for.
const LOOK: Duration = Duration::from_millis(20);

#[cfg(unix)]
impl ProcessGroup {
    /// The group of a child that was started as the leader of one.
    pub fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self { id: id.and_then(rustix::process::Pid::from_raw) }
    }

    /// The id of the group, which is that of its leader.
    pub fn id(&self) -> Option<i32> {
        self.id.map(|id| id.as_raw_nonzero().get())
    }

    /// Whether any process is left. A zombie counts.
    pub fn is_alive(&self) -> bool {
        self.id.is_some_and(|id| rustix::process::test_kill_process_group(id).is_ok())
    }

    /// Asks all processes to terminate (TERM).
    pub fn terminate(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    /// Kills all processes (KILL).
    pub fn kill(&self) {
        self.signal(rustix::process::Signal::KILL);
    }

    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(id) = self.id {
            // No process left to signal is the desired outcome.
            let _ = rustix::process::kill_process_group(id, signal);
        }
    }
}

#[cfg(not(unix))]
impl ProcessGroup {
    /// Other systems have no groups; only the child is killed, when it is dropped.
    pub fn of(_: &Child) -> Self {
        Self {}
    }

    /// The id of the group: none.
    #[expect(clippy::unused_self, reason = "the same on every system")]
    pub fn id(&self) -> Option<i32> {
        None
    }

    /// Whether any process is left, as far as is known.
    #[expect(clippy::unused_self, reason = "the same on every system")]
    pub fn is_alive(&self) -> bool {
        false
    }

    /// Does nothing.
    #[expect(clippy::unused_self, reason = "the same on every system")]
    pub fn terminate(&self) {}

    /// Does nothing.
    #[expect(clippy::unused_self, reason = "the same on every system")]
    pub fn kill(&self) {}
}

impl ProcessGroup {
    /// Waits until no process is left.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn gone(&self) {
        while self.is_alive() {
            tokio::time::sleep(LOOK).await;
        }
    }
}
