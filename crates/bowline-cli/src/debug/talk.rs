//! A session, typed or piped: the connection, what is running, what was said.

mod run;
mod set;
mod status;
mod tasks;

use std::collections::BTreeMap;
use std::time::Duration;

use bowline::client::{CallError, JsonCall, Notification, Wanted};
use bowline::model::CompleteResult;
use bowline::{Client, Json};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::Instant;

pub(crate) use self::run::Done;
use super::complete::{Catalog, Offer, Source};
use super::dialog::Question;
use super::link::{Event, Link};
use crate::commands::list::List;
use crate::failure::Failure;
use crate::screen::{Style, progress_words};
use crate::session::task_words;
use crate::text::{cut, line};

/// How long Tab waits for the server.
const COMPLETION: Duration = Duration::from_secs(5);

/// A session.
pub(crate) struct Talk {
    pub(crate) link: Link,
    pub(crate) catalog: Catalog,
    /// What is running. A job that was cancelled is no longer here.
    pub(crate) jobs: BTreeMap<u64, Job>,
    last_job: u64,
    /// Whether the line that runs now did not end in `&`.
    waits: bool,
    subscriptions: BTreeMap<String, AbortHandle>,
    /// Receives the notifications about changed lists.
    listening: Option<AbortHandle>,
}

/// Something that is running.
pub(crate) struct Job {
    pub(crate) title: String,
    pub(crate) show: Show,
    /// Whether the prompt, or the next line of a script, waits for it.
    pub(crate) waits: bool,
    since: Instant,
    task: AbortHandle,
}

impl Job {
    pub(crate) fn age(&self) -> Duration {
        self.since.elapsed()
    }
}

/// How a result is shown.
pub(crate) enum Show {
    /// The result of this tool.
    Tool(String),
    /// The items of a list with this text in their names or descriptions.
    List(&'static List, String),
    /// Everything about this tool.
    Described(String),
    /// The messages of a prompt.
    Prompt,
    /// The contents of a resource.
    Contents,
    /// Suggested values.
    Values,
    /// How long it took.
    Pong,
    /// A task, as `tasks/get` returns it.
    Task,
    Json,
    /// A response under the id of the request that the user wrote.
    Message(Json),
    /// That it was done, in words.
    Text(String),
}

impl Talk {
    /// A session that is not connected yet.
    pub(crate) fn new(link: Link) -> Self {
        Self {
            link,
            catalog: Catalog::default(),
            jobs: BTreeMap::new(),
            last_job: 0,
            waits: true,
            subscriptions: BTreeMap::new(),
            listening: None,
        }
    }

    /// Connects, or reconnects.
    ///
    /// # Errors
    /// When there is no connection.
    pub(crate) async fn open(&mut self) -> Result<(), Failure> {
        self.cancel_all();
        self.link.log().forget_questions();
        self.catalog = Catalog::default();
        for (_, task) in std::mem::take(&mut self.subscriptions) {
            task.abort();
        }
        self.link.open().await
    }

    /// Lists what the server has. After `patience` the lists come as an event.
    pub(crate) async fn learn(&mut self, patience: Duration) {
        let Some(listing) = self.list_everything() else { return };
        if let Ok(Ok(catalog)) = tokio::time::timeout(patience, listing).await {
            self.catalog = catalog;
        }
    }

    /// Lists everything that the server has, which comes as an event. A list that it does not
    /// offer, or that fails, is empty.
    fn list_everything(&self) -> Option<JoinHandle<Catalog>> {
        let (client, events) = (self.link.client()?.clone(), self.link.events.clone());
        Some(tokio::spawn(async move {
            let resources = client.list_resources().await.unwrap_or_default();
            let templates = client.list_resource_templates().await.unwrap_or_default();
            let catalog = Catalog {
                tools: client.list_tools().await.unwrap_or_default(),
                prompts: client.list_prompts().await.unwrap_or_default(),
                resources: resources.into_iter().map(|resource| resource.uri).collect(),
                templates: templates.into_iter().map(|template| template.uri_template).collect(),
            };
            let _ = events.send(Event::Catalog(Box::new(catalog.clone()))).await;
            catalog
        }))
    }

    pub(crate) async fn close(&mut self) {
        self.cancel_all();
        self.link.close().await;
    }

    /// Subscribes to changes of lists, where the server offers that.
    pub(crate) fn listen(&mut self) {
        let Some(client) = self.link.client().cloned() else { return };
        let task = tokio::spawn(async move {
            // Changes are shown as the notifications that announce them.
            let Ok(mut changes) = client.changes(Wanted::all_lists()).await else { return };
            while let Some(Ok(_)) = changes.next().await {}
        });
        if let Some(before) = self.listening.replace(task.abort_handle()) {
            before.abort();
        }
    }

    /// Takes in what happened. Returns what is left to show or to do.
    pub(crate) fn absorb(&mut self, event: Event) -> Option<Event> {
        if let Some(text) = self.link.missed() {
            self.link.settings.screen.warn(&text);
        }
        match event {
            Event::Catalog(catalog) => self.catalog = *catalog,
            Event::Subscribed(uri, task) => {
                if let Some(before) = self.subscriptions.insert(uri, task) {
                    before.abort();
                }
            }
            Event::Notified(notification) => return Some(Event::Say(self.notified(&notification))),
            other => return Some(other),
        }
        None
    }

    /// A notification on one line.
    fn notified(&mut self, notification: &Notification) -> String {
        let method = &*notification.method;
        if method.ends_with("/list_changed") {
            if self.link.asks {
                // Tab must know what there is; a script asks when it needs to.
                self.list_everything();
            } else {
                self.catalog = Catalog::default();
            }
        }
        let mut params = notification.params.to_value();
        if let Some(members) = params.as_object_mut() {
            members.remove("_meta");
        }
        let is_empty = params.as_object().is_some_and(serde_json::Map::is_empty);
        let params = if is_empty { String::new() } else { params.to_string() };
        let word = self.link.settings.screen.err.paint(Style::Dim, "notice │");
        format!("{word} {}\n", cut(&line(&format!("{method} {params}")), 200))
    }

    /// Finds the request that a question came in.
    pub(crate) fn identify(&mut self, question: &mut Question) {
        question.id = self.link.log().identify(question.asked.method());
    }

    /// Starts something that ends with a result.
    fn start(
        &mut self,
        title: impl Into<String>,
        show: Show,
        running: impl Future<Output = Result<Json, CallError>> + Send + 'static,
    ) -> Done {
        self.last_job += 1;
        let job = self.last_job;
        let (events, since) = (self.link.events.clone(), Instant::now());
        let task = tokio::spawn(async move {
            let outcome = running.await;
            let _ = events.send(Event::Ended { job, outcome, took: since.elapsed() }).await;
        });
        let (title, waits, task) = (title.into(), self.waits, task.abort_handle());
        self.jobs.insert(job, Job { title, show, waits, since, task });
        Done::Started(vec![job])
    }

    /// Starts something that ends without a result, but with words.
    fn start_silent(
        &mut self,
        title: &str,
        told: String,
        running: impl Future<Output = Result<(), CallError>> + Send + 'static,
    ) -> Done {
        let running = async move { running.await.map(|()| Json::empty_object()) };
        self.start(title, Show::Text(told), running)
    }

    /// Starts a call whose questions are answered, and whose progress is shown.
    fn call(
        &mut self,
        title: &str,
        show: Show,
        method: &str,
        params: Json,
    ) -> Result<Done, String> {
        let (events, job) = (self.link.events.clone(), self.last_job + 1);
        let call = self.prepare(method, params)?.on_progress(move |progress| {
            let message = line(progress.message.as_deref().unwrap_or_default());
            let text = progress_words(progress.progress, progress.total, &message);
            let _ = events.try_send(Event::Progress(job, text));
        });
        let events = self.link.events.clone();
        let call = call.on_status(move |state| {
            let text = line(&format!("task {}: {}", state.id, task_words(state)));
            let _ = events.try_send(Event::Progress(job, text));
        });
        Ok(self.start(title, show, async move { call.await }))
    }

    fn prepare(&self, method: &str, params: Json) -> Result<JsonCall, String> {
        let idle = self.link.settings.timeouts.idle;
        Ok(self.client()?.call_json(method, params).idle_timeout(idle))
    }

    fn client(&self) -> Result<Client, String> {
        let client = self.link.client().cloned();
        client.ok_or_else(|| "there is no connection; `restart` makes one".to_owned())
    }

    /// The jobs that the prompt waits for.
    pub(crate) fn foreground(&self) -> Vec<u64> {
        self.jobs.iter().filter(|(_, job)| job.waits).map(|(number, _)| *number).collect()
    }

    /// Cancels a job; the server is told.
    pub(crate) fn cancel(&mut self, job: u64) -> Option<Job> {
        let job = self.jobs.remove(&job)?;
        job.task.abort();
        Some(job)
    }

    fn cancel_all(&mut self) -> usize {
        let all: Vec<u64> = self.jobs.keys().copied().collect();
        all.into_iter().filter_map(|job| self.cancel(job)).count()
    }

    /// Finds candidates for a line; those of the server come as an event.
    pub(crate) fn complete(&self, typed: &str, offer: Offer) -> Option<(usize, Vec<String>)> {
        let (params, prefix) = match offer.source {
            Source::Known(candidates) => return Some((offer.start, candidates)),
            Source::Server { params, prefix } => (params, prefix),
        };
        let call = self.prepare("completion/complete", params.into()).ok()?.timeout(COMPLETION);
        let (events, line, start) = (self.link.events.clone(), typed.to_owned(), offer.start);
        tokio::spawn(async move {
            let found = call.await.map_err(|error| error.to_string());
            let candidates = found.map(|result| {
                let found = result.parse::<CompleteResult>().unwrap_or_default();
                let values = found.completion.values.into_iter();
                values.map(|value| format!("{prefix}{value}")).collect()
            });
            let _ = events.send(Event::Completed { line, start, candidates }).await;
        });
        None
    }
}
