//! A process and all its descendants, as far as they did not leave its group.

use std::time::Duration;

use tokio::process::Child;

/// The group that a child leads.
#[derive(Debug)]
pub(super) struct Group {
    #[cfg(unix)]
    id: Option<rustix::process::Pid>,
}

/// How often to look whether a group is gone. Only the leader can be waited for.
const LOOK: Duration = Duration::from_millis(20);

#[cfg(unix)]
impl Group {
    /// The group of a child that was started as the leader of one.
    pub(super) fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self { id: id.and_then(rustix::process::Pid::from_raw) }
    }

    /// Whether anybody is left. One that is dead and not yet reaped by its parent counts.
    pub(super) fn is_alive(&self) -> bool {
        self.id.is_some_and(|id| rustix::process::test_kill_process_group(id).is_ok())
    }

    pub(super) fn terminate(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    pub(super) fn kill(&self) {
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
impl Group {
    /// Other systems have no groups; the child alone is ended, when it is dropped.
    pub(super) fn of(_: &Child) -> Self {
        Self {}
    }

    #[expect(clippy::unused_self, reason = "the same on every system")]
    pub(super) fn is_alive(&self) -> bool {
        false
    }

    #[expect(clippy::unused_self, reason = "the same on every system")]
    pub(super) fn terminate(&self) {}

    #[expect(clippy::unused_self, reason = "the same on every system")]
    pub(super) fn kill(&self) {}
}

impl Group {
    /// Waits until nobody is left.
    pub(super) async fn gone(&self) {
        while self.is_alive() {
            tokio::time::sleep(LOOK).await;
        }
    }
}
