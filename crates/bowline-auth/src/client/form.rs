//! Forms and queries: names and values, percent-encoded.

use std::fmt;

use super::secret::Secret;

/// The parameters of a POST to an authorization server, or of its URL's query.
#[derive(Clone, Default)]
pub(super) struct Form(Vec<(&'static str, String)>);

impl Form {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.0.push((name, value.into()));
        self
    }

    pub(super) fn with_some<T: Into<String>>(self, name: &'static str, value: Option<T>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Adds a value that must not appear in an error message.
    pub(super) fn with_secret(self, name: &'static str, value: &Secret) -> Self {
        self.with(name, value.expose())
    }

    pub(super) fn encode(&self) -> String {
        let mut out = String::new();
        for (name, value) in &self.0 {
            if !out.is_empty() {
                out.push('&');
            }
            encode_into(name, &mut out);
            out.push('=');
            encode_into(value, &mut out);
        }
        out
    }

    /// Redacts secrets of this form from a peer's text.
    pub(super) fn redact(&self, text: &str) -> String {
        let pairs = self.0.iter().map(|(name, value)| (*name, value.as_str()));
        redact(pairs, text)
    }
}

/// Whether a parameter of a token request must not be shown.
pub(super) fn is_confidential(name: &str) -> bool {
    let public = ["grant_type", "client_id", "resource", "scope", "redirect_uri"];
    !public.contains(&name) && !name.ends_with("_type")
}

/// Redacts the confidential values of a form from a text.
pub(super) fn redact<'a>(form: impl IntoIterator<Item = (&'a str, &'a str)>, text: &str) -> String {
    let mut text = text.to_owned();
    for (name, value) in form {
        if is_confidential(name) && value.len() > 3 {
            text = text.replace(value, "…");
        }
    }
    text
}

impl fmt::Debug for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// Percent-encodes everything but letters, digits and `-._~`, as fits a form, a query, and the
/// user and password of `client_secret_basic` (RFC 6749, 2.3.1).
pub(super) fn encode_into(text: &str, out: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let digit = |value: u8| char::from(b"0123456789ABCDEF"[usize::from(value & 15)]);
            out.extend(['%', digit(byte >> 4), digit(byte)]);
        }
    }
}

pub(super) fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    encode_into(text, &mut out);
    out
}

/// Decodes a query; `None` if a name or value is not percent-encoded UTF-8.
pub(super) fn decode(query: &str) -> Option<Vec<(String, String)>> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode_part(name)?, decode_part(value)?))
        })
        .collect()
}

fn decode_part(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(bytes.next())?, digit(bytes.next())?);
                u8::try_from(high * 16 + low).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoding_round_trips() {
        let form = Form::new().with("a", "x y+z&=%é\n").with_some("b", None::<&str>).with("c", "");
        assert_eq!(form.encode(), "a=x%20y%2Bz%26%3D%25%C3%A9%0A&c=");
        let pairs = decode(&form.encode()).unwrap();
        assert_eq!(pairs, [("a".into(), "x y+z&=%é\n".into()), ("c".into(), String::new())]);
        assert_eq!(decode("a=1+2&&b").unwrap().len(), 2);
    }

    #[test]
    fn broken_queries() {
        for query in ["a=%", "a=%1", "a=%zz", "a=%ff", "%c3=1", "a=%+1"] {
            assert_eq!(decode(query), None, "{query}");
        }
    }

    #[test]
    fn secrets_are_redacted() {
        let form = Form::new().with("grant_type", "refresh_token").with("refresh_token", "r-123");
        assert_eq!(form.redact("no refresh_token r-123 here"), "no refresh_token … here");
        assert!(!format!("{form:?}").contains("r-123"));
    }
}
