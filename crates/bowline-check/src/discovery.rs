//! Where to get a token for a server, according to its documents, and everything in them that keeps
//! clients from logging in.

use std::time::Duration;

use bowline::client::auth::{Challenge, MetadataError, ResourceMetadata, ServerMetadata};
use bowline::with_causes;
use bowline_web::{Url, Web};
use bytes::Bytes;
use http::{HeaderMap, Request, header};
use tokio::time::{Instant, timeout};

use crate::evidence::shorten;
use crate::rule;

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
    /// What is wrong with it, the worst first.
    pub problems: Vec<Problem>,
}

/// What keeps clients, or some of them, from logging in.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "`cause` says in a sentence what each one is")]
pub enum Problem {
    NoChallenge,
    /// The schemes that are asked for instead of an MCP token.
    OtherScheme(String),
    /// The header.
    Malformed(String),
    NoResource,
    /// Why it cannot be read.
    UnreadableResource(String),
    /// The resource that the metadata is for.
    OtherResource(String),
    NoServers,
    /// The issuer.
    NoServer(String),
    /// Why its metadata cannot be read.
    UnreadableServer(String),
    /// The issuer.
    Exposed(String),
    /// The issuer in the metadata, and the expected one.
    OtherIssuer(String, String),
    /// Its name.
    NoEndpoint(&'static str),
    NoPkce,
    NoRegistration,
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
        let resource = self.stage(RESOURCE);
        resource.is_some_and(|stage| !stage.problems.contains(&Problem::NoResource))
    }
}

impl Problem {
    /// Whether it prevents every login.
    pub fn is_fatal(&self) -> bool {
        !matches!(
            self,
            Self::NoChallenge | Self::OtherScheme(_) | Self::Malformed(_) | Self::NoRegistration
        )
    }

    /// Whether it leaves no document to look at.
    pub(crate) fn is_unreadable(&self) -> bool {
        matches!(
            self,
            Self::NoResource
                | Self::UnreadableResource(_)
                | Self::NoServer(_)
                | Self::UnreadableServer(_)
        )
    }

    /// One sentence on what is wrong.
    pub fn cause(&self) -> String {
        match self {
            Self::NoChallenge => "the 401 does not say how to log in".to_owned(),
            Self::OtherScheme(schemes) => {
                format!("the server asks for {schemes}, which is not an MCP token")
            }
            Self::Malformed(header) => {
                format!("WWW-Authenticate does not follow the grammar of HTTP: {header}")
            }
            Self::NoResource => "the server requires a token and does not say where to get one: its protected-resource metadata is missing".to_owned(),
            Self::UnreadableResource(error) => {
                format!("cannot read the protected-resource metadata: {error}")
            }
            Self::OtherResource(resource) => format!(
                "the metadata is for the resource {resource}, but the URL is another: clients reject that"
            ),
            Self::NoServers => "the metadata names no authorization server".to_owned(),
            Self::NoServer(issuer) => format!("the authorization server {issuer} has no metadata"),
            Self::UnreadableServer(error) => {
                format!("cannot read the authorization server's metadata: {error}")
            }
            Self::Exposed(issuer) => {
                format!("the authorization server {issuer} is plain http on another machine")
            }
            Self::OtherIssuer(found, expected) => {
                format!("the metadata names the issuer {found}, expected exactly {expected}")
            }
            Self::NoEndpoint(name) => format!("the authorization server's metadata has no {name}"),
            Self::NoPkce => "the authorization server does not declare that it checks PKCE with S256, so clients must not log in".to_owned(),
            Self::NoRegistration => "clients cannot register themselves: neither registration_endpoint nor client id documents".to_owned(),
        }
    }

    /// What to do about it: the remedy of its rule.
    pub fn fix(&self) -> &'static str {
        rule::all().find(|rule| rule.id == self.rule()).map_or("", |rule| rule.remedy)
    }

    /// The id of the rule that it breaks.
    pub(crate) fn rule(&self) -> &'static str {
        match self {
            Self::NoChallenge | Self::OtherScheme(_) => "auth.challenge",
            Self::Malformed(_) => "auth.challenge-syntax",
            Self::NoResource => "auth.metadata",
            Self::UnreadableResource(_) | Self::NoServers => "auth.metadata-valid",
            Self::OtherResource(_) => "auth.resource",
            Self::NoServer(_)
            | Self::UnreadableServer(_)
            | Self::Exposed(_)
            | Self::NoEndpoint(_) => "auth.server",
            Self::OtherIssuer(..) => "auth.issuer",
            Self::NoPkce => "auth.pkce",
            Self::NoRegistration => "auth.registration",
        }
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
        .map(|value| Problem::Malformed(quoted(value.as_bytes())))
        .collect();
    let (seen, pointer) = match all.iter().find(|it| wants_token(it)) {
        None => {
            let schemes: Vec<String> = all.iter().map(|it| plain(&it.scheme)).collect();
            let schemes = schemes.join(", ");
            let (seen, problem) = if schemes.is_empty() {
                ("no WWW-Authenticate".to_owned(), Problem::NoChallenge)
            } else {
                (format!("WWW-Authenticate: {schemes}"), Problem::OtherScheme(schemes))
            };
            problems.insert(0, problem);
            (seen, None)
        }
        Some(bearer) => {
            let pointer = bearer.parameter("resource_metadata").map(str::to_owned);
            let error = bearer.parameter("error").map(|error| {
                let words = bearer.parameter("error_description").unwrap_or_default();
                format!(", {} {}", plain(error), plain(words)).trim_end().to_owned()
            });
            let place = pointer.as_deref().map_or_else(
                || "no resource_metadata".to_owned(),
                |it| format!("metadata at {}", plain(it)),
            );
            let error = error.unwrap_or_default();
            (format!("{}: {place}{error}", plain(&bearer.scheme)), pointer)
        }
    };
    (Stage { name: CHALLENGE, seen, took: began.elapsed(), problems }, pointer)
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

/// The metadata of the protected resource.
async fn resource(
    site: &Site<'_>,
    url: &str,
    pointer: Option<&str>,
) -> (Stage, Option<ResourceMetadata>) {
    let began = Instant::now();
    let addresses = match pointer {
        Some(pointer) => vec![pointer.to_owned()],
        None => ResourceMetadata::addresses(url),
    };
    let (document, seen) = site.first(&addresses).await;
    let stage = Stage { name: RESOURCE, seen, took: began.elapsed(), problems: Vec::new() };
    let Some((at, body)) = document else {
        return (Stage { problems: vec![Problem::NoResource], ..stage }, None);
    };
    let stage = Stage { seen: format!("{}: {}", plain(&at), quoted(&body)), ..stage };
    match ResourceMetadata::parse(&body) {
        Ok(metadata) => {
            let problems = problems_of_resource(&metadata, url);
            (Stage { problems, ..stage }, Some(metadata))
        }
        Err(error) => {
            let problems = vec![Problem::UnreadableResource(told(&error))];
            (Stage { problems, ..stage }, None)
        }
    }
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
        problems.push(Problem::OtherResource(plain(&metadata.resource)));
    }
    if metadata.authorization_servers.is_empty() {
        problems.push(Problem::NoServers);
    }
    problems
}

/// The metadata of the authorization server.
async fn server(site: &Site<'_>, issuer: &str) -> Stage {
    let began = Instant::now();
    let (document, seen) = site.first(&ServerMetadata::addresses(issuer)).await;
    let stage = Stage { name: SERVER, seen, took: began.elapsed(), problems: Vec::new() };
    let Some((at, body)) = document else {
        return Stage { problems: vec![Problem::NoServer(plain(issuer))], ..stage };
    };
    match ServerMetadata::parse(&body) {
        Ok(metadata) => Stage {
            seen: format!("{}; {}", plain(&at), ways_to_register(&metadata)),
            problems: problems_of_server(&metadata, issuer),
            ..stage
        },
        Err(error) => Stage { problems: vec![Problem::UnreadableServer(told(&error))], ..stage },
    }
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
    let mut problems = Vec::new();
    if metadata.issuer != issuer {
        problems.push(Problem::OtherIssuer(plain(&metadata.issuer), plain(issuer)));
    }
    if Url::parse(issuer).is_ok_and(|url| !url.is_https() && !url.is_loopback()) {
        problems.push(Problem::Exposed(plain(issuer)));
    }
    for (endpoint, name) in [
        (&metadata.authorization_endpoint, "authorization_endpoint"),
        (&metadata.token_endpoint, "token_endpoint"),
    ] {
        if endpoint.is_none() {
            problems.push(Problem::NoEndpoint(name));
        }
    }
    if !metadata.checks_s256() {
        problems.push(Problem::NoPkce);
    }
    if metadata.registration_endpoint.is_none() && !metadata.client_id_metadata_document_supported {
        problems.push(Problem::NoRegistration);
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
            assert!(found[0].cause().contains(cause), "{document}: {found:?}");
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
            assert!(found[0].cause().contains(cause), "{document}: {found:?}");
            assert_eq!(found[0].is_fatal(), is_fatal, "{document}");
        }
        let good = format!(
            r#"{{"issuer":"https://c",{ends},{pkce},"registration_endpoint":"https://c/r"}}"#
        );
        let good = ServerMetadata::parse(good.as_bytes()).unwrap();
        assert_eq!(problems_of_server(&good, "https://c"), []);
        let there = ServerMetadata { issuer: "http://c".to_owned(), ..good };
        let exposed = Problem::Exposed("http://c".to_owned());
        assert_eq!(problems_of_server(&there, "http://c"), [exposed]);
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
