//! Process groups.

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::{Child, Command};

#[derive(Debug)]
pub(super) struct Group {
    id: Option<Pid>,
}

pub(super) fn lead(command: &mut Command) {
    command.process_group(0);
}

impl Group {
    pub(super) fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self { id: id.and_then(Pid::from_raw) }
    }

    pub(super) fn id(&self) -> Option<i32> {
        self.id.map(|id| id.as_raw_nonzero().get())
    }

    pub(super) fn is_alive(&self) -> bool {
        self.id.is_some_and(|id| test_kill_process_group(id).is_ok())
    }

    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        if let Some(id) = self.id {
            // No process left to signal is the desired outcome.
            let _ = kill_process_group(id, signal);
        }
    }
}
