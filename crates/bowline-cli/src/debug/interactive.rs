//! A session at a terminal: one loop that looks at keys and at everything else that happens, and
//! draws. Nothing is printed from elsewhere, so nothing tears the line that is being typed.

mod keys;
mod questions;
mod view;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bowline::client::{CloseReason, Notification, Phase, State};
use tokio::sync::mpsc;
use tokio::time::{Interval, interval};

use self::view::Resized;
pub(crate) use self::view::notice;

use super::dialog::Dialog;
use super::editor::Editor;
use super::event::Event;
use super::form::Ask;
use super::history::History;
use super::keys::{Decoder, Key};
use super::paint::{Painter, Size};
use super::question::Question;
use super::talk::{Done, Show, Talk, seconds};
use super::terminal::Terminal;
use super::{show, statement, words};
use crate::failure::Failure;
use crate::screen::{Screen, Style};
use crate::session::interrupted;
use crate::text::line;

/// How long the first prompt waits for the lists of the server.
const LISTS: Duration = Duration::from_secs(2);

/// How often the time of what is running is drawn.
const TICK: Duration = Duration::from_millis(250);

/// A session at a terminal.
pub(crate) struct Interactive {
    talk: Talk,
    events: mpsc::Receiver<Event>,
    terminal: Terminal,
    screen: Arc<Screen>,
    painter: Painter,
    size: Size,
    editor: Editor,
    decoder: Decoder,
    history: History,
    /// The lines of a statement that is not complete yet.
    collected: String,
    /// What is being asked, how, and the line that was being typed before.
    dialog: Option<(Dialog, Ask, Editor)>,
    questions: VecDeque<Question>,
    /// What the prompt waits for.
    foreground: Vec<u64>,
    /// Whether it has been waiting long enough to say so, and how far it is.
    waits: Option<String>,
    tick: Interval,
    typed_ahead: VecDeque<Key>,
    /// How often Ctrl-C was pressed in a row, on an empty line.
    interrupts: u32,
    is_pasting: bool,
    next: Turn,
}

/// What the loop does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Wait,
    Restart,
    Quit,
}

impl Interactive {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// When standard input is none.
    pub(crate) fn new(talk: Talk, events: mpsc::Receiver<Event>) -> Result<Self, Failure> {
        let terminal = Terminal::open()
            .map_err(|error| Failure::usage(format!("the terminal cannot be used: {error}")))?;
        let screen = Arc::clone(talk.link.screen());
        Ok(Self {
            talk,
            events,
            terminal,
            screen,
            painter: Painter::default(),
            size: Terminal::size(),
            editor: Editor::default(),
            decoder: Decoder::default(),
            history: History::open(),
            collected: String::new(),
            dialog: None,
            questions: VecDeque::new(),
            foreground: Vec::new(),
            waits: None,
            tick: interval(TICK),
            typed_ahead: VecDeque::new(),
            interrupts: 0,
            is_pasting: false,
            next: Turn::Wait,
        })
    }

    /// Runs until somebody quits.
    pub(crate) async fn run(mut self) {
        let mut keys = Terminal::keys();
        let mut resized = Resized::new();
        let mut stopped = std::pin::pin!(interrupted());
        self.open(&mut keys).await;
        while self.next != Turn::Quit {
            tokio::select! {
                Some(event) = self.events.recv() => self.handle_event(event),
                typed = keys.recv() => match typed {
                    Some(bytes) => self.handle_bytes(&bytes),
                    None => self.next = Turn::Quit,
                },
                () = resized.next() => {
                    self.size = Terminal::size();
                    self.redraw();
                }
                () = withdrawn(&mut self.dialog) => {
                    self.say("the server no longer asks");
                    self.end_dialog();
                }
                _ = self.tick.tick(), if !self.foreground.is_empty() && self.dialog.is_none() => {
                    self.tick();
                }
                () = &mut stopped => self.next = Turn::Quit,
            }
            if self.next == Turn::Restart {
                self.next = Turn::Wait;
                self.open(&mut keys).await;
            }
        }
        self.hide();
        self.drop_questions();
        self.talk.close().await;
    }

    /// Connects, or connects anew. Ctrl-C gives up.
    async fn open(&mut self, keys: &mut mpsc::Receiver<Vec<u8>>) {
        self.drop_questions();
        self.foreground.clear();
        self.hide();
        let (talk, decoder, ahead) = (&mut self.talk, &mut self.decoder, &mut self.typed_ahead);
        let opened = tokio::select! {
            opened = async {
                let opened = talk.open().await;
                talk.learn(LISTS).await;
                opened
            } => Some(opened),
            () = given_up(keys, decoder, ahead) => None,
        };
        // What was said meanwhile comes first.
        while let Ok(event) = self.events.try_recv() {
            self.handle_event(event);
        }
        match opened {
            Some(Ok(())) => {
                self.talk.listen();
                let text = self.greeting();
                self.say(&text);
            }
            Some(Err(failure)) => {
                let text = failure.for_people();
                self.say(&format!("{text}  `restart` tries again, `log` shows what was said\n"));
            }
            None => self.say("not connected; `restart` tries again"),
        }
        self.replay_keys();
    }

    fn handle_event(&mut self, event: Event) {
        if let Some(text) = self.talk.link.missed() {
            self.complain(&text);
        }
        match event {
            Event::Say(text) => self.say(&text),
            Event::Said(from, text) => self.talk.note(from, &text),
            Event::Notified(notification) => self.notified(&notification),
            Event::State(opened, state) => self.entered(opened, &state),
            Event::Asked(question) => self.asked(question),
            Event::Progress(job, text) => {
                if self.foreground.contains(&job) && self.waits.is_some() {
                    self.waits = Some(text);
                    self.redraw();
                }
            }
            Event::Ended { job, outcome, took } => self.ended(job, &outcome, took),
            Event::Catalog(catalog) => self.talk.catalog = *catalog,
            Event::Subscribed(uri, task) => self.talk.subscribed(uri, task),
            Event::Completed { line, start, candidates } => {
                if self.dialog.is_none() && self.editor.text()[..self.editor.at()] == line {
                    match candidates {
                        Ok(candidates) => self.offer(start, &candidates),
                        Err(problem) => self.complain(&problem),
                    }
                }
            }
        }
    }

    /// Shows a notification, unless it is shown elsewhere.
    fn notified(&mut self, notification: &Notification) {
        let Some(text) = notice(notification) else { return };
        if notification.method.ends_with("/list_changed") {
            self.talk.refresh();
        }
        let word = self.screen.err.paint(Style::Dim, "notice │");
        self.say(&format!("{word} {text}"));
    }

    fn entered(&mut self, opened: u64, state: &State) {
        let is_old = opened != self.talk.link.opened();
        let Some(reason) = state.reason.as_ref().filter(|_| state.phase == Phase::Closed) else {
            return;
        };
        if is_old || *reason == CloseReason::Asked {
            return;
        }
        let mut text = match reason {
            CloseReason::Exited(exit) => format!("the server ended: {}\n", line(&exit.status)),
            other => format!("the connection ended: {}\n", line(&other.to_string())),
        };
        if let CloseReason::Exited(exit) = reason {
            for said in &exit.stderr {
                text.push_str(&format!("  stderr │ {}\n", line(said)));
            }
        }
        text = self.screen.err.paint(Style::Red, text.trim_end());
        self.drop_questions();
        self.say(&format!("{text}\n  `restart` starts it again"));
    }

    fn ended(
        &mut self,
        number: u64,
        outcome: &Result<bowline::Json, bowline::client::CallError>,
        took: Duration,
    ) {
        let Some(job) = self.talk.end(number) else { return };
        if self.foreground.contains(&number) {
            self.foreground.retain(|it| *it != number);
        } else {
            let title = line(&job.title);
            self.say(&format!("[{number}] {title} ended after {}", seconds(took)));
        }
        if self.foreground.is_empty() {
            self.waits = None;
        }
        match (outcome, &job.show) {
            (Ok(result), show) => {
                let text = show::render(show, result, took, &self.screen);
                self.print(&text);
                if let Some(problem) = show::broken_promise(show, result, &self.talk.catalog) {
                    self.complain(&problem);
                }
            }
            (Err(error), Show::Message(id)) => {
                let text =
                    crate::render::json::pretty(&show::message(id, Err(error)), self.screen.out);
                self.print(&text);
            }
            (Err(error), _) => {
                let failure = Failure::from(error.clone());
                self.complain(&failure.what);
            }
        }
        self.replay_keys();
    }

    /// A line that is complete.
    fn run_line(&mut self, text: &str) {
        self.history.add(text);
        match statement::parse(text, &words::names()) {
            Ok(statement) => {
                let in_background = statement.in_background;
                let done = self.talk.run(statement);
                self.done(done, in_background);
            }
            Err(problem) => self.complain(&problem),
        }
    }

    fn done(&mut self, done: Done, in_background: bool) {
        match done {
            Done::Nothing => {}
            Done::Said(text) => self.say(&text),
            Done::Failed(problem) => self.complain(&problem),
            Done::Started(jobs) if in_background => {
                for job in jobs {
                    self.say(&format!("[{job}] runs in the background"));
                }
            }
            Done::Started(jobs) => {
                self.foreground = jobs;
                self.waits = None;
                self.tick.reset();
                self.hide();
            }
            Done::Ask(dialog) => self.ask(*dialog),
            Done::Respond { id, answer } => self.respond(&id, answer),
            Done::Restart => self.next = Turn::Restart,
            Done::Clear => self.clear(),
            Done::Quit => self.next = Turn::Quit,
        }
    }
}

/// Waits until the server no longer wants the answer that is being typed.
async fn withdrawn(dialog: &mut Option<(Dialog, Ask, Editor)>) {
    match dialog.as_mut().and_then(|(dialog, ..)| dialog.question_mut()) {
        Some(question) => question.reply.closed().await,
        None => std::future::pending().await,
    }
}

/// Waits for Ctrl-C; other keys are kept for later.
async fn given_up(
    keys: &mut mpsc::Receiver<Vec<u8>>,
    decoder: &mut Decoder,
    ahead: &mut VecDeque<Key>,
) {
    while let Some(bytes) = keys.recv().await {
        for key in decoder.decode(&bytes) {
            match key {
                Key::Control('c') => return,
                other => ahead.push_back(other),
            }
        }
    }
}
