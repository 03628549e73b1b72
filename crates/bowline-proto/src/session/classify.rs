//! The era of a message, and the rules under which it is served.
//!
//! The body decides first; headers are checked against it. A request that claims a protocol version
//! in `_meta` is modern wherever it arrives, even in the middle of a session. Everything else is
//! legacy, with one exception: over HTTP, a header may claim a modern version that the body lacks.
//!
//! [`classify`] is a pure function of [`Facts`]. Whether a legacy message is allowed *now* is
//! decided by [`Lifecycle`](super::Lifecycle).
//!
//! Two choices that the specification leaves open:
//! - `initialize` with an unknown header is a handshake. The header has no meaning before one, and
//!   clients of drafts send odd values.
//! - `initialize` with a session id opens another session; the old one may have ended.

use crate::params::Params;

use super::claim::{CAPABILITIES_KEY, Claim, Member, VERSION_KEY};
use crate::error::{ErrorCode, ErrorObject};
use crate::revision::{Era, Offer, Revision};
use crate::wire::Message;

/// How messages travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transport {
    /// Pipes and the like: one ordered stream in each direction, no headers.
    Stream,
    /// Streamable HTTP: an exchange for each message, with headers.
    Http,
}

/// The kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind<'a> {
    /// With this method.
    Request(&'a str),
    /// With this method.
    Notification(&'a str),
    /// An answer or a fault.
    Answer,
}

/// Everything that determines the class of a message.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    /// How it arrived.
    pub transport: Transport,
    /// What it is.
    pub kind: Kind<'a>,
    /// The claim in its body.
    pub claim: Claim<'a>,
    /// Whether it came in a batch.
    pub in_batch: bool,
    /// The header `MCP-Protocol-Version`.
    pub header: Option<&'a str>,
    /// Whether it came with the header `Mcp-Session-Id`.
    pub has_session_id: bool,
}

/// The rules of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// The revisions.
    pub offer: Offer,
    /// Whether legacy requests are served without a session.
    pub sessions: Sessions,
}

/// Whether legacy HTTP clients get a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sessions {
    /// `initialize` opens a session, and all later messages must name it.
    Required,
    /// There are no sessions: each request stands alone, and handlers cannot ask the client.
    None,
}

/// How a message is served.
#[derive(Debug, Clone, PartialEq)]
pub enum Class {
    /// On its own, in this revision.
    Modern(Revision),
    /// It opens a session, if [`Offer::answer_initialize`] finds a revision. Over HTTP, it is
    /// rejected with 400.
    LegacyInitialize,
    /// In its session. Unknown sessions are rejected with 404; a stream is its own session.
    LegacySession,
    /// On its own, by the rules of this legacy revision.
    LegacyStateless(Revision),
    /// Not at all.
    Refused(Refusal),
}

/// Why a message is not served. A rejected notification on a stream is dropped.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// The error to answer with.
    pub error: ErrorObject,
    /// The status over HTTP.
    pub status: RefusalStatus,
}

/// The HTTP status of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalStatus {
    /// 400.
    BadRequest,
    /// 404: the method does not exist.
    NotFound,
}

impl RefusalStatus {
    /// The number.
    pub const fn as_u16(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::NotFound => 404,
        }
    }
}

impl<'a> Kind<'a> {
    /// What a message is.
    pub fn of(message: &'a Message<'_>) -> Self {
        match message {
            Message::Request(request) => Self::Request(&request.method),
            Message::Notification(notification) => Self::Notification(&notification.method),
            Message::Response(_) | Message::Fault(_) => Self::Answer,
        }
    }
}

impl<'a> Facts<'a> {
    /// The facts of a message that came alone on a stream.
    pub fn on_stream(kind: Kind<'a>, params: &Params<'a>) -> Self {
        Self {
            transport: Transport::Stream,
            kind,
            claim: params.claim(),
            in_batch: false,
            header: None,
            has_session_id: false,
        }
    }
}

/// Determines how a message is served.
pub fn classify(rules: &Rules, facts: &Facts<'_>) -> Class {
    let outcome = if facts.in_batch {
        classify_batched(rules, facts)
    } else if claims_modern(facts) {
        check_modern(rules.offer, facts).map(Class::Modern)
    } else {
        classify_legacy(rules, facts)
    };
    outcome.unwrap_or_else(Class::Refused)
}

/// Whether the modern era removed the method.
fn is_removed(method: &str) -> bool {
    crate::method::find(method, Revision::LATEST).is_none() && crate::method::is_known(method)
}

fn claims_modern(facts: &Facts<'_>) -> bool {
    if facts.kind == Kind::Answer {
        return false;
    }
    if !facts.claim.is_absent() {
        return true;
    }
    let Some(header) = facts.header.filter(|_| !facts.has_session_id) else {
        return false;
    };
    match header.parse::<Revision>() {
        Ok(revision) => revision.is_modern(),
        Err(_) => facts.kind != Kind::Request("initialize"),
    }
}

/// The checks are in the order in which the specification ranks their errors.
fn check_modern(offer: Offer, facts: &Facts<'_>) -> Result<Revision, Refusal> {
    let (method, is_request) = match facts.kind {
        Kind::Request(method) => (method, true),
        Kind::Notification(method) => (method, false),
        Kind::Answer => ("", false),
    };
    let claimed = match (&facts.claim.version, facts.header) {
        (Member::Is(claimed), header) => {
            if facts.transport == Transport::Http && header != Some(claimed) {
                return Err(header_mismatch(header, claimed));
            }
            claimed.as_ref()
        }
        (Member::Malformed, _) => return Err(meta(method, VERSION_KEY, "must be a string")),
        // Notifications need no claim, so the header decides.
        (Member::Absent, Some(header)) if !is_request => header,
        (Member::Absent, _) if is_removed(method) => return Err(removed(method)),
        (Member::Absent, _) => return Err(meta(method, VERSION_KEY, "is missing")),
    };
    let revision = offer.accept_claim(claimed).map_err(Refusal::bad_request)?;
    if is_request {
        match facts.claim.capabilities {
            Member::Is(()) => {}
            Member::Absent => return Err(meta(method, CAPABILITIES_KEY, "is missing")),
            Member::Malformed => return Err(meta(method, CAPABILITIES_KEY, "must be an object")),
        }
    }
    if is_removed(method) {
        return Err(removed(method));
    }
    Ok(revision)
}

fn classify_legacy(rules: &Rules, facts: &Facts<'_>) -> Result<Class, Refusal> {
    if facts.kind == Kind::Request("initialize") {
        return Ok(Class::LegacyInitialize);
    }
    let Some(newest) = rules.offer.enabled().newest(Era::Legacy) else {
        return Err(no_legacy(facts.kind));
    };
    let asks_to_discover = facts.kind == Kind::Request("server/discover");
    if asks_to_discover && !facts.has_session_id {
        return Err(meta("server/discover", VERSION_KEY, "is missing"));
    }
    if facts.transport == Transport::Stream {
        return Ok(Class::LegacySession);
    }
    let header = facts.header.map(|header| legacy_header(rules.offer, header));
    let header = header.transpose()?;
    if facts.has_session_id {
        return Ok(Class::LegacySession);
    }
    if rules.sessions == Sessions::Required || facts.kind == Kind::Answer {
        return Err(no_session(facts.kind, newest));
    }
    let is_spoken = rules.offer.enabled().contains(Revision::UNSTATED);
    let assumed = if is_spoken { Revision::UNSTATED } else { newest };
    Ok(Class::LegacyStateless(header.unwrap_or(assumed)))
}

/// One revision has batches, and it predates the header: clients that send a batch leave it out.
fn classify_batched(rules: &Rules, facts: &Facts<'_>) -> Result<Class, Refusal> {
    if !facts.claim.is_absent() {
        return Err(Refusal::invalid_request(
            "a request that names its protocol version cannot be in a batch",
        ));
    }
    // The negotiated revision decides, which the session knows.
    if facts.transport == Transport::Stream || facts.has_session_id {
        return classify_legacy(rules, facts);
    }
    let is_batching = facts.header.is_none_or(|header| header == Revision::BATCHING.as_str());
    if !is_batching || !rules.offer.enabled().contains(Revision::BATCHING) {
        let message = format!("batches exist only in {}", Revision::BATCHING);
        return Err(Refusal::invalid_request(&message));
    }
    classify_legacy(rules, facts)
}

fn legacy_header(offer: Offer, header: &str) -> Result<Revision, Refusal> {
    let legacy = offer.enabled().of_era(Era::Legacy);
    let revision = header.parse().ok();
    revision.filter(|revision| legacy.contains(*revision)).ok_or_else(|| {
        let message =
            format!("MCP-Protocol-Version: unknown version {header:?}; expected one of {legacy}");
        Refusal::invalid_request(&message)
    })
}

fn no_session(kind: Kind<'_>, newest: Revision) -> Refusal {
    let what = match kind {
        Kind::Request(method) | Kind::Notification(method) => method,
        Kind::Answer => "an answer",
    };
    Refusal::invalid_request(&format!(
        "{what}: Mcp-Session-Id is missing; help: initialize a session ({newest} or older)"
    ))
}

fn no_legacy(kind: Kind<'_>) -> Refusal {
    match kind {
        Kind::Request(method) => meta(method, VERSION_KEY, "is missing"),
        Kind::Notification(method) => Refusal::invalid_request(&format!(
            "{method}: needs a handshake, which this server does not support"
        )),
        Kind::Answer => Refusal::invalid_request("an answer without a question"),
    }
}

fn header_mismatch(header: Option<&str>, claimed: &str) -> Refusal {
    let message = match header {
        Some(header) => format!("MCP-Protocol-Version: {header:?}, but the body says {claimed:?}"),
        None => format!("MCP-Protocol-Version is missing; the body says {claimed:?}"),
    };
    Refusal::bad_request(ErrorObject::new(ErrorCode::HEADER_MISMATCH, message))
}

fn meta(method: &str, key: &str, what: &str) -> Refusal {
    let message = format!("{method}: params._meta[{key:?}] {what}");
    Refusal::bad_request(ErrorObject::invalid_params(message))
}

fn removed(method: &str) -> Refusal {
    Refusal { error: ErrorObject::method_not_found(method), status: RefusalStatus::NotFound }
}

impl Refusal {
    fn bad_request(error: ErrorObject) -> Self {
        Self { error, status: RefusalStatus::BadRequest }
    }

    fn invalid_request(message: &str) -> Self {
        Self::bad_request(ErrorObject::invalid_request(message))
    }
}

#[cfg(test)]
mod tests;
