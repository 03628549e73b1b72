//! Where to get a token for a server, as its documents tell, and everything in them that keeps
//! clients from a login.

use std::time::Duration;

use bowline::client::auth::{Challenge, MetadataError, ResourceMetadata, ServerMetadata};
use bowline::with_causes;
use bowline_web::Web;
use bytes::Bytes;
use http::{HeaderMap, Request, header};
use tokio::time::{Instant, timeout};

use super::address::Address;
use super::seen::{plain, quoted};

/// What was found on the way from a refusal to a login.
#[derive(Debug)]
pub(crate) struct Discovery {
    /// The challenge, the metadata of the resource, and that of the authorization server, as far
    /// as they could be found.
    pub(crate) stages: Vec<Stage>,
    /// Whether the challenge says where the metadata is.
    pub(crate) has_pointer: bool,
    /// The scopes that the metadata of the resource lists.
    pub(crate) scopes: Vec<String>,
}

/// A header or a document.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) name: &'static str,
    pub(crate) seen: String,
    pub(crate) took: Duration,
    pub(crate) problems: Vec<Problem>,
}

/// What keeps clients from a login, or some of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Problem {
    NoChallenge,
    /// No token of MCP is wanted, but these.
    OtherScheme(String),
    /// This header does not follow the grammar.
    Malformed(String),
    NoResource,
    UnreadableResource(String),
    /// The metadata is of this resource.
    OtherResource(String),
    NoServers,
    /// This issuer has no metadata.
    NoServer(String),
    UnreadableServer(String),
    /// This issuer is plain http on another machine.
    Exposed(String),
    /// The issuer in the metadata, and the one that was expected.
    OtherIssuer(String, String),
    NoEndpoint(&'static str),
    NoPkce,
    NoRegistration,
}

/// What the stages are called.
pub(crate) const CHALLENGE: &str = "challenge";
pub(crate) const RESOURCE: &str = "resource metadata";
pub(crate) const SERVER: &str = "authorization server";

impl Discovery {
    /// Walks from the headers of a refusal to the point where a person must log in.
    pub(crate) async fn walk(
        web: &Web,
        url: &str,
        refusal: &HeaderMap,
        patience: Duration,
    ) -> Self {
        let site = Site { web, patience };
        let (challenge, pointer) = challenge(refusal);
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
    pub(crate) fn stage(&self, name: &str) -> Option<&Stage> {
        self.stages.iter().find(|stage| stage.name == name)
    }

    /// Whether there is a document that speaks of logins.
    pub(crate) fn has_metadata(&self) -> bool {
        let resource = self.stage(RESOURCE);
        resource.is_some_and(|stage| !stage.problems.contains(&Problem::NoResource))
    }
}

impl Problem {
    /// Whether nobody can log in because of it.
    pub(crate) fn is_fatal(&self) -> bool {
        !matches!(
            self,
            Self::NoChallenge | Self::OtherScheme(_) | Self::Malformed(_) | Self::NoRegistration
        )
    }

    /// One sentence.
    pub(crate) fn cause(&self) -> String {
        match self {
            Self::NoChallenge => "the 401 does not say how to log in".to_owned(),
            Self::OtherScheme(schemes) => {
                format!("the server wants {schemes}, which is no token of MCP")
            }
            Self::Malformed(header) => {
                format!("WWW-Authenticate does not follow the grammar of HTTP: {header}")
            }
            Self::NoResource => "the server wants a token and does not say where to get one: its protected-resource metadata is missing".to_owned(),
            Self::UnreadableResource(error) => {
                format!("the protected-resource metadata cannot be read: {error}")
            }
            Self::OtherResource(resource) => format!(
                "the metadata is for the resource {resource}, and the URL is another: clients refuse that"
            ),
            Self::NoServers => "the metadata names no authorization server".to_owned(),
            Self::NoServer(issuer) => {
                format!("the authorization server {issuer} does not answer with its metadata")
            }
            Self::UnreadableServer(error) => {
                format!("the authorization server's metadata cannot be read: {error}")
            }
            Self::Exposed(issuer) => {
                format!("the authorization server {issuer} is plain http on another machine")
            }
            Self::OtherIssuer(told, expected) => format!(
                "the metadata is of the issuer {told}, where {expected} was expected, to the letter"
            ),
            Self::NoEndpoint(name) => {
                format!("the authorization server's metadata has no {name}")
            }
            Self::NoPkce => "the authorization server does not say that it checks PKCE with S256, so clients must not log in".to_owned(),
            Self::NoRegistration => "clients cannot register themselves: neither registration_endpoint nor client id documents".to_owned(),
        }
    }

    /// One or two.
    pub(crate) fn fix(&self) -> &'static str {
        match self {
            Self::NoChallenge => "Send WWW-Authenticate: Bearer resource_metadata=\"…\" with it.",
            Self::OtherScheme(_) => {
                "Send what it wants with --header; to let clients log in, answer with a Bearer challenge."
            }
            Self::Malformed(_) => {
                "Put the values of parameters into quotes, with commas between parameters."
            }
            Self::NoResource => {
                "If it takes fixed tokens, give one with --token or --header. For logins, serve \
                 /.well-known/oauth-protected-resource (RFC 9728)."
            }
            Self::UnreadableResource(_) => "Serve a JSON object as RFC 9728 has it.",
            Self::OtherResource(_) => {
                "Let `resource` be the URL that clients connect to, scheme, host, port and path; \
                 behind a proxy, the public one."
            }
            Self::NoServers => "Name its issuer in authorization_servers.",
            Self::NoServer(_) => {
                "Check the issuer in authorization_servers; it must serve \
                 /.well-known/oauth-authorization-server or openid-configuration."
            }
            Self::UnreadableServer(_) => "Serve a JSON object as RFC 8414 has it.",
            Self::Exposed(_) => "Serve it over https: tokens would cross the network unprotected.",
            Self::OtherIssuer(..) => "Let both be the same, also in the slash at the end.",
            Self::NoEndpoint(_) => "People cannot log in without it: add it.",
            Self::NoPkce => "Add \"code_challenge_methods_supported\": [\"S256\"] to its metadata.",
            Self::NoRegistration => {
                "Register a client by hand and give its id to the login, or enable one of the two."
            }
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
            Err(_) => Err("no answer in time".to_owned()),
        }
    }

    /// The first of these addresses that has a document, and what was seen on the way.
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

/// What a refusal says of where to log in, and the address of the metadata, if it does.
/// Whether a challenge is for a token of ours.
pub(crate) fn wants_token(challenge: &Challenge) -> bool {
    let scheme = &challenge.scheme;
    scheme.eq_ignore_ascii_case("bearer") || scheme.eq_ignore_ascii_case("dpop")
}

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
            let (seen, problem) = match schemes.is_empty() {
                true => ("no WWW-Authenticate".to_owned(), Problem::NoChallenge),
                false => (format!("WWW-Authenticate: {schemes}"), Problem::OtherScheme(schemes)),
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

fn told(error: &MetadataError) -> String {
    plain(&error.to_string())
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
        (true, _) => "clients are known by a document of theirs",
        (false, Some(_)) => "clients register by themselves",
        (false, None) => "clients must be registered by hand",
    }
}

/// What keeps clients from logging in, the worst first.
fn problems_of_server(metadata: &ServerMetadata, issuer: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    if metadata.issuer != issuer {
        problems.push(Problem::OtherIssuer(plain(&metadata.issuer), plain(issuer)));
    }
    let place = Address::parse(issuer);
    if place.is_ok_and(|place| !place.is_secure && !place.is_loopback()) {
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
