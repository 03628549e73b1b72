//! A session, however it is led: the connection, what is running, what was said.

mod run;
mod set;
mod status;

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::time::Duration;

use bowline::client::{CallError, Wanted};
use bowline::model::ProgressParams;
use bowline::{Client, Json};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::Instant;

pub(crate) use self::run::Done;
pub(crate) use self::status::seconds;
use super::complete::{Catalog, Of, Offer, Source};
use super::event::Event;
use super::journal::{From, Journal};
use super::link::Link;
use super::question::{Policy, Question};
use crate::failure::Failure;
use crate::text::line;

/// Requests of the server whose questions have not come up yet: 64.
const MOST_UNMATCHED: usize = 64;

/// How long Tab waits for the server.
const COMPLETION: Duration = Duration::from_secs(5);

/// A session.
pub(crate) struct Talk {
    pub(crate) link: Link,
    pub(crate) journal: Journal,
    pub(crate) catalog: Catalog,
    pub(crate) policy: Policy,
    events: mpsc::Sender<Event>,
    jobs: BTreeMap<u64, Job>,
    last_job: u64,
    idle: Option<Duration>,
    roots: Vec<String>,
    began: Instant,
    /// Requests of the server, method and id, until their questions come up.
    unmatched: VecDeque<(String, Value)>,
    subscriptions: BTreeMap<String, AbortHandle>,
    /// Hears of changed lists.
    listening: Option<AbortHandle>,
}

/// Something that is running.
pub(crate) struct Job {
    /// What it is, for people.
    pub(crate) title: String,
    /// How its result is shown.
    pub(crate) show: Show,
    since: Instant,
    task: AbortHandle,
}

impl Job {
    /// How long it has been running.
    pub(crate) fn age(&self) -> Duration {
        self.since.elapsed()
    }
}

/// How a result is shown.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Show {
    /// The result of a tool, by name.
    Tool(String),
    /// Tools, as a list, with what their names or descriptions must hold.
    Tools(String),
    /// One tool, with everything.
    Described(String),
    /// Prompts, as a list.
    Prompts,
    /// Messages of a prompt.
    Prompt,
    /// Resources, as a list.
    Resources,
    /// Templates, as a list.
    Templates,
    /// The contents of a resource.
    Contents,
    /// How long it took.
    Pong,
    /// Any result.
    Json,
    /// The answer to a message, under the id that its author gave it.
    Message(Json),
    /// That it was done, in words.
    Text(String),
}

/// Something that ends with a result.
type Running = Pin<Box<dyn Future<Output = Result<Json, CallError>> + Send>>;

impl Talk {
    /// A session that is not connected yet.
    pub(crate) fn new(link: Link, events: mpsc::Sender<Event>, roots: Vec<String>) -> Self {
        Self {
            link,
            journal: Journal::default(),
            catalog: Catalog::default(),
            policy: Policy::Ask,
            events,
            jobs: BTreeMap::new(),
            last_job: 0,
            idle: None,
            roots,
            began: Instant::now(),
            unmatched: VecDeque::new(),
            subscriptions: BTreeMap::new(),
            listening: None,
        }
    }

    /// Connects, or connects anew.
    ///
    /// # Errors
    /// When there is no connection.
    pub(crate) async fn open(&mut self) -> Result<(), Failure> {
        self.cancel_all();
        self.unmatched.clear();
        for (_, task) in std::mem::take(&mut self.subscriptions) {
            task.abort();
        }
        self.link.open(&self.roots).await?;
        Ok(())
    }

    /// Finds out what the server has, and waits for it; but not long.
    pub(crate) async fn learn(&mut self, patience: Duration) {
        let Some(client) = self.link.client().cloned() else { return };
        let mut asking = tokio::spawn(async move { catalog(&client).await });
        match tokio::time::timeout(patience, &mut asking).await {
            Ok(catalog) => self.catalog = catalog.unwrap_or_default(),
            Err(_) => {
                let events = self.events.clone();
                tokio::spawn(async move {
                    let Ok(catalog) = asking.await else { return };
                    let _ = events.send(Event::Catalog(Box::new(catalog))).await;
                });
            }
        }
    }

    /// Ends everything.
    pub(crate) async fn close(&mut self) {
        self.cancel_all();
        self.link.close().await;
    }

    /// Asks to be told when lists change, where the server offers to.
    pub(crate) fn listen(&mut self) {
        let Some(client) = self.link.client().cloned() else { return };
        if let Some(before) = self.listening.take() {
            before.abort();
        }
        let task = tokio::spawn(async move {
            // What changed is shown as the notification that told of it.
            let Ok(mut changes) = client.changes(Wanted::lists()).await else { return };
            while let Some(Ok(_)) = changes.next().await {}
        });
        self.listening = Some(task.abort_handle());
    }

    /// Finds out what the server has, for completion and for schemas.
    pub(crate) fn refresh(&self) {
        let Some(client) = self.link.client().cloned() else { return };
        let events = self.events.clone();
        tokio::spawn(async move {
            let catalog = Box::new(catalog(&client).await);
            let _ = events.send(Event::Catalog(catalog)).await;
        });
    }

    /// Writes down what was said.
    pub(crate) fn note(&mut self, from: From, text: &str) {
        let entry = self.journal.add(self.began.elapsed(), from, text);
        if from == From::Server
            && entry.is_request()
            && let Ok(mut request) = serde_json::from_str::<Value>(text)
        {
            let (method, id) = (request["method"].take(), request["id"].take());
            let method = method.as_str().unwrap_or_default().to_owned();
            self.unmatched.push_back((method, id));
            if self.unmatched.len() > MOST_UNMATCHED {
                self.unmatched.pop_front();
            }
        }
    }

    /// Finds the request that a question came in.
    pub(crate) fn identify(&mut self, question: &mut Question) {
        let wanted = question.asked.method();
        let place = self.unmatched.iter().position(|(method, _)| method == wanted);
        question.id = place.and_then(|place| self.unmatched.remove(place)).map(|(_, id)| id);
    }

    /// Starts something.
    fn start(&mut self, title: impl Into<String>, show: Show, running: Running) -> u64 {
        self.last_job += 1;
        let job = self.last_job;
        let (events, since) = (self.events.clone(), Instant::now());
        let task = tokio::spawn(async move {
            let outcome = running.await;
            let _ = events.send(Event::Ended { job, outcome, took: since.elapsed() }).await;
        });
        let (title, task) = (title.into(), task.abort_handle());
        self.jobs.insert(job, Job { title, show, since, task });
        job
    }

    /// Starts a call whose questions are answered, and whose progress is shown.
    fn call(&mut self, title: String, show: Show, method: &str, params: Json) -> Done {
        let Some(client) = self.link.client() else { return Done::Failed(NOT_CONNECTED.into()) };
        let (events, job) = (self.events.clone(), self.last_job + 1);
        let mut call = client.call_json(method, params).on_progress(move |progress| {
            let _ = events.try_send(Event::Progress(job, told(&progress)));
        });
        if let Some(idle) = self.idle {
            call = call.idle_timeout(idle);
        }
        Done::Started(vec![self.start(title, show, Box::pin(async move { call.await }))])
    }

    /// What is over: how it is to be shown. `None` if nobody waits for it any more.
    pub(crate) fn end(&mut self, job: u64) -> Option<Job> {
        self.jobs.remove(&job)
    }

    /// What is running under a number.
    pub(crate) fn job(&self, job: u64) -> Option<&Job> {
        self.jobs.get(&job)
    }

    /// Takes something back; the server is told.
    pub(crate) fn cancel(&mut self, job: u64) -> Option<Job> {
        let job = self.jobs.remove(&job)?;
        job.task.abort();
        Some(job)
    }

    fn cancel_all(&mut self) -> usize {
        let all: Vec<u64> = self.jobs.keys().copied().collect();
        all.into_iter().filter_map(|job| self.cancel(job)).count()
    }

    /// Hears of the changes of a resource.
    pub(crate) fn subscribed(&mut self, uri: String, task: AbortHandle) {
        if let Some(before) = self.subscriptions.insert(uri, task) {
            before.abort();
        }
    }

    /// Finds candidates for a line; those of the server come as an event.
    pub(crate) fn complete(&self, typed: &str, offer: Offer) -> Option<(usize, Vec<String>)> {
        let question = match offer.source {
            Source::Known(candidates) => return Some((offer.start, candidates)),
            Source::Server(question) => question,
        };
        let client = self.link.client()?.clone();
        let (events, typed, start) = (self.events.clone(), typed.to_owned(), offer.start);
        tokio::spawn(async move {
            let argument = (question.argument.as_str(), question.value.as_str());
            let others =
                question.others.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            let others: Vec<_> = others.collect();
            let call = match question.of {
                Of::Prompt(name) => client.complete_prompt(name, argument, &others),
                Of::Template(uri) => client.complete_template(uri, argument, &others),
            };
            let found = call.timeout(COMPLETION).await.map_err(|error| error.to_string());
            let candidates = found.map(|found| {
                let values = found.completion.values.into_iter();
                values.map(|value| format!("{}{value}", question.prefix)).collect()
            });
            let event = Event::Completed { line: typed, start, candidates };
            let _ = events.send(event).await;
        });
        None
    }
}

/// What is said where there is no connection.
const NOT_CONNECTED: &str = "there is no connection; `restart` makes one";

/// Everything that a server has. What it does not offer, or fails to tell, is empty.
async fn catalog(client: &Client) -> Catalog {
    let mut catalog = Catalog::default();
    for tool in client.list_tools().await.unwrap_or_default() {
        if let Some(output) = &tool.output_schema {
            catalog.promises.insert(tool.name.clone(), output.to_value());
        }
        catalog.tools.push((tool.name, tool.input_schema.to_value()));
    }
    for prompt in client.list_prompts().await.unwrap_or_default() {
        let arguments = prompt.arguments.unwrap_or_default();
        let names = arguments.into_iter().map(|argument| argument.name).collect();
        catalog.prompts.push((prompt.name, names));
    }
    let resources = client.list_resources().await.unwrap_or_default();
    catalog.resources = resources.into_iter().map(|resource| resource.uri).collect();
    let templates = client.list_resource_templates().await.unwrap_or_default();
    catalog.templates = templates.into_iter().map(|template| template.uri_template).collect();
    catalog
}

/// How far a call is, for people.
fn told(progress: &ProgressParams) -> String {
    let done = progress.progress;
    let total = progress.total.map(|total| format!("/{total}")).unwrap_or_default();
    let message = progress.message.as_deref().unwrap_or_default();
    line(&format!("{done}{total} {message}"))
}
