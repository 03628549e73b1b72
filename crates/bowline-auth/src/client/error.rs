//! Why there is no token: which step failed, what came, what should have come.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// Why a client could not be let in.
///
/// It never holds a secret: of addresses it keeps no query, and in texts of a peer whatever was
/// sent to it in confidence is blotted out.
#[derive(Debug, Clone)]
pub struct AuthError {
    step: Step,
    reason: Reason,
    received: String,
    expected: String,
    code: Option<String>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

/// A step on the way to a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Putting an [`OAuth`](super::OAuth) together.
    Setup,
    /// Asking the MCP server, with or without a token.
    Request,
    /// Reading the protected resource's metadata (RFC 9728).
    ResourceMetadata,
    /// Choosing one of the authorization servers.
    ServerChoice,
    /// Reading the authorization server's metadata (RFC 8414, OpenID Connect discovery).
    ServerMetadata,
    /// Getting a client id.
    Registration,
    /// Asking a person.
    Login,
    /// Checking what came back with the redirect.
    Callback,
    /// Asking the identity provider for an assertion, or the workload for its own.
    Assertion,
    /// Asking for a token.
    Token,
    /// Renewing a token.
    Refresh,
    /// Keeping and finding credentials.
    Store,
}

/// What can be done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The settings do not fit this server: change them.
    Settings,
    /// Somebody cannot be reached or has trouble: try later.
    Unavailable,
    /// A peer says what makes no sense: its operator has to look at it.
    Broken,
    /// Going on would be dangerous: somebody is not who they should be, or points where one must
    /// not go.
    Unsafe,
    /// The authorization server says no.
    Refused,
    /// The person said no, or nothing, for too long.
    Abandoned,
}

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

    /// What came.
    pub fn received(&self) -> &str {
        &self.received
    }

    /// What should have come.
    pub fn expected(&self) -> &str {
        &self.expected
    }

    /// The error code of OAuth, where an authorization server gave one, such as `invalid_grant`.
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
            Self::ServerChoice => "choice of the authorization server",
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

/// A peer's text for a message: quoted, escaped, cut where it gets long.
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
