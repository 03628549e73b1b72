//! Makes sense of what taps observe: requests with their answers, rounds of one question, polls of
//! one task, times, and what hangs. It has no screen: a terminal, a page or a report shows it.

mod filter;
mod message;
mod statistics;

use std::collections::{HashMap, VecDeque};

pub use self::filter::Filter;
use self::message::Envelope;
pub use self::statistics::{MethodTimes, Times, percentile};
use crate::pairs::Pairs;
use crate::session_file::{Line, LineKind, Opening, Way};

/// Everything that is known about some sessions. The oldest rows go when there are too many, or
/// their messages are too long together.
#[derive(Debug)]
pub struct Model {
    sessions: Vec<Watched>,
    rows: VecDeque<Row>,
    /// The number of the first row that is left.
    first: u64,
    most: usize,
    /// The bytes of the lines in all rows, and how many there may be.
    bytes: usize,
    most_bytes: usize,
    /// Requests that wait for an answer, by session, way and id.
    waiting: Pairs<(usize, Way, String), u64>,
    /// Rows that ended with a question, by session and the state that the retry repeats.
    questions: HashMap<(usize, String), u64>,
    /// Rows that became a task, by session and task.
    tasks: HashMap<(usize, String), u64>,
    times: MethodTimes,
}

/// A session.
#[derive(Debug, Clone)]
pub struct Watched {
    /// How it began.
    pub opening: Opening,
    /// How long it lasted, once it is over.
    pub ended: Option<f64>,
    /// How much was not observed.
    pub lost: u64,
}

impl Watched {
    /// A short name for people.
    #[must_use]
    pub fn name(&self) -> String {
        let tap = self.opening.tap.as_ref().map(|tap| tap.name.clone());
        tap.unwrap_or_else(|| self.opening.server())
    }
}

/// A request with its answer, or something that stands alone.
#[derive(Debug)]
pub struct Row {
    /// The session: an index into [`Model::sessions`].
    pub session: usize,
    /// The request, or what stands alone.
    pub line: Line,
    /// What it is.
    pub what: What,
    /// The answer, once it is there.
    pub answer: Option<Answer>,
    /// The row that this one continues: a round of its question, or a poll of its task.
    pub parent: Option<u64>,
    /// How many rounds of questions followed.
    pub rounds: usize,
    /// How often its task was asked for.
    pub polls: usize,
}

/// What a row is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A request.
    Request {
        /// Its method.
        method: String,
        /// The tool, prompt, resource or task that it is about.
        subject: Option<String>,
        /// Its id, as JSON.
        id: String,
    },
    /// A notification.
    Notification {
        /// Its method.
        method: String,
    },
    /// An answer to nothing that was seen.
    Stray,
    /// Something that is not a message.
    Noise,
    /// Anything that is not a message by its nature: see the line.
    Other,
}

/// The answer to a request.
#[derive(Debug)]
pub struct Answer {
    /// The answer.
    pub line: Line,
    /// Seconds that it took.
    pub took: f64,
    /// Whether it is an error, or a tool says that it failed.
    pub is_error: bool,
}

impl Row {
    /// The method of a request or a notification.
    #[must_use]
    pub fn method(&self) -> Option<&str> {
        match &self.what {
            What::Request { method, .. } | What::Notification { method } => Some(method),
            _ => None,
        }
    }

    /// Whether it waits for an answer.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        matches!(self.what, What::Request { .. }) && self.answer.is_none()
    }

    /// Whether something went wrong.
    #[must_use]
    pub fn is_error(&self) -> bool {
        let is_bad = matches!(self.what, What::Stray | What::Noise);
        let is_fault = matches!(self.line.kind, LineKind::Fault | LineKind::Lost);
        is_bad || is_fault || self.answer.as_ref().is_some_and(|answer| answer.is_error)
    }
}

impl Model {
    /// A model of at most so many rows, and of so many bytes in them.
    #[must_use]
    pub fn new(most: usize, most_bytes: usize) -> Self {
        Self {
            sessions: Vec::new(),
            rows: VecDeque::new(),
            first: 0,
            most,
            bytes: 0,
            most_bytes,
            waiting: Pairs::default(),
            questions: HashMap::new(),
            tasks: HashMap::new(),
            times: MethodTimes::default(),
        }
    }

    /// A session begins; the number that its lines go by.
    pub fn open(&mut self, opening: Opening) -> usize {
        self.sessions.push(Watched { opening, ended: None, lost: 0 });
        self.sessions.len() - 1
    }

    /// The session is over, whether it said so or not.
    pub fn close(&mut self, session: usize, at: f64) {
        if let Some(session) = self.sessions.get_mut(session) {
            session.ended.get_or_insert(at);
        }
    }

    /// Takes a line of a session.
    pub fn handle_line(&mut self, session: usize, line: Line) {
        match line.kind {
            LineKind::Session => return,
            LineKind::Lost => {
                let lost = line.length.unwrap_or_default();
                self.sessions[session].lost += lost;
            }
            LineKind::End => self.close(session, line.at),
            LineKind::Message => return self.handle_message(session, line),
            _ => {}
        }
        self.push(session, line, What::Other);
    }

    fn handle_message(&mut self, session: usize, line: Line) {
        let envelope = line.message.as_ref().map(Envelope::read);
        let Some((envelope, way)) = envelope.zip(line.direction) else {
            self.push(session, line, What::Noise);
            return;
        };
        let connection = line.connection.unwrap_or_default();
        match (envelope.method, envelope.id) {
            (Some(method), Some(id)) => {
                let key = (session, way, id.clone());
                let what = What::Request { method, subject: envelope.subject, id };
                let number = self.push(session, line, what);
                self.waiting.insert(key, connection, number);
                let task = envelope.task.and_then(|task| self.tasks.get(&(session, task)).copied());
                let state = envelope.state;
                let question = state.and_then(|state| self.questions.remove(&(session, state)));
                self.group(number, question, task);
            }
            (Some(method), None) => {
                self.push(session, line, What::Notification { method });
            }
            (None, Some(id)) => {
                let key = (session, way.opposite(), id);
                match self.waiting.take(&key, connection) {
                    Some(number) => self.answer(session, number, line),
                    None => drop(self.push(session, line, What::Stray)),
                }
            }
            (None, None) => drop(self.push(session, line, What::Noise)),
        }
    }

    /// Notes that a request continues another one.
    fn group(&mut self, number: u64, question: Option<u64>, task: Option<u64>) {
        let Some(parent) = question.or(task) else { return };
        // Rounds of rounds belong to the first request.
        let parent = self.row(parent).and_then(|row| row.parent).unwrap_or(parent);
        if let Some(row) = self.row_mut(parent) {
            if question.is_some() {
                row.rounds += 1;
            } else {
                row.polls += 1;
            }
        }
        if let Some(row) = self.row_mut(number) {
            row.parent = Some(parent);
        }
    }

    fn answer(&mut self, session: usize, number: u64, line: Line) {
        let envelope = line.message.as_ref().map(Envelope::read).unwrap_or_default();
        let Some(row) = self.row_mut(number) else { return };
        let took = line.took.unwrap_or(line.at - row.line.at);
        let method = row.method().unwrap_or_default().to_owned();
        let bytes = line.weight();
        row.answer = Some(Answer { line, took, is_error: envelope.is_error });
        self.bytes += bytes;
        self.shrink();
        self.times.add(&method, took, envelope.is_error);
        if let Some(state) = envelope.state {
            self.questions.insert((session, state), number);
        }
        if let Some(task) = envelope.task {
            self.tasks.entry((session, task)).or_insert(number);
        }
    }

    fn push(&mut self, session: usize, line: Line, what: What) -> u64 {
        let (answer, parent) = (None, None);
        self.bytes += line.weight();
        self.rows.push_back(Row { session, line, what, answer, parent, rounds: 0, polls: 0 });
        let number = self.first + self.rows.len() as u64 - 1;
        self.shrink();
        number
    }

    /// Lets the oldest rows go, as long as there is too much. The newest one stays.
    fn shrink(&mut self) {
        while self.rows.len() > self.most || (self.bytes > self.most_bytes && self.rows.len() > 1) {
            let Some(row) = self.rows.pop_front() else { return };
            self.bytes -= row.line.weight();
            self.bytes -= row.answer.map_or(0, |answer| answer.line.weight());
            self.first += 1;
            let first = self.first;
            // Everything that refers to rows goes with them, now and then.
            if first.is_multiple_of(1024) {
                self.waiting.retain(|number| *number >= first);
                self.questions.retain(|_, number| *number >= first);
                self.tasks.retain(|_, number| *number >= first);
            }
        }
    }

    /// All sessions, in the order in which they were found.
    #[must_use]
    pub fn sessions(&self) -> &[Watched] {
        &self.sessions
    }

    /// The rows with their numbers, oldest first.
    pub fn rows(&self) -> impl DoubleEndedIterator<Item = (u64, &Row)> {
        self.rows.iter().enumerate().map(|(at, row)| (self.first + at as u64, row))
    }

    /// The row with this number, if it is left.
    #[must_use]
    pub fn row(&self, number: u64) -> Option<&Row> {
        self.rows.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    fn row_mut(&mut self, number: u64) -> Option<&mut Row> {
        self.rows.get_mut(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// How long answers took, by method.
    #[must_use]
    pub fn times(&self) -> &MethodTimes {
        &self.times
    }
}

#[cfg(test)]
mod tests;
