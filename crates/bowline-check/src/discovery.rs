//! Where to get a token for a server, according to its documents, and everything in them that keeps
//! clients from logging in.

use std::time::Duration;

use bowline::client::auth::{Challenge, MetadataError, ResourceMetadata, ServerMetadata};
use bowline::with_causes;
use bowline_web::{Url, Web};
use bytes::Bytes;
use http::{HeaderMap, Request, header};
use tokio::time::{Instant, timeout};

use crate::rule;
use crate::text::shorten;

/// What was found on the way from a rejection to a login.
#[derive(Debug)]
pub struct Discovery {
    /// The challenge, the metadata of the resource, and that of the authorization server, as far
    /// as they were found.
    pub stages: Vec<Stage>,
    /// Whether the challenge says where the metadata is.
    pub has_pointer: bool,
    /// The scopes that the metadata of the resource lists.
    pub scopes: Vec<String>,
}

/// A header or a document.
#[derive(Debug)]
pub struct Stage {
    /// [`CHALLENGE`], [`RESOURCE`] or [`SERVER`].
    pub name: &'static str,
    /// What it contains, shortened.
    pub seen: String,
    /// How long it took to get.
    pub took: Duration,
    /// Whether it is there and can be read.
    pub is_read: bool,
    /// What is wrong with it, the worst first.
    pub problems: Vec<Problem>,
}

/// What keeps clients, or some of them, from logging in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The id of the rule that it breaks.
    pub rule: &'static str,
    /// One sentence on what is wrong.
    pub cause: String,
}

/// The `WWW-Authenticate` header of the rejection.
pub const CHALLENGE: &str = "challenge";
/// The metadata of the protected resource.
pub const RESOURCE: &str = "resource metadata";
/// The metadata of the authorization server.
pub const SERVER: &str = "authorization server";

impl Discovery {
    /// Walks from the headers of a rejection to the point where a person must log in.
    pub async fn walk(web: &Web, url: &str, rejection: &HeaderMap, patience: Duration) -> Self {
        let site = Site { web, patience };
        let (challenge, pointer) = challenge(rejection);
        let (stage, resource) = resource(&site, url, pointer.as_deref()).await;
        let mut stages = vec![challenge, stage];
        let (issuers, scopes) = match resource {
            Some(it) => (it.authorization_servers, it.scopes_supported.unwrap_or_default()),
            None => Default::default(),
        };
        if let Some(issuer) = issuers.first() {
            stages.push(server(&site, issuer).await);
        }
        Self { stages, has_pointer: pointer.is_some(), scopes }
    }

    /// A stage, if it was reached.
    pub fn stage(&self, name: &str) -> Option<&Stage> {
        self.stages.iter().find(|stage| stage.name == name)
    }

    /// Whether there is a document about logins.
    pub fn has_metadata(&self) -> bool {
        let is_missing = |stage: &Stage| stage.problems.iter().any(|it| it.rule == "auth.metadata");
        self.stage(RESOURCE).is_some_and(|stage| !is_missing(stage))
    }
}

impl Problem {
    fn new(rule: &'static str, cause: impl Into<String>) -> Self {
        Self { rule, cause: cause.into() }
    }

    /// Whether it prevents every login.
    pub fn is_fatal(&self) -> bool {
        !matches!(self.rule, "auth.challenge" | "auth.challenge-syntax" | "auth.registration")
    }

    /// What to do about it: the remedy of its rule.
    pub fn fix(&self) -> &'static str {
        rule::remedy(self.rule)
    }
}

/// How documents are fetched.
struct Site<'a> {
    web: &'a Web,
    patience: Duration,
}

impl Site<'_> {
    /// The status and the body, or why there is none.
    async fn fetch(&self, url: &str) -> Result<(u16, Bytes), String> {
        let request = Request::get(url).header(header::ACCEPT, "application/json");
        let request = request.body(Bytes::new()).map_err(|error| error.to_string())?;
        match timeout(self.patience, self.web.fetch(request)).await {
            Ok(Ok(answer)) => Ok((answer.status().as_u16(), answer.into_body())),
            Ok(Err(error)) => Err(with_causes(&error)),
            Err(_) => Err("no response in time".to_owned()),
        }
    }

    /// The first of these URLs that has a document, and what the others returned.
    async fn first(&self, addresses: &[String]) -> (Option<(String, Bytes)>, String) {
        let mut seen = Vec::new();
        for url in addresses {
            match self.fetch(url).await {
                Ok((200, body)) => return (Some((url.clone(), body)), plain(url)),
                Ok((status, _)) => seen.push(format!("{}: HTTP {status}", plain(url))),
                Err(what) => seen.push(format!("{}: {}", plain(url), plain(&what))),
            }
        }
        (None, seen.join("; "))
    }
}

/// Whether a challenge asks for an MCP token.
pub(crate) fn wants_token(challenge: &Challenge) -> bool {
    let scheme = &challenge.scheme;
    scheme.eq_ignore_ascii_case("bearer") || scheme.eq_ignore_ascii_case("dpop")
}

/// What a rejection says about logging in, and the URL of the metadata if it has one.
fn challenge(headers: &HeaderMap) -> (Stage, Option<String>) {
    let began = Instant::now();
    let all = Challenge::all(headers);
    let mut problems: Vec<Problem> = headers
        .get_all(header::WWW_AUTHENTICATE)
        .iter()
        .filter(|value| !value.to_str().is_ok_and(is_grammatical))
        .map(|value| {
            let cause = "WWW-Authenticate does not follow the grammar of HTTP";
            Problem::new("auth.challenge-syntax", format!("{cause}: {}", quoted(value.as_bytes())))
        })
        .collect();
    let bearer = all.iter().find(|it| wants_token(it));
    let pointer = bearer.and_then(|it| it.parameter("resource_metadata")).map(str::to_owned);
    let schemes = all.iter().map(|it| plain(&it.scheme)).collect::<Vec<_>>().join(", ");
    let seen = if let Some(bearer) = bearer {
        let place = pointer.as_deref().map(|it| format!("metadata at {}", plain(it)));
        let place = place.unwrap_or_else(|| "no resource_metadata".to_owned());
        let words = ["error", "error_description"].map(|name| bearer.parameter(name).map(plain));
        let error = words.into_iter().flatten().collect::<Vec<_>>().join(" ");
        let comma = if error.is_empty() { "" } else { ", " };
        format!("{}: {place}{comma}{error}", plain(&bearer.scheme))
    } else {
        let (seen, cause) = if schemes.is_empty() {
            ("no WWW-Authenticate".to_owned(), "the 401 does not say how to log in".to_owned())
        } else {
            let cause = format!("the server asks for {schemes}, which is not an MCP token");
            (format!("WWW-Authenticate: {schemes}"), cause)
        };
        problems.insert(0, Problem::new("auth.challenge", cause));
        seen
    };
    let (took, is_read) = (began.elapsed(), !all.is_empty());
    (Stage { name: CHALLENGE, seen, took, is_read, problems }, pointer)
}

/// Whether a value of `WWW-Authenticate` can be read without guessing: what stands in quotes ends
/// there, and nothing else needs any (RFC 9110, 11.6.1).
fn is_grammatical(text: &str) -> bool {
    let is_plain =
        |letter: char| letter.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~ \t,=/".contains(letter);
    let mut is_quoted = false;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if is_quoted => drop(letters.next()),
            '"' => is_quoted = !is_quoted,
            letter if !is_quoted && !is_plain(letter) => return false,
            _ => {}
        }
    }
    !is_quoted && !Challenge::parse(text).is_empty()
}

/// A document at one of these URLs; `judge` returns what it contains, or why it cannot be read.
async fn document<T>(
    site: &Site<'_>,
    name: &'static str,
    addresses: &[String],
    judge: impl FnOnce(&str, &[u8]) -> Result<(String, Vec<Problem>, T), Problem>,
    missing: Problem,
) -> (Stage, Option<T>) {
    let began = Instant::now();
    let (found, seen) = site.first(addresses).await;
    let (seen, problems, document) = match found.map(|(at, body)| judge(&plain(&at), &body)) {
        Some(Ok((seen, problems, document))) => (seen, problems, Some(document)),
        Some(Err(unreadable)) => (seen, vec![unreadable], None),
        None => (seen, vec![missing], None),
    };
    let (took, is_read) = (began.elapsed(), document.is_some());
    (Stage { name, seen, took, is_read, problems }, document)
}

/// The metadata of the protected resource.
async fn resource(
    site: &Site<'_>,
    url: &str,
    pointer: Option<&str>,
) -> (Stage, Option<ResourceMetadata>) {
    let addresses = match pointer {
        Some(pointer) => vec![pointer.to_owned()],
        None => ResourceMetadata::addresses(url),
    };
    let judge = |at: &str, body: &[u8]| {
        let metadata = ResourceMetadata::parse(body).map_err(|error| {
            let cause = format!("cannot read the protected-resource metadata: {}", told(&error));
            Problem::new("auth.metadata-valid", cause)
        })?;
        let problems = problems_of_resource(&metadata, url);
        Ok((format!("{at}: {}", quoted(body)), problems, metadata))
    };
    let missing = "the server requires a token and does not say where to get one: its \
                   protected-resource metadata is missing";
    let missing = Problem::new("auth.metadata", missing);
    document(site, RESOURCE, &addresses, judge, missing).await
}

/// Text of a server on one line, shortened.
fn plain(text: &str) -> String {
    shorten(text, 160)
}

fn quoted(bytes: &[u8]) -> String {
    format!("\"{}\"", plain(&String::from_utf8_lossy(bytes)))
}

fn told(error: &MetadataError) -> String {
    plain(&error.to_string())
}

/// Whether a redirect leads to a page where people log in.
pub fn leads_to_login(location: &str) -> bool {
    let location = location.to_lowercase();
    ["login", "signin", "sso", "auth"].iter().any(|word| location.contains(word))
}

fn problems_of_resource(metadata: &ResourceMetadata, url: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    if !metadata.covers(url) {
        let resource = plain(&metadata.resource);
        let cause = "but the URL is another: clients reject that";
        let cause = format!("the metadata is for the resource {resource}, {cause}");
        problems.push(Problem::new("auth.resource", cause));
    }
    if metadata.authorization_servers.is_empty() {
        let cause = "the metadata names no authorization server";
        problems.push(Problem::new("auth.metadata-valid", cause));
    }
    problems
}

/// The metadata of the authorization server.
async fn server(site: &Site<'_>, issuer: &str) -> Stage {
    let judge = |at: &str, body: &[u8]| {
        let metadata = ServerMetadata::parse(body).map_err(|error| {
            let cause =
                format!("cannot read the authorization server's metadata: {}", told(&error));
            Problem::new("auth.server", cause)
        })?;
        let problems = problems_of_server(&metadata, issuer);
        Ok((format!("{at}; {}", ways_to_register(&metadata)), problems, ()))
    };
    let missing = format!("the authorization server {} has no metadata", plain(issuer));
    let missing = Problem::new("auth.server", missing);
    document(site, SERVER, &ServerMetadata::addresses(issuer), judge, missing).await.0
}

fn ways_to_register(metadata: &ServerMetadata) -> &'static str {
    match (metadata.client_id_metadata_document_supported, &metadata.registration_endpoint) {
        (true, _) => "clients are known by their documents",
        (false, Some(_)) => "clients register themselves",
        (false, None) => "clients must be registered by hand",
    }
}

/// What keeps clients from logging in, the worst first.
fn problems_of_server(metadata: &ServerMetadata, issuer: &str) -> Vec<Problem> {
    let (found, expected) = (plain(&metadata.issuer), plain(issuer));
    let mut problems = Vec::new();
    let mut add = |rule, cause: String| problems.push(Problem { rule, cause });
    if metadata.issuer != issuer {
        let cause = format!("the metadata names the issuer {found}, expected exactly {expected}");
        add("auth.issuer", cause);
    }
    if Url::parse(issuer).is_ok_and(|url| !url.is_https() && !url.is_loopback()) {
        let cause = "is plain http on another machine";
        add("auth.server", format!("the authorization server {expected} {cause}"));
    }
    for (endpoint, name) in [
        (&metadata.authorization_endpoint, "authorization_endpoint"),
        (&metadata.token_endpoint, "token_endpoint"),
    ] {
        if endpoint.is_none() {
            add("auth.server", format!("the authorization server's metadata has no {name}"));
        }
    }
    if !metadata.checks_s256() {
        let cause = "the authorization server does not declare that it checks PKCE with S256, so \
                     clients must not log in";
        add("auth.pkce", cause.to_owned());
    }
    if metadata.registration_endpoint.is_none() && !metadata.client_id_metadata_document_supported {
        let cause = "clients cannot register themselves: neither registration_endpoint nor client \
                     id documents";
        add("auth.registration", cause.to_owned());
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_that_clients_refuse() {
        for (document, cause) in [
            (
                r#"{"resource":"https://b/mcp","authorization_servers":["https://c"]}"#,
                "the URL is another",
            ),
            (
                r#"{"resource":"http://a/mcp","authorization_servers":["https://c"]}"#,
                "the URL is another",
            ),
            (r#"{"resource":"https://a/mcp"}"#, "no authorization server"),
        ] {
            let metadata = ResourceMetadata::parse(document.as_bytes()).unwrap();
            let found = problems_of_resource(&metadata, "https://a/mcp");
            assert!(found[0].cause.contains(cause), "{document}: {found:?}");
            assert!(found[0].is_fatal());
        }
        let good = br#"{"resource":"https://a/mcp","authorization_servers":["https://c"]}"#;
        let good = ResourceMetadata::parse(good).unwrap();
        assert_eq!(problems_of_resource(&good, "https://a/mcp"), []);
    }

    #[test]
    fn servers_where_nobody_can_log_in() {
        let ends = r#""authorization_endpoint":"https://c/a","token_endpoint":"https://c/t""#;
        let pkce = r#""code_challenge_methods_supported":["S256"]"#;
        for (document, cause, is_fatal) in [
            (format!(r#"{{"issuer":"https://d",{ends},{pkce}}}"#), "issuer", true),
            (format!(r#"{{"issuer":"https://c",{pkce}}}"#), "authorization_endpoint", true),
            (format!(r#"{{"issuer":"https://c",{ends}}}"#), "PKCE", true),
            (format!(r#"{{"issuer":"https://c",{ends},{pkce}}}"#), "cannot register", false),
        ] {
            let metadata = ServerMetadata::parse(document.as_bytes()).unwrap();
            let found = problems_of_server(&metadata, "https://c");
            assert!(found[0].cause.contains(cause), "{document}: {found:?}");
            assert_eq!(found[0].is_fatal(), is_fatal, "{document}");
        }
        let good = format!(
            r#"{{"issuer":"https://c",{ends},{pkce},"registration_endpoint":"https://c/r"}}"#
        );
        let good = ServerMetadata::parse(good.as_bytes()).unwrap();
        assert_eq!(problems_of_server(&good, "https://c"), []);
        let there = ServerMetadata { issuer: "http://c".to_owned(), ..good };
        let [exposed] = &problems_of_server(&there, "http://c")[..] else { panic!("one problem") };
        assert!(exposed.cause.contains("http://c is plain http"), "{exposed:?}");
        let here = ServerMetadata { issuer: "http://127.0.0.1:1".to_owned(), ..there };
        assert_eq!(problems_of_server(&here, "http://127.0.0.1:1"), []);
    }

    #[test]
    fn challenges_that_need_guessing() {
        for good in [
            "Bearer",
            "Bearer resource_metadata=\"https://a/b?c=d\", scope=\"x y\"",
            "Basic realm=\"a, \\\"b\\\"\", Bearer error=invalid_token",
            "Negotiate a+b/c==",
            "DPoP algs=\"ES256\"",
        ] {
            assert!(is_grammatical(good), "{good}");
        }
        for bad in [
            "",
            "Bearer resource_metadata=https://a/b",
            "Bearer resource_metadata=\"https://a/b",
            "Bearer resource_metadata='https://a/b'",
            "Bearer {\"error\": 1}",
        ] {
            assert!(!is_grammatical(bad), "{bad}");
        }
    }
}
