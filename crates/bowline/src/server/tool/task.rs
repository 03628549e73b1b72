//! How long calls of a tool may take: the deadline, and tasks.

use std::time::Duration;

use bowline_proto::model::{TaskSupport, ToolExecution};

use super::Tool;
#[cfg(doc)]
use crate::Context;
use crate::TaskMode;

impl Tool {
    /// Sets how long one call may run, instead of [`Limits::deadline`](crate::Limits::deadline).
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Lets calls go on as [tasks](crate::tasks), for clients that can use them.
    pub fn task(mut self, mode: TaskMode) -> Self {
        let task_support = Some(match mode {
            TaskMode::Required => TaskSupport::Required,
            _ => TaskSupport::Optional,
        });
        self.definition.execution = Some(ToolExecution { task_support });
        self.task = Some(mode);
        self
    }

    /// Lets a [task](crate::tasks) that was running when its server ended run again from the top,
    /// with its recorded answers and the values of [`Context::once`]. Its work must be safe to
    /// repeat; without this, such a task has failed.
    pub fn rerun(mut self) -> Self {
        self.reruns = true;
        self
    }
}
