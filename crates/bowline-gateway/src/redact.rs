//! Removes passwords, tokens and keys from what is shown and recorded.

/// The placeholder for a secret.
pub const HIDDEN: &str = "[redacted]";

/// Names whose values are secret, in URLs, headers and messages.
const NAMES: [&str; 6] =
    ["authorization", "code_verifier", "cookie", "passwd", "private_key", "set-cookie"];
/// The same in URLs only: in a message these words mean less.
const NAMES_IN_URLS: [&str; 7] =
    ["assertion", "auth", "bearer", "credential", "credentials", "key", "sig"];
/// Names that end like this are secret, too.
const ENDS: [&str; 8] =
    ["_assertion", "api-key", "api_key", "apikey", "passphrase", "password", "secret", "token"];
/// Except these.
const HARMLESS: [&str; 1] = ["progresstoken"];

/// Whether the value under a name in a URL is secret.
fn is_secret_parameter(name: &str) -> bool {
    is_secret_name(name) || NAMES_IN_URLS.contains(&name.to_ascii_lowercase().as_str())
}

/// Whether the value under a name in a message is secret.
fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let name = name.as_str();
    NAMES.contains(&name) || ENDS.iter().any(|end| name.ends_with(end)) && !HARMLESS.contains(&name)
}

/// Headers whose values are always secret.
const HEADERS: [&str; 4] = ["dpop", "mcp-session-id", "proxy-authorization", "x-api-key"];

/// Whether the value of an HTTP header with this name is secret.
#[must_use]
pub fn is_secret_header(name: &str) -> bool {
    is_secret_name(name) || HEADERS.contains(&name)
}

/// Whether text mentions something whose value is secret.
#[must_use]
pub fn mentions_secret(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    NAMES.iter().chain(&ENDS).any(|name| text.contains(name))
}

/// The words of a command line without their secrets, and the secrets: values of options and
/// variables with telling names, headers, URLs, and whatever looks like a key.
#[must_use]
pub fn words<S: AsRef<str>>(words: &[S]) -> (Vec<String>, Vec<String>) {
    let (mut clean, mut secrets) = (Vec::new(), Vec::new());
    let mut hides_next = false;
    for word in words.iter().map(AsRef::as_ref) {
        let is_hidden = std::mem::take(&mut hides_next) && !word.starts_with("--");
        let (name, value) = match word.split_once(['=', ':']) {
            _ if is_hidden => ("", word),
            _ if word.contains("://") && !word.starts_with('-') => {
                let (shown, hidden) = split(word);
                clean.push(shown);
                secrets.extend(hidden);
                continue;
            }
            Some((name, value)) => (name, value),
            None => ("", word),
        };
        if is_hidden || is_secret_option(name) && !value.is_empty() || is_key(value) {
            let kept = &word[..word.len() - value.len()];
            let gap = if value.starts_with(' ') { " " } else { "" };
            clean.push(format!("{kept}{gap}{HIDDEN}"));
            secrets.push(value.trim().to_owned());
            continue;
        }
        hides_next = word.starts_with('-') && !word.contains('=') && is_secret_option(word)
            || matches!(word, "-H" | "--header");
        if value.contains("://") {
            let (shown, hidden) = split(value);
            clean.push(format!("{}{shown}", &word[..word.len() - value.len()]));
            secrets.extend(hidden);
        } else {
            clean.push(word.to_owned());
        }
    }
    (clean, secrets)
}

/// Whether the value of an option, a variable or a header with this name is secret.
#[must_use]
pub fn is_secret_option(name: &str) -> bool {
    let name = name.trim_start_matches('-').replace('-', "_");
    is_secret_parameter(&name) || name.to_ascii_lowercase().ends_with("_key")
}

/// Whether the value of a variable hides nothing: a short word or number, such as a level of logs
/// or a port, under a name that does not tell of a secret. Anything else may be one.
#[must_use]
pub fn is_harmless(name: &str, value: &str) -> bool {
    const TELLING: [&str; 8] = ["auth", "cred", "key", "pass", "pin", "pwd", "secret", "token"];
    let name = name.to_ascii_lowercase();
    let is_telling = is_secret_parameter(&name) || TELLING.iter().any(|it| name.contains(it));
    let all = |is: fn(&u8) -> bool| value.bytes().all(|byte| is(&byte));
    let is_word = all(u8::is_ascii_lowercase) || all(u8::is_ascii_uppercase);
    let longest = if is_word { 12 } else { 5 };
    !is_telling && value.len() <= longest && (is_word || all(u8::is_ascii_digit))
}

/// Whether a word looks like a key or a token: long, of letters and digits without a pattern, or
/// with a well-known beginning. Paths, packages and words do not.
fn is_key(word: &str) -> bool {
    const BEGINNINGS: [&str; 12] = [
        "sk-",
        "sk_",
        "pk_",
        "rk_",
        "ghp_",
        "gho_",
        "github_pat_",
        "glpat-",
        "xox",
        "AKIA",
        "AIza",
        "eyJ",
    ];
    const SHORTEST: usize = 20;
    let is_of_keys = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+/=".contains(&byte);
    if word.len() < SHORTEST || !word.bytes().all(is_of_keys) {
        return false;
    }
    if BEGINNINGS.iter().any(|beginning| word.starts_with(beginning)) {
        return true;
    }
    let count = |is: fn(&u8) -> bool| word.bytes().filter(&is).count();
    let (digits, upper, lower) =
        (count(u8::is_ascii_digit), count(u8::is_ascii_uppercase), count(u8::is_ascii_lowercase));
    let is_path = word.starts_with(['.', '/']) || word.contains("./") || word.contains("//");
    let parts = word.split(['-', '_', '.', '/']).filter(|part| !part.is_empty());
    let longest = parts.map(str::len).max().unwrap_or_default();
    let is_hex = word.len() >= 32 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_mixed = digits >= 3 && upper >= 2 && lower >= 2 && longest >= 16;
    !is_path && (is_hex || is_mixed || digits >= 4 && longest >= SHORTEST)
}

/// A URL without its secrets.
#[must_use]
pub fn url(url: &str) -> String {
    split(url).0
}

/// The secrets in a URL: the password, or else the user, and parameters with telling names.
#[must_use]
pub fn secrets_in_url(url: &str) -> Vec<String> {
    split(url).1
}

/// A URL without its secrets, and the secrets.
fn split(url: &str) -> (String, Vec<String>) {
    let (rest, query) = url.split_once('?').unwrap_or((url, ""));
    let mut clean = rest.to_owned();
    let mut secrets = Vec::new();
    if let Some(user) = userinfo(rest) {
        clean = rest.replacen(&format!("{user}@"), &format!("{HIDDEN}@"), 1);
        // A user name is not secret if there is a password as well.
        secrets.push(user.split_once(':').map_or(user, |(_, password)| password));
    }
    for (at, pair) in query.split('&').enumerate().filter(|_| !query.is_empty()) {
        clean.push(if at == 0 { '?' } else { '&' });
        match pair.split_once('=').filter(|(name, _)| is_secret_parameter(name)) {
            Some((name, value)) => {
                clean += &format!("{name}={HIDDEN}");
                secrets.push(value.split('#').next().unwrap_or_default());
            }
            None => clean.push_str(pair),
        }
    }
    let secrets = secrets.into_iter().filter(|secret| !secret.is_empty()).map(str::to_owned);
    (clean, secrets.collect())
}

/// The part before the host: a user, and a password after a colon.
#[must_use]
pub fn userinfo(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '#']).next()?;
    authority.rsplit_once('@').map(|(user, _)| user)
}

/// Removes known secrets from text.
#[derive(Debug, Default, Clone)]
pub struct Redactor {
    secrets: Vec<String>,
}

const SHORTEST: usize = 4;

impl Redactor {
    /// Removes these; values shorter than four characters occur in too many innocent places.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut secrets: Vec<String> =
            secrets.into_iter().filter(|secret| secret.len() >= SHORTEST).collect();
        // The longest first: one may contain another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        Self { secrets }
    }

    /// Removes what either of two removes.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self::new(self.secrets.iter().chain(&other.secrets).cloned())
    }

    /// Text without the known secrets.
    #[must_use]
    pub fn text(&self, text: &str) -> String {
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

    /// JSON text without the known secrets and without the values of members with telling names.
    /// Everything else stays exactly as it is.
    #[must_use]
    pub fn json(&self, text: &str) -> String {
        members(&self.text(text))
    }
}

/// Where the JSON string at the beginning of the text ends, if it does.
#[must_use]
pub fn end_of_string(text: &str) -> Option<usize> {
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
        if !value.starts_with('"') || !is_secret_name(name) {
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
    fn command_lines_lose_their_secrets() {
        for (full, clean, secrets) in [
            (
                "npx -y server --token s3cret x",
                "npx -y server --token [redacted] x",
                &["s3cret"][..],
            ),
            ("s --api-key=abc --port=80", "s --api-key=[redacted] --port=80", &["abc"]),
            ("env GITHUB_TOKEN=abcd npx s", "env GITHUB_TOKEN=[redacted] npx s", &["abcd"]),
            ("s --key abcd --verbose", "s --key [redacted] --verbose", &["abcd"]),
            ("s --token --verbose", "s --token --verbose", &[]),
            ("s -H Authorization:abc", "s -H [redacted]", &["Authorization:abc"]),
            ("s Authorization:abcd", "s Authorization:[redacted]", &["abcd"]),
            (
                "s --url=https://u:pw12@a.b/?key=k",
                "s --url=https://[redacted]@a.b/?key=[redacted]",
                &["pw12", "k"],
            ),
            (
                "mcp-remote https://a.b/mcp?token=t0k",
                "mcp-remote https://a.b/mcp?token=[redacted]",
                &["t0k"],
            ),
            ("s ghp_0123456789abcdefABCDEF", "s [redacted]", &["ghp_0123456789abcdefABCDEF"]),
            (
                "s d41d8cd98f00b204e9800998ecf8427e",
                "s [redacted]",
                &["d41d8cd98f00b204e9800998ecf8427e"],
            ),
            ("s --x=Zm9vYmFyMTIzNDU2Nzg5QUJD", "s --x=[redacted]", &["Zm9vYmFyMTIzNDU2Nzg5QUJD"]),
            ("npx -y @modelcontextprotocol/server-everything@2025.1.2", "", &[]),
            ("/usr/lib/node_modules/some-server-1.2.3/dist/index.js", "", &[]),
            ("target/debug/examples/mcp-server-2025-11-25", "", &[]),
            ("python -m a_very_long_module_name_without_digits", "", &[]),
        ] {
            let full: Vec<&str> = full.split(' ').collect();
            let expected = if clean.is_empty() { full.join(" ") } else { clean.to_owned() };
            let (found, hidden) = words(&full);
            assert_eq!(found.join(" "), expected);
            assert_eq!(hidden, secrets, "{full:?}");
        }
    }

    #[test]
    fn levels_and_ports_are_no_secrets() {
        for (name, value, expected) in [
            ("LOG_LEVEL", "error", true),
            ("LEVEL", "INFO", true),
            ("NODE_ENV", "production", true),
            ("PORT", "8080", true),
            ("DB_PASS", "error", false),
            ("PGPASSWORD", "error", false),
            ("API_KEY", "8080", false),
            ("PIN", "8080", false),
            ("SIG", "abcd", false),
            ("DB", "hunter2", false),
            ("DB", "correcthorsebattery", false),
            ("NUMBER", "4929000000000000", false),
            ("URL", "https://a.b", false),
        ] {
            assert_eq!(is_harmless(name, value), expected, "{name}={value}");
        }
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
