//! Scopes: ordered, each once, bounded.

use std::fmt;

use bowline_proto::scope::is_scope;
use serde::{Deserialize, Serialize};

/// The most scopes that are requested at once. More are dropped: each step up would be another
/// login for the user.
const MAX_SCOPES: usize = 100;

/// A set of scopes, in the order in which they were named.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Scopes(Vec<String>);

impl Scopes {
    /// Parses a `scope` parameter. Words that are not scopes are dropped.
    pub(super) fn parse(text: &str) -> Self {
        Self::of(text.split(' '))
    }

    pub(super) fn of<T: AsRef<str>>(words: impl IntoIterator<Item = T>) -> Self {
        let mut scopes = Self::default();
        for word in words {
            scopes.add(word.as_ref());
        }
        scopes
    }

    pub(super) fn add(&mut self, word: &str) {
        if is_scope(word) && !self.has(word) && self.0.len() < MAX_SCOPES {
            self.0.push(word.to_owned());
        }
    }

    pub(super) fn union(mut self, other: &Self) -> Self {
        for word in &other.0 {
            self.add(word);
        }
        self
    }

    pub(super) fn has(&self, word: &str) -> bool {
        self.0.iter().any(|scope| scope == word)
    }

    pub(super) fn covers(&self, other: &Self) -> bool {
        other.0.iter().all(|word| self.has(word))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The parameter; `None` if there are no scopes.
    pub(super) fn parameter(&self) -> Option<String> {
        (!self.is_empty()).then(|| self.to_string())
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

/// The sources of scopes for a token request.
#[derive(Debug, Default)]
pub(super) struct Sources<'a> {
    /// `scope` of the challenge.
    pub(super) challenge: Option<&'a Scopes>,
    /// What the application always wants.
    pub(super) wanted: Scopes,
    /// `scopes_supported` of the protected resource.
    pub(super) resource: Option<&'a Scopes>,
    /// What was requested before, at the same authorization server.
    pub(super) earlier: Scopes,
    /// `scopes_supported` of the authorization server, if a refresh token is wanted.
    pub(super) server: Option<&'a Scopes>,
}

/// The scope that grants a refresh token.
const OFFLINE_ACCESS: &str = "offline_access";

impl Sources<'_> {
    /// What to request: the challenge's scopes, or else all of the resource's, or else none; plus
    /// what was requested before, so that a step up loses nothing.
    pub(super) fn select(self) -> Scopes {
        let named = match (self.challenge, self.wanted.is_empty(), self.resource) {
            (Some(challenge), ..) => challenge.clone(),
            (None, true, Some(resource)) => resource.clone(),
            _ => Scopes::default(),
        };
        let mut scopes = self.earlier.union(&named).union(&self.wanted);
        // Alone it would narrow what the server grants by default.
        let is_offered = self.server.is_some_and(|server| server.has(OFFLINE_ACCESS));
        if is_offered && !scopes.is_empty() {
            scopes.add(OFFLINE_ACCESS);
        }
        scopes
    }
}

/// Whether the user must consent, because tokens will outlive the login (OpenID Connect Core, 11).
pub(super) fn is_offline(scopes: &Scopes) -> bool {
    scopes.has(OFFLINE_ACCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selection() {
        fn check(challenge: Option<&str>, resource: Option<&str>, earlier: &str, expected: &str) {
            let (challenge, resource) = (challenge.map(Scopes::parse), resource.map(Scopes::parse));
            let sources = Sources {
                challenge: challenge.as_ref(),
                resource: resource.as_ref(),
                earlier: Scopes::parse(earlier),
                ..Sources::default()
            };
            assert_eq!(sources.select().to_string(), expected);
        }
        check(Some("a"), Some("a b c"), "", "a");
        check(None, Some("a b c"), "", "a b c");
        check(None, None, "", "");
        check(Some("write"), Some("x"), "basic", "basic write");
        check(Some("a a  a"), None, "a", "a");
    }

    #[test]
    fn offline_access_only_where_offered() {
        fn check(wanted: &str, server: Option<&str>, expected: &str) {
            let server = server.map(Scopes::parse);
            let wanted = Scopes::parse(wanted);
            let sources = Sources { wanted, server: server.as_ref(), ..Sources::default() };
            let scopes = sources.select();
            assert_eq!(scopes.to_string(), expected);
            assert_eq!(is_offline(&scopes), expected.contains("offline"));
        }
        check("a", Some("a offline_access"), "a offline_access");
        check("a", Some("a"), "a");
        check("a", None, "a");
        check("", Some("offline_access"), "");
    }

    #[test]
    fn bounds_and_bad_words() {
        assert_eq!(Scopes::parse("a \"b\" c\\ d\u{e9} e\tf g").to_string(), "a g");
        let many = (0..5000).map(|n| n.to_string());
        assert_eq!(Scopes::of(many).0.len(), MAX_SCOPES);
        assert!(Scopes::parse("a b").covers(&Scopes::parse("b")));
        assert!(!Scopes::parse("a b").covers(&Scopes::parse("b c")));
        assert_eq!(Scopes::default().parameter(), None);
    }
}
