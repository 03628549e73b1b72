//! Finding out what a server speaks: the client's half.
//!
//! A client that speaks both eras asks `server/discover`, which no legacy server knows, and falls
//! back to `initialize` on anything but a modern answer. What a legacy server answers to an unknown
//! method before a handshake has no common form: four different codes, garbage, silence and death
//! have all been seen, so no code is taken to mean "legacy". Only the modern codes mean something.
//!
//! [`Connect`] says what to do next as an [`Action`]; whoever does it reports an [`Event`]. It
//! keeps no time: an action says how long its question may take, and [`Calls`](super::Calls)
//! measures it and drops what comes late.
//!
//! Refused for another reason than the era (authorisation, rate limits, a broken server, the
//! network), nothing is concluded: the caller must remove the cause and connect again.

mod error;
mod step;

use std::time::Duration;

use serde::Deserialize;

pub use self::error::{ConnectError, Rejection};
pub use self::step::{Action, Event, Preference, Question};
use super::classify::Transport;
use crate::error::{ErrorCode, ErrorObject};
use crate::revision::{Era, NoCommonRevision, Revision, Revisions};

/// The way to a common revision.
#[derive(Debug, Clone)]
pub struct Connect {
    transport: Transport,
    ours: Revisions,
    probe_timeout: Duration,
    state: State,
    /// Modern revisions that `server/discover` was tried with.
    probed: Revisions,
    /// Legacy revisions that `initialize` was tried with.
    shaken: Revisions,
    respawn: Once,
    sse: Once,
    /// The handshake that was refused as a server of HTTP+SSE refuses it.
    sse_fits: Option<Revision>,
    second_probe: Once,
    /// A second try in a revision that the server refused and yet lists.
    same_probe: Once,
    /// What to report if nothing else works.
    refusal: Option<ConnectError>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    ExpectDiscover,
    ExpectInitialize(Revision),
    ExpectEndpoint(Revision),
    Done,
    Failed,
}

/// Something that is tried at most once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Once {
    Left,
    Spent,
}

impl Once {
    fn take(&mut self) -> bool {
        std::mem::replace(self, Self::Spent) == Self::Left
    }
}

/// How long a process may take to answer the first question, unless told otherwise.
///
/// Long enough for an interpreter to start; a legacy server that stays silent costs it once.
pub const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

impl Connect {
    /// A client of these revisions, which has said nothing. See [`Preference::narrow`].
    pub fn new(transport: Transport, ours: Revisions) -> Self {
        Self {
            transport,
            ours,
            probe_timeout: PROBE_TIMEOUT,
            state: State::Failed,
            probed: Revisions::NONE,
            shaken: Revisions::NONE,
            respawn: Once::Left,
            sse: Once::Left,
            sse_fits: None,
            second_probe: Once::Left,
            same_probe: Once::Left,
            refusal: None,
        }
    }

    /// Another deadline for the first question to a process.
    #[must_use]
    pub fn with_probe_timeout(mut self, timeout: Duration) -> Self {
        self.probe_timeout = timeout;
        self
    }

    /// Begins. `known` is what the server spoke last time, if that is remembered.
    ///
    /// A server known as modern is done at once; a legacy one gets its handshake at once. Either
    /// is looked at anew, once, if it turns out otherwise. A legacy server that learns the modern
    /// era never turns out otherwise, so do not remember that for more than a day.
    pub fn open(&mut self, known: Option<Revision>) -> Action {
        let known = known.filter(|known| self.ours.contains(*known));
        if let Some(known) = known.filter(|known| known.is_modern()) {
            return self.done(known);
        }
        let modern = self.ours.newest(Era::Modern);
        match (modern, self.ours.newest(Era::Legacy)) {
            (Some(_), Some(legacy)) if known.is_some() => self.shake(legacy),
            (Some(modern), _) => self.probe(modern),
            (None, Some(legacy)) => self.shake(legacy),
            (None, None) => self.fail(ConnectError::NothingEnabled),
        }
    }

    /// Takes in what became of an action, and says what to do next.
    pub fn handle_event(&mut self, event: Event<'_>) -> Action {
        match (self.state, event) {
            (State::Done, Event::Contradicted) => self.look_again(),
            (State::Done | State::Failed, _) | (_, Event::Contradicted) => Action::Wait,
            (_, Event::Unreachable(why)) => self.fail(ConnectError::Unreachable(why)),
            (_, Event::Exited) => self.after_exit(),
            (State::ExpectDiscover, event) => self.after_probe(event),
            (State::ExpectInitialize(asked), event) => self.after_shake(asked, event),
            (State::ExpectEndpoint(asked), event) => self.after_get(asked, event),
        }
    }

    fn after_probe(&mut self, event: Event<'_>) -> Action {
        match event {
            Event::Discovered([]) | Event::Malformed(Question::Discover) => {
                self.fall_back(ConnectError::Malformed)
            }
            Event::Discovered(theirs) => match self.common(theirs).newest(Era::Modern) {
                Some(revision) => self.done(revision),
                None => self.fall_back_to_listed(theirs),
            },
            Event::TimedOut(Question::Discover) => match self.transport {
                Transport::Stream => self.fall_back(ConnectError::TimedOut),
                Transport::Http => self.fail(ConnectError::TimedOut),
            },
            Event::Refused(Question::Discover, rejection) => self.after_refusal(rejection),
            _ => Action::Wait,
        }
    }

    fn after_refusal(&mut self, rejection: Rejection) -> Action {
        if !rejection.is_evidence() {
            return self.fail(ConnectError::Blocked(rejection));
        }
        match rejection.code() {
            Some(ErrorCode::UNSUPPORTED_VERSION) => {
                if let Some(theirs) = listed(rejection.error.as_ref()) {
                    return self.choose(&theirs);
                }
            }
            // The server is modern and dislikes something else, which a handshake cannot cure.
            Some(ErrorCode::HEADER_MISMATCH | ErrorCode::MISSING_CLIENT_CAPABILITY) => {
                return self.fail(ConnectError::Refused(rejection));
            }
            // It speaks JSON-RPC where HTTP+SSE has nothing, so it is not that.
            Some(ErrorCode::METHOD_NOT_FOUND) => self.sse = Once::Spent,
            _ => {}
        }
        self.fall_back(ConnectError::Refused(rejection))
    }

    /// The server is modern and does not speak what was asked in, but tells what it speaks.
    fn choose(&mut self, theirs: &[String]) -> Action {
        let common = self.common(theirs);
        let mut modern = common.of_era(Era::Modern).iter();
        let untried = modern.rfind(|revision| !self.probed.contains(*revision));
        // Another replica may have refused than the one that answers next.
        let again = || common.newest(Era::Modern).filter(|_| self.same_probe.take());
        match untried.or_else(again) {
            Some(revision) => self.probe(revision),
            None if common == common.of_era(Era::Modern) && !common.is_empty() => {
                self.fail(ConnectError::Contradicted)
            }
            None => self.fall_back_to_listed(theirs),
        }
    }

    fn after_shake(&mut self, asked: Revision, event: Event<'_>) -> Action {
        match event {
            Event::Initialized(answered) => match self.ours.read_initialize_answer(answered) {
                Ok(revision) => self.done(revision),
                Err(error) => self.fail(ConnectError::NoCommonRevision(error)),
            },
            Event::Malformed(Question::Initialize) => self.fail(ConnectError::Malformed),
            Event::TimedOut(Question::Initialize) => self.fail(ConnectError::TimedOut),
            Event::Refused(Question::Initialize, rejection) => self.after_no(asked, rejection),
            _ => Action::Wait,
        }
    }

    fn after_no(&mut self, asked: Revision, rejection: Rejection) -> Action {
        if !rejection.is_evidence() {
            return self.fail(ConnectError::Blocked(rejection));
        }
        let code = rejection.code();
        let is_modern = code.is_some_and(is_modern_code);
        // An answer that lists revisions comes from servers that refuse instead of offering.
        let theirs = listed(rejection.error.as_ref()).unwrap_or_default();
        let offered = self.common(&theirs).newest(Era::Legacy);
        let is_unknown_method = code == Some(ErrorCode::METHOD_NOT_FOUND);
        let sse_fits = matches!(rejection.status, Some(400 | 404 | 405));
        self.sse_fits = Some(asked).filter(|_| sse_fits && !is_modern && !is_unknown_method);
        let spoke = |why: &ConnectError| *why != ConnectError::TimedOut;
        let probe_was_answered = self.refusal.as_ref().is_some_and(spoke);
        self.refusal = Some(ConnectError::Refused(rejection));
        if let Some(offered) = offered.filter(|offered| !self.shaken.contains(*offered)) {
            return self.shake(offered);
        }
        let modern = self.ours.newest(Era::Modern);
        if let Some(modern) = modern.filter(|_| is_modern || !probe_was_answered)
            && self.second_probe.take()
        {
            return self.probe(modern);
        }
        if let Some(action) = self.open_sse() {
            return action;
        }
        if !theirs.is_empty() && self.common(&theirs).is_empty() {
            return self.fall_back_to_listed(&theirs);
        }
        self.give_up()
    }

    fn after_get(&mut self, asked: Revision, event: Event<'_>) -> Action {
        match event {
            Event::EndpointFound => {
                self.state = State::ExpectInitialize(asked);
                Action::Initialize(asked)
            }
            Event::Refused(Question::Endpoint, rejection) if !rejection.is_evidence() => {
                self.fail(ConnectError::Blocked(rejection))
            }
            Event::Refused(Question::Endpoint, _)
            | Event::Malformed(Question::Endpoint)
            | Event::TimedOut(Question::Endpoint) => self.give_up(),
            _ => Action::Wait,
        }
    }

    /// A process may die of a question it does not know, at once or a little later.
    fn after_exit(&mut self) -> Action {
        let legacy = match self.state {
            State::ExpectInitialize(asked) => Some(asked),
            _ => self.ours.newest(Era::Legacy),
        };
        let died_of_probe = self.transport == Transport::Stream && !self.probed.is_empty();
        match legacy.filter(|_| died_of_probe) {
            Some(legacy) if self.respawn.take() => {
                // A second question of that kind would kill the second process.
                self.second_probe = Once::Spent;
                self.state = State::ExpectInitialize(legacy);
                self.shaken = self.shaken.with(legacy);
                Action::Respawn(legacy)
            }
            _ => self.fail(ConnectError::Exited),
        }
    }

    fn look_again(&mut self) -> Action {
        let modern = self.ours.newest(Era::Modern);
        match modern.filter(|_| self.probed.is_empty()) {
            Some(modern) => self.probe(modern),
            None => self.fail(ConnectError::Contradicted),
        }
    }

    /// Tries a handshake; without one, or if it was tried before, fails for this reason.
    fn fall_back(&mut self, why: ConnectError) -> Action {
        let untried = self.ours.newest(Era::Legacy);
        let untried = untried.filter(|legacy| !self.shaken.contains(*legacy));
        self.refusal.get_or_insert(why);
        match untried {
            Some(legacy) => self.shake(legacy),
            None => self.open_sse().unwrap_or_else(|| self.give_up()),
        }
    }

    /// Looks for HTTP+SSE, if the handshake was refused as its servers do, once.
    fn open_sse(&mut self) -> Option<Action> {
        let asked = self.sse_fits.take()?;
        self.sse.take().then(|| {
            self.state = State::ExpectEndpoint(asked);
            Action::OpenSse
        })
    }

    /// The server is modern; a handshake makes sense only for what it lists.
    fn fall_back_to_listed(&mut self, theirs: &[String]) -> Action {
        match self.common(theirs).newest(Era::Legacy) {
            Some(legacy) if !self.shaken.contains(legacy) => self.shake(legacy),
            _ => self.fail(ConnectError::NoCommonRevision(NoCommonRevision {
                ours: self.ours,
                theirs: theirs.to_vec(),
            })),
        }
    }

    fn common(&self, theirs: &[String]) -> Revisions {
        self.ours.common(Revisions::known(theirs))
    }

    fn probe(&mut self, revision: Revision) -> Action {
        self.state = State::ExpectDiscover;
        self.probed = self.probed.with(revision);
        // Silence tells of the legacy era. Where that would not do, the server may take its time.
        let has_else = self.ours.newest(Era::Legacy).is_some();
        let timeout = match self.transport {
            Transport::Stream => has_else.then_some(self.probe_timeout),
            Transport::Http => None,
        };
        Action::Discover { revision, timeout }
    }

    fn shake(&mut self, revision: Revision) -> Action {
        self.state = State::ExpectInitialize(revision);
        self.shaken = self.shaken.with(revision);
        Action::Initialize(revision)
    }

    fn done(&mut self, revision: Revision) -> Action {
        self.state = State::Done;
        Action::Done(revision)
    }

    fn give_up(&mut self) -> Action {
        let why = self.refusal.take();
        self.fail(why.unwrap_or(ConnectError::Malformed))
    }

    fn fail(&mut self, why: ConnectError) -> Action {
        self.state = State::Failed;
        Action::Failed(why)
    }
}

/// Codes that no legacy server sends with this meaning.
fn is_modern_code(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::HEADER_MISMATCH
            | ErrorCode::MISSING_CLIENT_CAPABILITY
            | ErrorCode::UNSUPPORTED_VERSION
    )
}

/// What an error says is supported, if it says so in the way of the specification.
fn listed(error: Option<&ErrorObject>) -> Option<Vec<String>> {
    #[derive(Deserialize)]
    struct Data {
        supported: Vec<String>,
    }
    let data: Data = error?.data.as_ref()?.parse().ok()?;
    Some(data.supported).filter(|supported| !supported.is_empty())
}

#[cfg(test)]
mod tests;
