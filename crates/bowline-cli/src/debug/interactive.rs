//! A session at a terminal: one loop handles keys and everything else that happens, and draws.
//! Nothing else prints, so nothing tears the line that is being typed.

mod keys;
mod questions;
mod view;

use std::collections::VecDeque;
use std::time::Duration;

use bowline::Json;
use bowline::client::{CallError, CloseReason, State};
use crossterm::event::{Event as Input, KeyEvent};
use tokio::sync::mpsc;
use tokio::time::{Interval, interval};

use self::keys::{keys_of, pressed_ctrl_c};
use self::questions::{Asking, withdrawn};
use super::dialog::Question;
use super::editor::Editor;
use super::history::History;
use super::link::Event;
use super::paint::{Painter, Size};
use super::show;
use super::statement::{self, Lines};
use super::talk::{Done, Show, Talk};
use super::terminal::Terminal;
use crate::failure::Failure;
use crate::render::json::pretty;
use crate::render::wire::time;
use crate::screen::{OutputArgs, Screen, Style};
use crate::session::interrupted;
use crate::text::line;

/// How long the first prompt waits for the lists of the server.
const LISTS: Duration = Duration::from_secs(2);

/// How often the age of a running call is drawn.
const TICK: Duration = Duration::from_millis(250);

/// A session at a terminal.
pub(crate) struct Interactive {
    talk: Talk,
    events: mpsc::Receiver<Event>,
    /// Ends raw mode when it is dropped.
    _terminal: Terminal,
    output: OutputArgs,
    /// As wide as the terminal is now.
    screen: Screen,
    painter: Painter,
    size: Size,
    editor: Editor,
    history: History,
    /// The lines of a statement that is not complete yet.
    collected: Lines,
    asking: Option<Asking>,
    questions: VecDeque<Question>,
    /// How far the calls that the prompt waits for are, once they take long enough to say so.
    waits: Option<String>,
    tick: Interval,
    typed_ahead: VecDeque<KeyEvent>,
    /// How often Ctrl-C was pressed in a row, on an empty line.
    interrupts: u32,
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
    /// Takes over the terminal.
    ///
    /// # Errors
    /// When standard input is not a terminal.
    pub(crate) fn new(
        talk: Talk,
        events: mpsc::Receiver<Event>,
        output: OutputArgs,
    ) -> Result<Self, Failure> {
        let terminal = Terminal::open()
            .map_err(|error| Failure::usage(format!("the terminal cannot be used: {error}")))?;
        Ok(Self {
            talk,
            events,
            _terminal: terminal,
            screen: Screen::new(&output),
            output,
            painter: Painter::default(),
            size: Terminal::size(),
            editor: Editor::default(),
            history: History::open(),
            collected: Lines::default(),
            asking: None,
            questions: VecDeque::new(),
            waits: None,
            tick: interval(TICK),
            typed_ahead: VecDeque::new(),
            interrupts: 0,
            next: Turn::Wait,
        })
    }

    /// Runs until the user quits.
    pub(crate) async fn run(mut self) {
        let mut inputs = Terminal::events();
        let mut stopped = std::pin::pin!(interrupted());
        self.open(&mut inputs).await;
        while self.next != Turn::Quit {
            let is_waiting = self.asking.is_none() && !self.talk.foreground().is_empty();
            tokio::select! {
                Some(event) = self.events.recv() => self.handle_event(event),
                input = inputs.recv() => match input {
                    Some(input) => self.handle_input(&input),
                    None => self.next = Turn::Quit,
                },
                () = withdrawn(&mut self.asking) => {
                    self.say("the server no longer asks");
                    self.end_dialog();
                }
                _ = self.tick.tick(), if is_waiting => self.tick(),
                _ = &mut stopped => self.next = Turn::Quit,
            }
            if self.next == Turn::Restart {
                self.next = Turn::Wait;
                self.open(&mut inputs).await;
            }
        }
        self.hide();
        self.drop_questions();
        self.talk.close().await;
    }

    /// Connects, or reconnects. Ctrl-C gives up; other keys are kept for later.
    async fn open(&mut self, inputs: &mut mpsc::Receiver<Input>) {
        self.drop_questions();
        self.hide();
        let (talk, ahead) = (&mut self.talk, &mut self.typed_ahead);
        let opened = tokio::select! {
            opened = async {
                let opened = talk.open().await;
                talk.learn(LISTS).await;
                opened
            } => Some(opened),
            () = pressed_ctrl_c(inputs, ahead) => None,
        };
        self.fit();
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

    fn handle_input(&mut self, input: &Input) {
        if let Input::Resize(..) = input {
            self.fit();
            self.redraw();
        }
        self.typed_ahead.extend(keys_of(input));
        self.replay_keys();
    }

    fn handle_event(&mut self, event: Event) {
        let Some(event) = self.talk.absorb(event) else { return };
        match event {
            Event::Say(text) => self.say(&text),
            Event::State(opened, state) => self.entered(opened, &state),
            Event::Asked(question) => self.asked(question),
            Event::Progress(job, text)
                if self.waits.is_some() && self.talk.foreground().contains(&job) =>
            {
                self.waits = Some(text);
                self.redraw();
            }
            Event::Ended { job, outcome, took } => self.ended(job, &outcome, took),
            Event::Completed { line, start, candidates }
                if self.asking.is_none() && self.editor.typed() == line =>
            {
                match candidates {
                    Ok(candidates) => self.offer(start, &candidates),
                    Err(problem) => self.complain(&problem),
                }
            }
            // What comes too late, and what the session has taken in.
            _ => {}
        }
    }

    fn entered(&mut self, opened: u64, state: &State) {
        let Some(reason) = self.talk.link.ended(opened, state) else { return };
        let text = match reason {
            CloseReason::Exited(exit) => format!("the server ended: {}", line(&exit.status)),
            other => format!("the connection ended: {}", line(&other.to_string())),
        };
        let text = self.screen.err.paint(Style::Red, &text);
        self.drop_questions();
        self.say(&format!("{text}\n  `restart` starts it again"));
    }

    fn ended(&mut self, number: u64, outcome: &Result<Json, CallError>, took: Duration) {
        let Some(job) = self.talk.jobs.remove(&number) else { return };
        if !job.waits {
            let title = line(&job.title);
            self.say(&format!("[{number}] {title} ended after {}", time(took.as_secs_f64())));
        }
        if self.talk.foreground().is_empty() {
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
                    pretty(&show::response(id, Err(&show::error_object(error))), self.screen.out);
                self.print(&text);
            }
            (Err(error), _) => self.complain(&Failure::from(error.clone()).what),
        }
        self.replay_keys();
    }

    /// Runs a complete statement.
    fn run_line(&mut self, text: &str) {
        self.history.add(text);
        match statement::parse(text) {
            Ok(statement) => {
                let done = self.talk.run(statement);
                self.done(done);
            }
            Err(problem) => self.complain(&problem),
        }
    }

    fn done(&mut self, done: Result<Done, String>) {
        match done {
            Ok(Done::Nothing) => {}
            Ok(Done::Said(text)) => self.say(&text),
            Ok(Done::Started(jobs)) => {
                let foreground = self.talk.foreground();
                for job in jobs.iter().filter(|job| !foreground.contains(job)) {
                    self.say(&format!("[{job}] runs in the background"));
                }
                if !foreground.is_empty() {
                    self.waits = None;
                    self.tick.reset();
                    self.hide();
                }
            }
            Ok(Done::Ask(dialog)) => self.ask(*dialog),
            Ok(Done::Respond { id, answer }) => self.respond(&id, answer),
            Ok(Done::Restart) => self.next = Turn::Restart,
            Ok(Done::Clear) => self.clear(),
            Ok(Done::Quit) => self.next = Turn::Quit,
            Err(problem) => self.complain(&problem),
        }
    }
}
