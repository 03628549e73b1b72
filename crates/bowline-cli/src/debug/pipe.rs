//! A session through a pipe: lines from standard input, responses to standard output, one per line.
//! Everything else goes to standard error, and the exit code is that of the first failure.

use std::collections::HashMap;
use std::io::BufRead;
use std::sync::Arc;
use std::time::Duration;

use bowline::client::CallError;
use bowline::{ErrorCode, ErrorObject, Json};
use serde_json::Value;
use tokio::sync::mpsc;

use super::link::Event;
use super::show;
use super::statement::{self, Action, Lines, Statement, first_word};
use super::talk::{Done, Show, Talk};
use crate::failure::{Code, Failure};
use crate::schema::unquoted;
use crate::screen::Screen;
use crate::session::interrupted;
use crate::text::line;

/// Lines that wait to be handled: 64.
const MOST_LINES: usize = 64;

/// How long the call of a tool that is not known yet waits for the list of tools.
const LISTS: Duration = Duration::from_secs(10);

/// A session through a pipe.
pub(crate) struct Pipe {
    talk: Talk,
    events: mpsc::Receiver<Event>,
    screen: Arc<Screen>,
    /// How many requests may run at a time.
    jobs: usize,
    /// The ids for the responses of running calls.
    running: HashMap<u64, Json>,
    failed: Option<Code>,
}

impl Pipe {
    pub(crate) fn new(talk: Talk, events: mpsc::Receiver<Event>, jobs: usize) -> Self {
        let screen = Arc::clone(&talk.link.settings.screen);
        let (jobs, running) = (jobs.max(1), HashMap::new());
        Self { talk, events, screen, jobs, running, failed: None }
    }

    /// Runs until the input ends and every request has its response.
    ///
    /// # Errors
    /// When there is no connection, or anything failed.
    pub(crate) async fn run(mut self) -> Result<(), Failure> {
        let outcome = tokio::select! {
            outcome = self.work() => outcome,
            stopped = interrupted() => Err(stopped),
        };
        self.talk.close().await;
        self.screen.finish()?;
        outcome?;
        match self.failed {
            Some(code) => Err(Failure::silent(code)),
            None => Ok(()),
        }
    }

    async fn work(&mut self) -> Result<(), Failure> {
        self.talk.open().await?;
        let (mut input, mut lines) = (input(), Lines::default());
        let (mut number, mut first) = (0_u64, 1_u64);
        loop {
            let line = tokio::select! {
                line = input.recv() => line,
                Some(event) = self.events.recv() => {
                    self.handle_event(event);
                    continue;
                }
            };
            number += 1;
            if lines.is_empty() {
                first = number;
            }
            let text = match &line {
                Some(line) => lines.add(line),
                None => Some(lines.take()),
            };
            let goes_on = match text {
                Some(text) => self.take(first, &text).await && !self.screen.is_lost(),
                None => true,
            };
            if !goes_on || line.is_none() {
                break;
            }
        }
        self.wait(|pipe| pipe.running.is_empty()).await;
        Ok(())
    }

    /// Handles events until something is true.
    async fn wait(&mut self, is_true: impl Fn(&Self) -> bool) {
        while !is_true(self) {
            let Some(event) = self.events.recv().await else { return };
            self.handle_event(event);
        }
    }

    /// Runs a line; false if it is the last.
    async fn take(&mut self, number: u64, text: &str) -> bool {
        let id = Json::from(&Value::from(format!("line {number}")));
        self.wait(|pipe| pipe.talk.foreground().len() < pipe.jobs).await;
        let statement = match statement::parse(text) {
            Ok(statement) => statement,
            Err(problem) => {
                self.refuse(&id, ErrorCode::PARSE_ERROR, &problem);
                return true;
            }
        };
        // What was said so far must be in the log before a line looks there.
        while let Ok(event) = self.events.try_recv() {
            self.handle_event(event);
        }
        // The tool may have come since the tools were listed.
        if needed_tool(&statement).is_some_and(|name| self.talk.catalog.tool(name).is_none()) {
            self.talk.learn(LISTS).await;
        }
        match self.talk.run(statement) {
            Ok(Done::Nothing | Done::Clear) => {}
            Ok(Done::Said(said)) => self.screen.say(&format!("{}\n", said.trim_end())),
            Ok(Done::Started(jobs)) => self.started(&jobs, &id),
            Ok(Done::Ask(_) | Done::Respond { .. }) => {
                let problem = "use --answer, --accept or --decline to answer the server";
                self.refuse(&id, ErrorCode::INVALID_REQUEST, problem);
            }
            Ok(Done::Restart) => self.restart(&id).await,
            Ok(Done::Quit) => return false,
            Err(problem) => self.refuse(&id, ErrorCode::INVALID_REQUEST, &problem),
        }
        self.settle();
        true
    }

    /// Responds to what was cancelled: every request gets a response.
    fn settle(&mut self) {
        let is_gone = |job: &u64| !self.talk.jobs.contains_key(job);
        let gone: Vec<u64> = self.running.keys().copied().filter(is_gone).collect();
        for job in gone {
            let Some(id) = self.running.remove(&job) else { continue };
            self.refuse_with(&id, show::own_code(Code::TimedOut), "cancelled");
        }
    }

    fn started(&mut self, jobs: &[u64], id: &Json) {
        for job in jobs {
            let own = match self.talk.jobs.get(job).map(|job| &job.show) {
                Some(Show::Message(own)) => own.clone(),
                _ => id.clone(),
            };
            self.running.insert(*job, own);
        }
    }

    async fn restart(&mut self, id: &Json) {
        self.wait(|pipe| pipe.running.is_empty()).await;
        if let Err(failure) = self.talk.open().await {
            self.fail(failure.code);
            self.refuse_with(id, ErrorCode::INTERNAL_ERROR, &failure.what);
        }
    }

    fn handle_event(&mut self, event: Event) {
        let Some(event) = self.talk.absorb(event) else { return };
        match event {
            Event::Say(text) => self.screen.say(&text),
            Event::State(opened, state) => {
                if let Some(reason) = self.talk.link.ended(opened, &state) {
                    self.screen.warn(&format!("the connection ended: {reason}"));
                }
            }
            Event::Progress(job, text) => {
                if let Some(job) = self.talk.jobs.get(&job) {
                    self.screen.say(&format!("progress │ {} {text}\n", line(&job.title)));
                }
            }
            Event::Ended { job, outcome, .. } => self.ended(job, &outcome),
            // Questions go to the prepared answers, and nobody presses Tab.
            _ => {}
        }
    }

    fn ended(&mut self, number: u64, outcome: &Result<Json, CallError>) {
        let Some(job) = self.talk.jobs.remove(&number) else { return };
        let Some(id) = self.running.remove(&number) else { return };
        if let Some(code) = show::code(outcome) {
            self.fail(code);
        }
        if let Ok(result) = outcome
            && let Some(problem) = show::broken_promise(&job.show, result, &self.talk.catalog)
        {
            self.screen.warn(&problem);
        }
        if let Err(error) = outcome {
            self.screen.say(&format!("bowline: {}: {}\n", shown(&id), line(&error.to_string())));
        }
        // A notification has no response.
        match outcome {
            Ok(_) if matches!(job.show, Show::Text(_)) => {}
            Ok(result) => self.screen.print_json(&show::response(&id, Ok(result))),
            Err(error) => {
                self.screen.print_json(&show::response(&id, Err(&show::error_object(error))));
            }
        }
    }

    /// Responds in place of the server.
    fn refuse(&mut self, id: &Json, code: ErrorCode, problem: &str) {
        self.fail(Code::Usage);
        self.refuse_with(id, code, problem);
    }

    fn refuse_with(&self, id: &Json, code: ErrorCode, problem: &str) {
        self.screen.say(&format!("bowline: {}: {}\n", shown(id), line(problem)));
        self.screen.print_json(&show::response(id, Err(&ErrorObject::new(code, problem))));
    }

    /// The exit code is that of the first failure.
    fn fail(&mut self, code: Code) {
        self.failed.get_or_insert(code);
    }
}

/// An id for people.
fn shown(id: &Json) -> String {
    line(&unquoted(&id.to_value()))
}

/// The tool whose input schema matters.
fn needed_tool(statement: &Statement) -> Option<&str> {
    match &statement.action {
        Action::Call { tool, .. } => Some(tool),
        Action::Word { name, .. } => Some(name),
        Action::Command { name, rest } if name == "call" => Some(first_word(rest).0),
        _ => None,
    }
}

/// The lines of standard input. Bytes that are not UTF-8 are replaced. The thread ends with the
/// process.
pub(crate) fn input() -> mpsc::Receiver<String> {
    let (sink, lines) = mpsc::channel(MOST_LINES);
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        let mut bytes = Vec::new();
        while input.read_until(b'\n', &mut bytes).is_ok_and(|length| length > 0) {
            let text = String::from_utf8_lossy(&std::mem::take(&mut bytes)).into_owned();
            let text = text.trim_end_matches(['\n', '\r']).to_owned();
            if sink.blocking_send(text).is_err() {
                return;
            }
        }
    });
    lines
}
