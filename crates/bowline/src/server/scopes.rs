//! Scopes: what a caller must be allowed in order to use a tool, prompt or resource.
//!
//! [`dispatch`](super::dispatch) checks them for every request of every transport. A transport
//! only says which [`Rights`] its callers have, and how a refusal travels.

use bowline_proto::error::ErrorObject;
use bowline_proto::scope::is_scope;

use super::error::BuildError;
use super::peer::Peer;

/// What one thing needs, each scope once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Scopes(Vec<String>);

/// Which scopes a sender has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rights {
    /// All of them: a pipe carries no tokens, and its client may use everything.
    Unlimited,
    /// Those of its principal; without a principal, none.
    #[cfg(feature = "http")]
    OfPrincipal,
}

impl Scopes {
    pub(crate) fn extend<S: Into<String>>(&mut self, scopes: impl IntoIterator<Item = S>) {
        for scope in scopes.into_iter().map(Into::into) {
            if !self.0.contains(&scope) {
                self.0.push(scope);
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[cfg(feature = "http")]
    pub(crate) fn as_slice(&self) -> &[String] {
        &self.0
    }

    #[cfg(feature = "http")]
    pub(crate) fn sort(&mut self) {
        self.0.sort();
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Whether a sender has all of them.
    #[cfg_attr(
        not(feature = "http"),
        expect(clippy::unused_self, reason = "without HTTP, every sender has all rights")
    )]
    pub(crate) fn are_granted_to(&self, peer: &Peer) -> bool {
        match peer.via.rights {
            Rights::Unlimited => true,
            #[cfg(feature = "http")]
            Rights::OfPrincipal => {
                let principal = peer.profile.principal.as_ref();
                self.iter().all(|scope| principal.is_some_and(|it| it.has_scope(scope)))
            }
        }
    }

    /// The refusal of a transport that has no status for it.
    pub(crate) fn to_error_object(&self) -> ErrorObject {
        ErrorObject::invalid_request(format!("this needs the scopes {}", self.0.join(" ")))
    }

    /// Whether a challenge can carry all of them.
    pub(crate) fn check(&self, kind: &'static str, name: &str) -> Result<(), BuildError> {
        match self.iter().find(|scope| !is_scope(scope)) {
            None => Ok(()),
            Some(scope) => {
                let (name, scope) = (name.to_owned(), scope.to_owned());
                Err(BuildError::Scope { kind, name, scope })
            }
        }
    }
}
