//! `WWW-Authenticate`: every challenge of every header (RFC 9110, 11.6.1).
//!
//! A comma separates both challenges and their parameters, so the parser looks ahead to tell which.
//! A truncated header is used as far as it is valid.

use http::HeaderMap;
use http::header::WWW_AUTHENTICATE;

use super::scope::Scopes;

/// The most challenges that are parsed, and the most parameters of one.
const MAX: usize = 32;

/// One challenge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    /// Such as `Bearer`, as it was written; its case does not matter.
    pub scheme: String,
    /// What some schemes have instead of parameters.
    pub token: Option<String>,
    /// Names in lower case, values unquoted, in order.
    pub parameters: Vec<(String, String)>,
}

impl Challenge {
    /// All challenges of a response.
    pub fn all(headers: &HeaderMap) -> Vec<Self> {
        let values = headers.get_all(WWW_AUTHENTICATE).iter();
        let texts = values.filter_map(|value| value.to_str().ok());
        texts.flat_map(Self::parse).take(MAX).collect()
    }

    /// The challenges of one header.
    pub fn parse(text: &str) -> Vec<Self> {
        let mut parser = Parser { rest: text };
        let mut challenges = Vec::new();
        while challenges.len() < MAX {
            match parser.challenge() {
                Some(challenge) => challenges.push(challenge),
                None => break,
            }
        }
        challenges
    }

    /// The value of a parameter, by its name in lower case.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let mut found = self.parameters.iter().filter(|(known, _)| known == name);
        found.next().map(|(_, value)| value.as_str())
    }

    fn is(&self, scheme: &str) -> bool {
        self.scheme.eq_ignore_ascii_case(scheme)
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn challenge(&mut self) -> Option<Challenge> {
        self.skip(&[' ', '\t', ',']);
        let scheme = self.token()?.to_owned();
        let mut challenge = Challenge { scheme, token: None, parameters: Vec::new() };
        if !self.rest.starts_with([' ', '\t']) {
            return Some(challenge);
        }
        self.skip(&[' ', '\t']);
        challenge.token = self.token68();
        if challenge.token.is_none() {
            while let Some(parameter) = self.parameter() {
                if challenge.parameters.len() < MAX {
                    challenge.parameters.push(parameter);
                }
            }
        }
        Some(challenge)
    }

    fn skip(&mut self, characters: &[char]) {
        self.rest = self.rest.trim_start_matches(characters);
    }

    fn token(&mut self) -> Option<&'a str> {
        let end = self.rest.find(|character| !is_token(character)).unwrap_or(self.rest.len());
        let (token, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!token.is_empty()).then_some(token)
    }

    /// Only if a comma or the end follows: `a=b` is a parameter, `abc==` is not.
    fn token68(&mut self) -> Option<String> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "-._~+/".contains(c);
        let body = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let padding = self.rest[body..].bytes().take_while(|byte| *byte == b'=').count();
        let (token, rest) = self.rest.split_at(body + padding);
        let rest = rest.trim_start_matches([' ', '\t']);
        if body == 0 || !(rest.is_empty() || rest.starts_with(',')) {
            return None;
        }
        self.rest = rest;
        Some(token.to_owned())
    }

    /// The next parameter, if one follows; a scheme is left unread.
    fn parameter(&mut self) -> Option<(String, String)> {
        let before = self.rest;
        self.skip(&[' ', '\t', ',']);
        let found = self.name().and_then(|name| Some((name, self.value()?)));
        if found.is_none() {
            self.rest = before;
        }
        found
    }

    fn name(&mut self) -> Option<String> {
        let name = self.token()?.to_ascii_lowercase();
        self.skip(&[' ', '\t']);
        self.rest = self.rest.strip_prefix('=')?;
        self.skip(&[' ', '\t']);
        Some(name)
    }

    fn value(&mut self) -> Option<String> {
        if let Some(quoted) = self.rest.strip_prefix('"') {
            return self.quoted(quoted);
        }
        // Some servers omit the quotes around URLs.
        let is_part = |c: char| c.is_ascii_graphic() && !",\"".contains(c);
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (value, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!value.is_empty() && !rest.starts_with('"')).then(|| value.to_owned())
    }

    fn quoted(&mut self, text: &'a str) -> Option<String> {
        let mut value = String::new();
        let mut characters = text.char_indices();
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    self.rest = &text[at + 1..];
                    return Some(value);
                }
                '\\' => value.push(characters.next()?.1),
                character => value.push(character),
            }
        }
        None
    }
}

fn is_token(character: char) -> bool {
    character.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(character)
}

/// What the challenges of one response demand of an OAuth client.
#[derive(Debug, Clone, Default)]
pub(super) struct Demand {
    pub(super) resource_metadata: Option<String>,
    pub(super) scopes: Option<Scopes>,
    pub(super) error: Option<String>,
    pub(super) takes_bearer: bool,
    pub(super) takes_dpop: bool,
}

impl Demand {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let mut demand = Self::default();
        for challenge in Challenge::all(headers) {
            let (is_bearer, is_dpop) = (challenge.is("Bearer"), challenge.is("DPoP"));
            if !is_bearer && !is_dpop {
                continue;
            }
            demand.takes_bearer |= is_bearer;
            demand.takes_dpop |= is_dpop;
            let value = |name| challenge.parameter(name).map(str::to_owned);
            demand.resource_metadata =
                demand.resource_metadata.or_else(|| value("resource_metadata"));
            demand.error = demand.error.or_else(|| value("error"));
            demand.scopes =
                demand.scopes.or_else(|| challenge.parameter("scope").map(Scopes::parse));
        }
        demand.scopes = demand.scopes.filter(|scopes| !scopes.is_empty());
        demand
    }

    pub(super) fn is(&self, error: &str) -> bool {
        self.error.as_deref() == Some(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A challenge in one line: scheme, token, parameters.
    fn show(challenge: &Challenge) -> String {
        let parameters =
            challenge.parameters.iter().map(|(name, value)| format!(" {name}={value}"));
        let token = challenge.token.iter().map(|token| format!(" ({token})"));
        challenge.scheme.clone() + &token.chain(parameters).collect::<String>()
    }

    #[test]
    fn headers_apart() {
        fn check(text: &str, expected: &[&str]) {
            let shown: Vec<_> = Challenge::parse(text).iter().map(show).collect();
            assert_eq!(shown, expected, "{text}");
        }
        check("Bearer", &["Bearer"]);
        check("", &[]);
        check(" , ,", &[]);
        check(r#"Bearer realm="x""#, &["Bearer realm=x"]);
        check(r#"Bearer a=1, b="2", c=3"#, &["Bearer a=1 b=2 c=3"]);
        check(
            r#"Basic realm="a, b", Bearer scope="x y""#,
            &["Basic realm=a, b", "Bearer scope=x y"],
        );
        check("Basic, Bearer", &["Basic", "Bearer"]);
        check("Negotiate, Bearer a=b", &["Negotiate", "Bearer a=b"]);
        check("Negotiate YWJj==, Bearer a=b", &["Negotiate (YWJj==)", "Bearer a=b"]);
        check("Negotiate YWJj , DPoP algs=\"ES256\"", &["Negotiate (YWJj)", "DPoP algs=ES256"]);
        check(r#"Bearer A = "q\"uo\\te" ,b=c"#, &[r#"Bearer a=q"uo\te b=c"#]);
        check(
            "Bearer resource_metadata=https://a/b?c=d, x=y",
            &["Bearer resource_metadata=https://a/b?c=d x=y"],
        );
        check(r#"Bearer a="b" DPoP c="d""#, &["Bearer a=b", "DPoP c=d"]);
        check(r#"Bearer a="never ends"#, &["Bearer", "a"]);
        check("Bearer ,a=b", &["Bearer a=b"]);
        check("\u{0}Bearer", &[]);
    }

    #[test]
    fn demands() {
        fn check(
            values: &[&str],
            expected: (Option<&str>, Option<&str>, Option<&str>, bool, bool),
        ) {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(WWW_AUTHENTICATE, value.parse().unwrap());
            }
            let demand = Demand::of(&headers);
            let scopes = demand.scopes.map(|scopes| scopes.to_string());
            let (metadata, error) = (demand.resource_metadata, demand.error);
            let seen = (metadata.as_deref(), scopes.as_deref(), error.as_deref());
            let seen = (seen.0, seen.1, seen.2, demand.takes_bearer, demand.takes_dpop);
            assert_eq!(seen, expected, "{values:?}");
        }
        check(&[], (None, None, None, false, false));
        check(&["Basic resource_metadata=\"https://evil\""], (None, None, None, false, false));
        check(&["bearer scope=\"a b\""], (None, Some("a b"), None, true, false));
        check(&["Bearer scope=\"\""], (None, None, None, true, false));
        check(
            &["Basic realm=x", "Bearer error=\"e\"", "DPoP resource_metadata=\"u\", error=\"f\""],
            (Some("u"), None, Some("e"), true, true),
        );
        check(&["Basic, Bearer resource_metadata=\"u\""], (Some("u"), None, None, true, false));
    }

    #[test]
    fn bounded() {
        assert_eq!(Challenge::parse(&"Bearer, ".repeat(10_000)).len(), MAX);
        let many = format!("Bearer {}", "a=b, ".repeat(10_000));
        assert_eq!(Challenge::parse(&many)[0].parameters.len(), MAX);
    }
}
