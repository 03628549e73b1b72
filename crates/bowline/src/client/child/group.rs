//! A process and all its descendants: a process group on Unix, a job object on Windows.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::time::Duration;

use tokio::process::{Child, Command};

#[cfg(unix)]
use self::unix as system;
#[cfg(windows)]
use self::windows as system;

/// A process with its descendants.
///
/// For applications that start programs themselves: killing a program alone leaves its children
/// behind. Call [`lead`](Self::lead) before the start and [`of`](Self::of) right after it. Dropping
/// this does not end the group.
///
/// On Unix this is a process group, which descendants may leave. On Windows it is a job object,
/// which they cannot leave, and which ends with this process, however it ends. A descendant that a
/// program on Windows starts before `of` has returned is not part of it.
#[derive(Debug)]
pub struct ProcessGroup(system::Group);

/// How often to check whether a group is gone. Only its leader can be waited for.
const LOOK: Duration = Duration::from_millis(20);

impl ProcessGroup {
    /// Makes the command start as the leader of a group of its own, so that Ctrl-C in a terminal
    /// does not reach it. On Windows it also starts without a console window.
    pub fn lead(command: &mut Command) {
        system::lead(command);
    }

    /// The group of a child that was started as the leader of one.
    pub fn of(child: &Child) -> Self {
        Self(system::Group::of(child))
    }

    /// The id of the group, which is that of its leader. Windows has none.
    pub fn id(&self) -> Option<i32> {
        self.0.id()
    }

    /// Whether any process is left. On Unix, a zombie counts.
    pub fn is_alive(&self) -> bool {
        self.0.is_alive()
    }

    /// Asks all processes to terminate (TERM). Windows cannot ask, so this kills them there.
    pub fn terminate(&self) {
        self.0.terminate();
    }

    /// Kills all processes (KILL).
    pub fn kill(&self) {
        self.0.kill();
    }

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
