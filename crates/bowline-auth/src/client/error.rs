//! Why there is no token: which step failed, what was received, what was expected.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// Why a client could not get access.
///
/// It never contains a secret: URLs are shown without their query, and secrets that a peer repeats
/// are redacted.
#[derive(Clone)]
pub struct AuthError {
    step: Step,
    reason: Reason,
    received: String,
    expected: String,
    code: Option<String>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

/// A step of the authorization flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Building an [`OAuth`](super::OAuth).
    Setup,
    /// A request to the MCP server, with or without a token.
    Request,
    /// Fetching the protected resource's metadata (RFC 9728).
    ResourceMetadata,
    /// Choosing one of the authorization servers.
    ServerChoice,
    /// Fetching the authorization server's metadata (RFC 8414, OpenID Connect discovery).
    ServerMetadata,
    /// Getting a client id.
    Registration,
    /// The user's login.
    Login,
    /// Checking the parameters of the redirect.
    Callback,
    /// Getting an assertion from the identity provider or the workload.
    Assertion,
    /// Requesting a token.
    Token,
    /// Refreshing a token.
    Refresh,
    /// Storing and loading credentials.
    Store,
}

/// What can be done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The settings do not fit this server: change them.
    Settings,
    /// A peer cannot be reached or is failing: try later.
    Unavailable,
    /// A peer's response is not valid: its operator has to fix it.
    Broken,
    /// Continuing would be unsafe: a peer is not who it should be, or refers to a forbidden
    /// destination.
    Unsafe,
    /// The authorization server rejected the request.
    Refused,
    /// The user declined, or did not finish in time.
    Abandoned,
}

bowline_proto::debug_as_sentence!(AuthError);

impl AuthError {
    pub(super) fn new(
        step: Step,
        reason: Reason,
        received: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        let (received, expected) = (received.into(), expected.into());
        Self { step, reason, received, expected, code: None, source: None }
    }

    pub(super) fn with_source(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    pub(super) fn with_code(mut self, code: &str) -> Self {
        self.code = Some(code.to_owned());
        self
    }

    /// The step that failed.
    pub fn step(&self) -> Step {
        self.step
    }

    /// What can be done about it.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// What was received.
    pub fn received(&self) -> &str {
        &self.received
    }

    /// What was expected.
    pub fn expected(&self) -> &str {
        &self.expected
    }

    /// The OAuth error code, if an authorization server sent one, such as `invalid_grant`.
    pub fn code(&self) -> Option<&str> {
        self.code.as_deref()
    }
}

impl fmt::Display for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: received {}, expected {}", self.step, self.received, self.expected)
    }
}

impl Error for AuthError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Setup => "authorization settings",
            Self::Request => "request to the MCP server",
            Self::ResourceMetadata => "protected resource metadata",
            Self::ServerChoice => "choice of an authorization server",
            Self::ServerMetadata => "authorization server metadata",
            Self::Registration => "client registration",
            Self::Login => "login",
            Self::Callback => "redirect after the login",
            Self::Assertion => "assertion",
            Self::Token => "token request",
            Self::Refresh => "token refresh",
            Self::Store => "credential store",
        })
    }
}

/// The most characters of a peer's text in a message.
const MAX_QUOTED: usize = 160;

/// A peer's text for a message: quoted, escaped and truncated.
pub(super) fn quote(text: &str) -> String {
    let mut cut: String = text.chars().take(MAX_QUOTED).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    format!("{cut:?}")
}

/// A list of a peer's words for a message.
pub(super) fn quote_all<T: AsRef<str>>(words: &[T]) -> String {
    let words: Vec<_> = words.iter().take(8).map(|word| quote(word.as_ref())).collect();
    if words.is_empty() { "an empty list".to_owned() } else { words.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_step_received_and_expected() {
        let error = AuthError::new(Step::Token, Reason::Broken, quote("a\nb"), "a token");
        assert_eq!(error.to_string(), r#"token request: received "a\nb", expected a token"#);
        assert_eq!((error.step(), error.reason()), (Step::Token, Reason::Broken));
    }

    #[test]
    fn long_texts_are_cut() {
        assert!(quote(&"é".repeat(5000)).chars().count() <= MAX_QUOTED + 3);
        assert_eq!(quote_all::<&str>(&[]), "an empty list");
        assert_eq!(quote_all(&["a", "b"]), r#""a", "b""#);
    }
}
