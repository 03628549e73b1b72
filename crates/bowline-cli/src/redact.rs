//! What must not be shown or kept: passwords, tokens, keys.

/// What stands in the place of a secret.
pub(crate) const HIDDEN: &str = "[redacted]";

/// Members of JSON, parameters of URLs and headers whose values are secret.
const NAMES: [&str; 27] = [
    "access_token",
    "accesstoken",
    "api-key",
    "api_key",
    "apikey",
    "assertion",
    "auth",
    "authorization",
    "bearer",
    "client_assertion",
    "client_secret",
    "clientsecret",
    "code_verifier",
    "cookie",
    "credential",
    "credentials",
    "id_token",
    "key",
    "passwd",
    "password",
    "private_key",
    "refresh_token",
    "secret",
    "set-cookie",
    "sig",
    "token",
    "x-api-key",
];

/// What is secret in a URL: the user and the password, and parameters whose names say so.
pub(crate) fn secrets_in_url(url: &str) -> Vec<String> {
    let (rest, query) = url.split_once('?').unwrap_or((url, ""));
    let query = query.split('#').next().unwrap_or_default();
    let mut found = Vec::new();
    // A name is no secret where there is a password beside it.
    if let Some(user) = userinfo(rest) {
        found.push(user.split_once(':').map_or(user, |(_, password)| password).to_owned());
    }
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        if is_secret_name(name) {
            found.push(value.to_owned());
        }
    }
    found.retain(|secret| !secret.is_empty());
    found
}

/// A URL without what is secret in it.
pub(crate) fn url(url: &str) -> String {
    let (rest, query) = match url.split_once('?') {
        Some((rest, query)) => (rest, Some(query)),
        None => (url, None),
    };
    let rest = match userinfo(rest) {
        Some(user) => rest.replacen(&format!("{user}@"), &format!("{HIDDEN}@"), 1),
        None => rest.to_owned(),
    };
    let Some(query) = query else { return rest };
    let pairs: Vec<String> = query
        .split('&')
        .map(|pair| match pair.split_once('=') {
            Some((name, _)) if is_secret_name(name) => format!("{name}={HIDDEN}"),
            _ => pair.to_owned(),
        })
        .collect();
    format!("{rest}?{}", pairs.join("&"))
}

/// What stands before the host: a user, and a password after a colon.
pub(crate) fn userinfo(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '#']).next()?;
    authority.rsplit_once('@').map(|(user, _)| user)
}

/// Whether the value of a member of a message is secret. Some names tell less there than in a URL.
fn is_secret_member(name: &str) -> bool {
    let tells_little = ["key", "auth", "sig", "assertion", "credential", "credentials", "bearer"];
    is_secret_name(name) && !tells_little.contains(&name.to_ascii_lowercase().as_str())
}

/// Whether the value under a name is secret.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    NAMES.contains(&name.as_str())
        || ["token", "secret", "password", "apikey", "api_key"]
            .iter()
            .any(|end| name.ends_with(end) && !is_harmless(&name))
}

/// Names that end like a secret and are none.
fn is_harmless(name: &str) -> bool {
    ["progresstoken", "max_tokens", "maxtokens"].contains(&name)
}

/// Takes secrets out of text.
#[derive(Debug, Default, Clone)]
pub(crate) struct Redactor {
    secrets: Vec<String>,
}

/// What is shorter is found in too many innocent places.
const SHORTEST: usize = 4;

impl Redactor {
    pub(crate) fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut secrets: Vec<String> =
            secrets.into_iter().filter(|secret| secret.len() >= SHORTEST).collect();
        // The longest first: one may hold another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        Self { secrets }
    }

    /// Text without the secrets that are known.
    pub(crate) fn text(&self, text: &str) -> String {
        let mut clean = text.to_owned();
        for secret in &self.secrets {
            if clean.contains(secret.as_str()) {
                clean = clean.replace(secret.as_str(), HIDDEN);
            }
            // As it looks inside a JSON string.
            let quoted = serde_json::to_string(secret).unwrap_or_default();
            let quoted = quoted.trim_matches('"');
            if quoted != secret && clean.contains(quoted) {
                clean = clean.replace(quoted, HIDDEN);
            }
        }
        clean
    }

    /// JSON text without the secrets that are known, and without the values of members whose names
    /// say that they are secret. All else stays to the letter.
    pub(crate) fn json(&self, text: &str) -> String {
        members(&self.text(text))
    }
}

/// Replaces the string values of secret members.
fn members(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('"') {
        let Some(end) = end_of_string(&rest[start..]) else { break };
        let end = start + end;
        let name = &rest[start + 1..end - 1];
        clean.push_str(&rest[..end]);
        rest = &rest[end..];
        let after = rest.trim_start();
        let Some(value) = after.strip_prefix(':').map(str::trim_start) else { continue };
        if !value.starts_with('"') || !is_secret_member(name) {
            continue;
        }
        let Some(length) = end_of_string(value) else { break };
        clean.push_str(&rest[..rest.len() - value.len()]);
        clean.push_str(&format!("\"{HIDDEN}\""));
        rest = &value[length..];
    }
    clean.push_str(rest);
    clean
}

/// Where the string that begins here ends.
fn end_of_string(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_lose_passwords_and_keys() {
        for (full, clean) in [
            ("https://example.com/mcp", "https://example.com/mcp"),
            ("https://bob:pw@example.com/mcp", "https://[redacted]@example.com/mcp"),
            ("https://a.b/mcp?api_key=s3cret&x=1", "https://a.b/mcp?api_key=[redacted]&x=1"),
            ("https://a.b/mcp?userToken=s3cret", "https://a.b/mcp?userToken=[redacted]"),
        ] {
            assert_eq!(url(full), clean);
        }
        let found = secrets_in_url("https://bob:hunter2@a.b/mcp?token=tok&y=2#z");
        assert_eq!(found, ["hunter2", "tok"]);
        assert_eq!(secrets_in_url("https://t0k@a.b/"), ["t0k"]);
    }

    #[test]
    fn messages_lose_known_secrets_and_secret_members() {
        let redactor = Redactor::new(["hunter2".to_owned(), "a\"b\\c".to_owned(), "x".to_owned()]);
        for (full, clean) in [
            (r#"{"a":"is hunter2","n":1.50}"#, r#"{"a":"is [redacted]","n":1.50}"#),
            (r#"{"a":"a\"b\\c"}"#, r#"{"a":"[redacted]"}"#),
            (
                r#"{"access_token" : "abc","b":["x"]}"#,
                r#"{"access_token" : "[redacted]","b":["x"]}"#,
            ),
            (r#"{"progressToken":"t1","token":7}"#, r#"{"progressToken":"t1","token":7}"#),
            (r#"{"key":"size","auth":"x"}"#, r#"{"key":"size","auth":"x"}"#),
            (r#"{"v":"password","w":1}"#, r#"{"v":"password","w":1}"#),
            (r#"{"password":"a\"b"}"#, r#"{"password":"[redacted]"}"#),
            (r#"{"broken":"#, r#"{"broken":"#),
            (r#"{"password":"no end"#, r#"{"password":"no end"#),
        ] {
            assert_eq!(redactor.json(full), clean);
        }
    }
}
