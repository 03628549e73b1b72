//! A task as simply as it can be said.

use bowline_fuzz::Bytes;

use crate::TTL;

/// How long an outcome is kept at least, and how long a task is remembered after that, in seconds.
const KEPT: u64 = 300;
/// How late the server may notice that a time is over.
const SLACK: u64 = 4;

/// What a tool does.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    /// Asks this many questions at a time, then ends.
    Asks(Vec<usize>),
    Fails,
    /// Never ends, and cannot run again after a restart; or can.
    Hangs,
    HangsAgain,
    Outside,
}

#[derive(Debug)]
pub(crate) struct Model {
    kind: Kind,
    created: u64,
    /// What is left of the questions, the open ones first.
    rounds: Vec<usize>,
    asked: usize,
    /// When and how it ended.
    ended: Option<(u64, &'static str)>,
    is_gone: bool,
}

impl Kind {
    pub(crate) fn choose(bytes: &mut Bytes<'_>) -> Self {
        match bytes.below(8) {
            0 => Self::Fails,
            1 => Self::Hangs,
            2 => Self::HangsAgain,
            3 => Self::Outside,
            4 => Self::Asks(Vec::new()),
            5 => Self::Asks(vec![2, 1]),
            6 => Self::Asks(vec![1, 2, 2]),
            _ => Self::Asks(vec![1]),
        }
    }

    pub(crate) fn tool(&self) -> &'static str {
        match self {
            Self::Asks(_) => "ask",
            Self::Fails => "fail",
            Self::Hangs => "hang",
            Self::HangsAgain => "hang-again",
            Self::Outside => "outside",
        }
    }

    pub(crate) fn rounds(&self) -> Vec<usize> {
        match self {
            Self::Asks(rounds) => rounds.clone(),
            _ => Vec::new(),
        }
    }
}

impl Model {
    pub(crate) fn new(kind: Kind, now: u64) -> Self {
        let rounds = kind.rounds();
        let ended = match &kind {
            Kind::Asks(rounds) if rounds.is_empty() => Some((now, "completed")),
            Kind::Fails => Some((now, "failed")),
            _ => None,
        };
        let asked = rounds.first().copied().unwrap_or(0);
        Self { kind, created: now, rounds, asked, ended, is_gone: false }
    }

    pub(crate) fn status(&self) -> &'static str {
        match self.ended {
            Some((_, status)) => status,
            None if self.open() > 0 => "input_required",
            None => "working",
        }
    }

    /// How many questions are open.
    pub(crate) fn open(&self) -> usize {
        if self.ended.is_some() { 0 } else { self.rounds.first().copied().unwrap_or(0) }
    }

    /// How many questions it has asked so far.
    pub(crate) fn asked(&self) -> usize {
        self.asked
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone
    }

    pub(crate) fn is_outside(&self) -> bool {
        matches!(self.kind, Kind::Outside) && self.ended.is_none()
    }

    /// One open question is answered.
    pub(crate) fn answer(&mut self, now: u64) {
        self.rounds[0] -= 1;
        if self.rounds[0] > 0 {
            return;
        }
        self.rounds.remove(0);
        match self.rounds.first() {
            Some(next) => self.asked += next,
            None => self.end(now, "completed"),
        }
    }

    /// It ends, unless it has.
    pub(crate) fn end(&mut self, now: u64, status: &'static str) {
        self.ended.get_or_insert((now, status));
    }

    /// The server restarts.
    pub(crate) fn restart(&mut self, now: u64) {
        if matches!(self.kind, Kind::Hangs) {
            self.end(now, "failed");
        }
    }

    /// What must have happened to it by now has happened.
    pub(crate) fn pass(&mut self, now: u64) {
        if self.ended.is_none() && now >= self.created + TTL {
            self.end(self.created + TTL, "failed");
        }
        self.is_gone |= now >= self.deadline();
    }

    /// When it expires, or is forgotten.
    fn deadline(&self) -> u64 {
        match self.ended {
            None => self.created + TTL,
            Some((ended, _)) => {
                TTL.max(ended.saturating_sub(self.created) + KEPT) + self.created + KEPT
            }
        }
    }

    /// Whether the server may or may not have noticed yet that its time is over.
    pub(crate) fn is_near_deadline(&mut self, now: u64) -> bool {
        let is_near = |deadline: u64| now + 1 >= deadline && now < deadline + SLACK;
        if !self.is_gone && is_near(self.deadline()) {
            return true;
        }
        self.pass(now);
        !self.is_gone && is_near(self.deadline())
    }
}
