//! The word `tasks`: lists, shows, resumes and cancels them.

use std::time::Duration;

use super::super::link::Event;
use super::super::statement::first_word;
use super::run::{Done, fetched};
use super::{Show, Talk};
use crate::commands::list::TASKS;
use crate::commands::tasks::{cancel, check_listed, check_offered, look};
use crate::failure::Failure;
use crate::session::task_words;
use crate::text::line;

impl Talk {
    /// Runs `tasks`, `tasks ID`, `tasks resume ID` and the like.
    pub(super) fn tasks(&mut self, rest: &str) -> Result<Done, String> {
        let client = self.client()?;
        let told = |failure: Failure| match failure.remedy {
            Some(remedy) => format!("{}; {remedy}", failure.what),
            None => failure.what,
        };
        let (word, id) = first_word(rest);
        if id.is_empty() && matches!(word, "" | "list") {
            check_listed(&client).map_err(told)?;
            let show = Show::List(&TASKS, String::new());
            return Ok(self.start("tasks", show, fetched(client, &TASKS)));
        }
        check_offered(&client).map_err(told)?;
        let (word, id) = if id.is_empty() { ("show", word) } else { (word, id) };
        let id = id.to_owned();
        match word {
            "show" => Ok(self.start("tasks", Show::Task, async move { look(&client, &id).await })),
            "cancel" => Ok(self.start("tasks", Show::Task, cancel(client, id))),
            // Whoever waits here can answer.
            "wait" | "resume" => {
                let (events, job) = (self.link.events.clone(), self.last_job + 1);
                let task = client.resume_task(&id).timeout(Duration::MAX).on_status(move |state| {
                    let _ = events.try_send(Event::Progress(job, line(&task_words(state))));
                });
                let waiting = async move { task.wait_json().await };
                Ok(self.start(format!("task {id}"), Show::Tool(String::new()), waiting))
            }
            _ => {
                let word = line(word);
                Err(format!("tasks: expected show, wait, resume or cancel, got {word:?}"))
            }
        }
    }
}
