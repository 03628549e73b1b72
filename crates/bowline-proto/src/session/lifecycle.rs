//! The lifecycle of a connection or session on the server: which messages are allowed when.
//!
//! A handshake opens the legacy half of a connection; modern requests need none and are served at
//! any time. A message in the wrong order does not end the connection: it gets an error that says
//! what is expected, because clients probe what a server speaks.

use crate::params::Params;

use super::classify::{Class, Facts, Kind, Rules, Sessions, classify};
use crate::error::ErrorObject;
use crate::revision::{Era, Offer, Revision};

/// What a server expects on the legacy half of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The first message of a handshake, if there will be one.
    ExpectInitialize,
    /// The last message of the handshake. Requests are already served, because some clients send
    /// them at once.
    ExpectInitialized(Revision),
    /// Anything.
    Ready(Revision),
    /// Nothing: it has ended.
    Closed,
}

/// How a request is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// On its own, in this revision.
    Modern(Revision),
    /// As the first message of a handshake: see [`Lifecycle::handle_initialize`].
    Initialize,
    /// Within the session, in its revision.
    Legacy(Revision),
}

/// What to do with a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaction {
    /// The handshake is complete: release what was held back.
    Ready,
    /// Act on it.
    Serve,
    /// Ignore it.
    Drop,
}

/// The lifecycle of a stream or of one HTTP session.
#[derive(Debug, Clone)]
pub struct Lifecycle {
    offer: Offer,
    phase: Phase,
}

impl Lifecycle {
    /// A connection without any messages yet.
    pub fn new(offer: Offer) -> Self {
        Self { offer, phase: Phase::ExpectInitialize }
    }

    /// What is expected next.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The revision of the handshake.
    pub fn revision(&self) -> Option<Revision> {
        match self.phase {
            Phase::ExpectInitialized(revision) | Phase::Ready(revision) => Some(revision),
            Phase::ExpectInitialize | Phase::Closed => None,
        }
    }

    /// Handles a request from a stream.
    ///
    /// # Errors
    /// When it is rejected; this is the answer.
    pub fn handle_request(
        &self,
        method: &str,
        params: &Params<'_>,
    ) -> Result<Admission, ErrorObject> {
        let rules = Rules { offer: self.offer, sessions: Sessions::Required };
        let facts = Facts::on_stream(Kind::Request(method), params);
        match classify(&rules, &facts) {
            Class::Modern(_) | Class::LegacyInitialize if self.phase == Phase::Closed => {
                Err(closed(method))
            }
            Class::Modern(revision) => Ok(Admission::Modern(revision)),
            Class::LegacyInitialize => Ok(Admission::Initialize),
            Class::LegacySession => self.handle_legacy_request(method).map(Admission::Legacy),
            Class::LegacyStateless(revision) => Ok(Admission::Legacy(revision)),
            Class::Refused(refusal) => Err(refusal.error),
        }
    }

    /// Handles a legacy request other than `initialize`.
    ///
    /// # Errors
    /// Before a handshake, except for `ping`, and after the end.
    pub fn handle_legacy_request(&self, method: &str) -> Result<Revision, ErrorObject> {
        match self.phase {
            Phase::ExpectInitialized(revision) | Phase::Ready(revision) => Ok(revision),
            Phase::ExpectInitialize => match self.offer.enabled().newest(Era::Legacy) {
                Some(revision) if method == "ping" => Ok(revision),
                _ => Err(self.too_early(method)),
            },
            Phase::Closed => Err(closed(method)),
        }
    }

    /// Handles `initialize` and returns the revision to answer with.
    ///
    /// # Errors
    /// When there has been a handshake, or the server speaks no legacy revision.
    pub fn handle_initialize(&mut self, requested: &str) -> Result<Revision, ErrorObject> {
        match self.phase {
            Phase::ExpectInitialize => {
                let revision = self.offer.answer_initialize(requested)?;
                self.phase = Phase::ExpectInitialized(revision);
                Ok(revision)
            }
            Phase::ExpectInitialized(revision) | Phase::Ready(revision) => {
                let message =
                    format!("initialize: this session is already initialized with {revision}");
                Err(ErrorObject::invalid_request(message))
            }
            Phase::Closed => Err(closed("initialize")),
        }
    }

    /// Handles a notification.
    ///
    /// `notifications/cancelled` is served in every phase, because it may cancel a modern request.
    pub fn handle_notification(&mut self, method: &str) -> Reaction {
        match (self.phase, method) {
            (Phase::Closed, _) => Reaction::Drop,
            (_, "notifications/cancelled") => Reaction::Serve,
            (Phase::ExpectInitialized(revision), "notifications/initialized") => {
                self.phase = Phase::Ready(revision);
                Reaction::Ready
            }
            (_, "notifications/initialized") | (Phase::ExpectInitialize, _) => Reaction::Drop,
            (Phase::ExpectInitialized(_) | Phase::Ready(_), _) => Reaction::Serve,
        }
    }

    /// Checks whether batches are allowed.
    ///
    /// # Errors
    /// When the handshake did not end in a revision that has batches.
    pub fn handle_batch(&self) -> Result<(), ErrorObject> {
        let batching = Revision::BATCHING;
        let message = match self.revision() {
            Some(revision) if revision.has_batches() => return Ok(()),
            Some(revision) => {
                format!("batches exist only in {batching}; this session speaks {revision}")
            }
            None => format!("batches exist only in {batching}, after initialize"),
        };
        Err(ErrorObject::invalid_request(message))
    }

    /// Whether the server may send a request or notification now.
    ///
    /// This does not apply to messages that belong to a modern request.
    pub fn may_send(&self, method: &str) -> bool {
        match self.phase {
            Phase::ExpectInitialize | Phase::Closed => false,
            // All legacy revisions, basic/lifecycle: only pings and logging before `initialized`.
            // The other two belong to requests that are being served.
            Phase::ExpectInitialized(_) => matches!(
                method,
                "ping"
                    | "notifications/message"
                    | "notifications/progress"
                    | "notifications/cancelled"
            ),
            Phase::Ready(_) => true,
        }
    }

    /// Ends the connection or session.
    pub fn close(&mut self) {
        self.phase = Phase::Closed;
    }

    fn too_early(&self, method: &str) -> ErrorObject {
        let modern = self.offer.enabled().of_era(Era::Modern);
        let or = if modern.is_empty() {
            String::new()
        } else {
            format!(", or a request that names its protocol version ({modern}) in params._meta")
        };
        let legacy = self.offer.enabled().of_era(Era::Legacy);
        let message = format!("{method}: expected initialize ({legacy}) first{or}");
        ErrorObject::invalid_request(message)
    }
}

fn closed(method: &str) -> ErrorObject {
    ErrorObject::invalid_request(format!("{method}: this session has ended"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;
    use crate::revision::Revisions;

    const R03: Revision = Revision::V2025_03_26;
    const R11: Revision = Revision::V2025_11_25;

    /// A server of all revisions after a handshake that asked for `revision`.
    fn expect_initialized(revision: Revision) -> Lifecycle {
        let mut lifecycle = Lifecycle::new(Offer::default());
        assert_eq!(lifecycle.handle_initialize(revision.as_str()), Ok(revision));
        lifecycle
    }

    fn ready(revision: Revision) -> Lifecycle {
        let mut lifecycle = expect_initialized(revision);
        let heard = lifecycle.handle_notification("notifications/initialized");
        assert_eq!(heard, Reaction::Ready);
        lifecycle
    }

    fn closed_early() -> Lifecycle {
        let mut lifecycle = Lifecycle::new(Offer::default());
        lifecycle.close();
        lifecycle
    }

    /// The same request in the four phases; `y` where it is served, `n` where it is refused.
    fn check(method: &str, params: &str, served: &str) {
        let phases =
            [Lifecycle::new(Offer::default()), expect_initialized(R11), ready(R11), closed_early()];
        let params = Params::of(Some(crate::raw::Raw::parse(params).unwrap()));
        let found: String = phases
            .iter()
            .map(|phase| match phase.handle_request(method, &params) {
                Ok(_) => 'y',
                Err(_) => 'n',
            })
            .collect();
        assert_eq!(found, served, "{method} {params:?}");
    }

    const MODERN: &str = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",
        "io.modelcontextprotocol/clientCapabilities":{}}}"#;

    #[test]
    fn requests_wait_for_the_handshake_unless_modern() {
        check("ping", "{}", "yyyn");
        check("tools/list", "{}", "nyyn");
        check("tools/list", MODERN, "yyyn");
        check("server/discover", MODERN, "yyyn");
        check("server/discover", "{}", "nnnn");
        check("ping", MODERN, "nnnn");
        check("initialize", MODERN, "nnnn");
    }

    #[test]
    fn an_early_request_is_told_what_is_expected() {
        let server = Lifecycle::new(Offer::default());
        let error = server.handle_request("tools/list", &Params::default()).unwrap_err();
        assert_eq!(error.code, ErrorCode::INVALID_REQUEST);
        for part in ["tools/list", "initialize (2024-11-05", "2026-07-28"] {
            assert!(error.message.contains(part), "{error}");
        }
    }

    #[test]
    fn a_handshake_happens_once() {
        for mut server in [expect_initialized(R11), ready(R11)] {
            let before = server.phase();
            assert_eq!(
                server.handle_request("initialize", &Params::default()),
                Ok(Admission::Initialize)
            );
            let error = server.handle_initialize("2024-11-05").unwrap_err();
            assert!(error.message.contains("2025-11-25"), "{error}");
            assert_eq!(server.phase(), before);
        }
        let mut modern = Lifecycle::new(Offer::new(Revisions::MODERN));
        let error = modern.handle_initialize("2025-11-25").unwrap_err();
        assert_eq!(error.code, ErrorCode::UNSUPPORTED_VERSION);
        assert_eq!(modern.phase(), Phase::ExpectInitialize);
    }

    #[test]
    fn the_server_speaks_up_only_when_ready() {
        let may = |method: &str| {
            let phases = [
                Lifecycle::new(Offer::default()),
                expect_initialized(R11),
                ready(R11),
                closed_early(),
            ];
            phases.map(|phase| phase.may_send(method))
        };
        assert_eq!(may("ping"), [false, true, true, false]);
        assert_eq!(may("notifications/message"), [false, true, true, false]);
        for method in ["sampling/createMessage", "notifications/tools/list_changed"] {
            assert_eq!(may(method), [false, false, true, false], "{method}");
        }
    }

    #[test]
    fn notifications_in_the_wrong_order_do_nothing() {
        let initialized = "notifications/initialized";
        let roots = "notifications/roots/list_changed";
        let cancelled = "notifications/cancelled";
        let mut server = Lifecycle::new(Offer::default());
        assert_eq!(server.handle_notification(initialized), Reaction::Drop);
        assert_eq!(server.handle_notification(roots), Reaction::Drop);
        assert_eq!(server.handle_notification(cancelled), Reaction::Serve);
        assert_eq!(server.phase(), Phase::ExpectInitialize);
        let mut server = ready(R11);
        assert_eq!(server.handle_notification(initialized), Reaction::Drop);
        assert_eq!(server.handle_notification(roots), Reaction::Serve);
        server.close();
        assert_eq!(server.handle_notification(cancelled), Reaction::Drop);
    }

    #[test]
    fn batches_need_their_revision() {
        assert!(Lifecycle::new(Offer::default()).handle_batch().is_err());
        for revision in Revisions::LEGACY.iter() {
            let is_allowed = ready(revision).handle_batch().is_ok();
            assert_eq!(is_allowed, revision == R03, "{revision}");
        }
    }
}
