//! How a client finds out which revisions a server speaks.
//!
//! A client that speaks both eras asks `server/discover`, which no legacy server knows, and falls
//! back to `initialize` on anything but a modern answer. Legacy servers react to an unknown method
//! before a handshake in many ways: with four different codes, garbage, silence or a crash. So no
//! code is taken to mean "legacy"; only the modern codes have a meaning.
//!
//! [`Connect`] returns what to do next as an [`Action`]; the caller reports the result as an
//! [`Event`]. It does not measure time: an action says how long its question may take, and
//! [`Calls`](super::Calls) applies the timeout and drops late answers.
//!
//! A rejection for another reason (authorization, rate limits, a broken server, the network) proves
//! nothing: the caller must remove the cause and connect again.

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
    /// The modern revisions that `server/discover` was tried with.
    probed: Revisions,
    /// The legacy revisions that `initialize` was tried with.
    shaken: Revisions,
    respawn: Once,
    sse: Once,
    /// The handshake that was rejected the way an HTTP+SSE server rejects it.
    sse_fits: Option<Revision>,
    second_probe: Once,
    /// A second attempt in a revision that the server rejected and yet lists.
    same_probe: Once,
    /// The error to report if nothing else works.
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

/// The default time that a process has to answer the first question.
///
/// Long enough for an interpreter to start; a silent legacy server costs this once.
pub const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

impl Connect {
    /// Starts with these revisions; see [`Preference::narrow`].
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

    /// Sets the deadline of the first question to a process.
    #[must_use]
    pub fn with_probe_timeout(mut self, timeout: Duration) -> Self {
        self.probe_timeout = timeout;
        self
    }

    /// Returns the first action. `known` is the revision of the last time, if it is remembered.
    ///
    /// With a modern one there is nothing left to do; with a legacy one the handshake comes at
    /// once. If that turns out to be wrong, the search starts again, once. An upgraded legacy
    /// server still accepts its handshake, so do not remember a legacy revision for more than a
    /// day.
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

    /// Handles the result of an action, and returns what to do next.
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
            // The server is modern and rejects something else, which a handshake would not change.
            Some(ErrorCode::HEADER_MISMATCH | ErrorCode::MISSING_CLIENT_CAPABILITY) => {
                return self.fail(ConnectError::Refused(rejection));
            }
            // An HTTP+SSE server does not answer with JSON-RPC here.
            Some(ErrorCode::METHOD_NOT_FOUND) => self.sse = Once::Spent,
            _ => {}
        }
        self.fall_back(ConnectError::Refused(rejection))
    }

    /// Handles the error of a modern server that lists the revisions it speaks.
    fn choose(&mut self, theirs: &[String]) -> Action {
        let common = self.common(theirs);
        let mut modern = common.of_era(Era::Modern).iter();
        let untried = modern.rfind(|revision| !self.probed.contains(*revision));
        // Another replica may answer next.
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
        // Some servers reject and list their revisions instead of offering one.
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

    /// Handles the exit of a process: an unknown question may crash it, at once or a little later.
    fn after_exit(&mut self) -> Action {
        let legacy = match self.state {
            State::ExpectInitialize(asked) => Some(asked),
            _ => self.ours.newest(Era::Legacy),
        };
        let died_of_probe = self.transport == Transport::Stream && !self.probed.is_empty();
        match legacy.filter(|_| died_of_probe) {
            Some(legacy) if self.respawn.take() => {
                // The same question would crash the new process, too.
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

    /// Tries a handshake; if there is none left to try, fails with this error.
    fn fall_back(&mut self, why: ConnectError) -> Action {
        let untried = self.ours.newest(Era::Legacy);
        let untried = untried.filter(|legacy| !self.shaken.contains(*legacy));
        self.refusal.get_or_insert(why);
        match untried {
            Some(legacy) => self.shake(legacy),
            None => self.open_sse().unwrap_or_else(|| self.give_up()),
        }
    }

    /// Tries HTTP+SSE once, if the handshake was rejected the way its servers do.
    fn open_sse(&mut self) -> Option<Action> {
        let asked = self.sse_fits.take()?;
        self.sse.take().then(|| {
            self.state = State::ExpectEndpoint(asked);
            Action::OpenSse
        })
    }

    /// Continues with a modern server: a handshake makes sense only for a revision that it lists.
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
        // Silence suggests a legacy server. If only a modern one will do, the server may take
        // longer.
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

/// Whether this code has a meaning that no legacy server gives it.
fn is_modern_code(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::HEADER_MISMATCH
            | ErrorCode::MISSING_CLIENT_CAPABILITY
            | ErrorCode::UNSUPPORTED_VERSION
    )
}

/// The supported revisions that an error lists, if it does so as specified.
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
