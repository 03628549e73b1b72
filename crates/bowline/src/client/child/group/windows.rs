//! Job objects.
//!
//! A job ends its processes when its last handle is closed: so do [`Group::kill`] and the system,
//! when this process dies.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::process::{Child, Command};
use win32job::{ExtendedLimitInfo, Job};

/// `CREATE_NEW_PROCESS_GROUP`: Ctrl-C does not reach the child.
const NEW_PROCESS_GROUP: u32 = 0x0000_0200;
/// `CREATE_NO_WINDOW`: no console window appears when a desktop application starts a server.
const NO_WINDOW: u32 = 0x0800_0000;

pub(super) struct Group {
    /// `None` once it is killed, or if there could not be one.
    job: Mutex<Option<Job>>,
}

pub(super) fn lead(command: &mut Command) {
    command.creation_flags(NEW_PROCESS_GROUP | NO_WINDOW);
}

impl Group {
    /// A child that has ended already, or that this process may not put into a job, has no group;
    /// it is still killed when it is dropped.
    pub(super) fn of(child: &Child) -> Self {
        let mut limits = ExtendedLimitInfo::new();
        limits.limit_kill_on_job_close();
        let job = child.raw_handle().and_then(|process| {
            let job = Job::create_with_limit_info(&limits).ok()?;
            job.assign_process(process as isize).ok()?;
            Some(job)
        });
        Self { job: Mutex::new(job) }
    }

    #[expect(clippy::unused_self, reason = "the same on every system")]
    pub(super) fn id(&self) -> Option<i32> {
        None
    }

    pub(super) fn is_alive(&self) -> bool {
        let job = self.lock();
        let processes = job.as_ref().map(Job::query_process_id_list);
        // The list fails when it is too long for its buffer.
        processes.is_some_and(|list| list.map_or(true, |list| !list.is_empty()))
    }

    pub(super) fn terminate(&self) {
        self.kill();
    }

    pub(super) fn kill(&self) {
        drop(self.lock().take());
    }

    fn lock(&self) -> MutexGuard<'_, Option<Job>> {
        self.job.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Whoever drops a group lets its processes live.
        if let Some(job) = self.lock().take() {
            let _ = job.set_extended_limit_info(&ExtendedLimitInfo::new());
        }
    }
}

impl std::fmt::Debug for Group {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Group").finish_non_exhaustive()
    }
}
