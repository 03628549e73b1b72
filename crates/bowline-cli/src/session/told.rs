//! What a person is told while a task runs.

use bowline::client::TaskState;
use bowline::model::TaskStatus;

use crate::screen::{Screen, Style};

/// What a person has been told about a task.
#[derive(Default)]
pub(crate) struct TaskTold(Option<String>);

impl TaskTold {
    /// Says what a task does, if that is news.
    pub(crate) fn tell(&mut self, screen: &Screen, state: &TaskState) {
        let text = task_words(state);
        if self.0.as_ref() == Some(&text) {
            return;
        }
        // The id once is enough.
        match self.0.is_none() {
            true => screen.aside("task", Style::Dim, &format!("{} {text}", state.id)),
            false => screen.aside("task", Style::Dim, &text),
        }
        self.0 = Some(text);
    }
}

/// What a task does, in words.
pub(crate) fn task_words(state: &TaskState) -> String {
    let status = match state.status {
        TaskStatus::Working => "working",
        TaskStatus::InputRequired => "waiting for an answer",
        TaskStatus::Completed => "completed",
        TaskStatus::Failed => "failed",
        TaskStatus::Cancelled => "cancelled",
    };
    match &state.message {
        Some(message) => format!("{status}: {message}"),
        None => status.to_owned(),
    }
}
