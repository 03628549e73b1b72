//! The way to a token, as far as it can be walked without one: each document a step.

use std::time::Duration;

use bowline::client::auth::{Challenge, ResourceMetadata, ServerMetadata};
use bowline_web::Web;
use bytes::Bytes;
use http::Request;
use tokio::time::{Instant, timeout};

use super::report::{Code, Diagnosis, Report, Step};
use super::seen::{plain, quoted};
use super::status::{Answer, unauthorized};

/// Walks from a 401 to the point where a person must log in.
pub(crate) async fn walk(
    report: &mut Report,
    web: &Web,
    url: &str,
    answer: &Answer,
    patience: Duration,
) {
    let pointer = challenge(report, answer);
    let site = Site { web, patience };
    let Some(resource) = resource(report, &site, url, pointer.as_deref()).await else { return };
    let Some(issuer) = resource.authorization_servers.first().cloned() else { return };
    if !server(report, &site, &issuer).await {
        return;
    }
    let diagnosis = unauthorized(answer);
    report.push(
        Step::ok("login", "everything a login needs is there", Instant::now()).fail(diagnosis),
    );
}

/// How documents are fetched.
struct Site<'a> {
    web: &'a Web,
    patience: Duration,
}

/// A document, or what came instead.
struct Fetched {
    status: Result<u16, String>,
    body: Bytes,
}

impl Site<'_> {
    async fn fetch(&self, url: &str) -> Fetched {
        let failed = |what: String| Fetched { status: Err(what), body: Bytes::new() };
        let request =
            match Request::get(url).header("accept", "application/json").body(Bytes::new()) {
                Ok(request) => request,
                Err(error) => return failed(error.to_string()),
            };
        match timeout(self.patience, self.web.fetch(request)).await {
            Ok(Ok(answer)) => {
                Fetched { status: Ok(answer.status().as_u16()), body: answer.into_body() }
            }
            Ok(Err(error)) => failed(error.to_string()),
            Err(_) => failed("no answer in time".to_owned()),
        }
    }

    /// The first of these addresses that has a document, and what was seen on the way.
    async fn first(&self, addresses: &[String]) -> (Option<(String, Bytes)>, String) {
        let mut seen = Vec::new();
        for url in addresses {
            let fetched = self.fetch(url).await;
            match fetched.status {
                Ok(200) => return (Some((url.clone(), fetched.body)), plain(url)),
                Ok(status) => seen.push(format!("{}: HTTP {status}", plain(url))),
                Err(what) => seen.push(format!("{}: {}", plain(url), plain(&what))),
            }
        }
        (None, seen.join("; "))
    }
}

fn auth(cause: impl Into<String>, fix: impl Into<String>) -> Diagnosis {
    Diagnosis::new(Code::Unauthorized, cause, fix)
}

/// What the refusal says of where to log in: the address of the metadata, if it does.
fn challenge(report: &mut Report, answer: &Answer) -> Option<String> {
    let began = Instant::now();
    let all = Challenge::all(&answer.headers);
    let bearer = all.iter().find(|it| {
        it.scheme.eq_ignore_ascii_case("bearer") || it.scheme.eq_ignore_ascii_case("dpop")
    });
    let Some(bearer) = bearer else {
        let schemes: Vec<String> = all.iter().map(|it| plain(&it.scheme)).collect();
        let (seen, cause, fix) = match schemes.is_empty() {
            true => (
                "no WWW-Authenticate".to_owned(),
                "the 401 does not say how to log in".to_owned(),
                "Send WWW-Authenticate: Bearer resource_metadata=\"…\" with it.",
            ),
            false => (
                format!("WWW-Authenticate: {}", schemes.join(", ")),
                format!("the server wants {}, which is no token of MCP", schemes.join(", ")),
                "Send what it wants with --header; to let clients log in, answer with a Bearer challenge.",
            ),
        };
        report.push(Step::ok("challenge", seen, began).warn(auth(cause, fix)));
        return None;
    };
    let pointer = bearer.parameter("resource_metadata").map(str::to_owned);
    let error = bearer.parameter("error").map(|error| {
        let words = bearer.parameter("error_description").unwrap_or_default();
        format!(", {} {}", plain(error), plain(words)).trim_end().to_owned()
    });
    let place = pointer.as_deref().map_or_else(
        || "no resource_metadata".to_owned(),
        |it| format!("metadata at {}", plain(it)),
    );
    let seen = format!("{}: {place}{}", plain(&bearer.scheme), error.unwrap_or_default());
    report.push(Step::ok("challenge", seen, began));
    pointer
}

/// The metadata of the protected resource.
async fn resource(
    report: &mut Report,
    site: &Site<'_>,
    url: &str,
    pointer: Option<&str>,
) -> Option<ResourceMetadata> {
    let began = Instant::now();
    let addresses = match pointer {
        Some(pointer) => vec![pointer.to_owned()],
        None => ResourceMetadata::addresses(url),
    };
    let (document, seen) = site.first(&addresses).await;
    let step = Step::ok("resource metadata", seen, began);
    let Some((at, body)) = document else {
        report.push(step.fail(auth(
            "the server wants a token and does not say where to get one: its protected-resource metadata is missing",
            "If it takes fixed tokens, give one with --token or --header. For logins, serve \
             /.well-known/oauth-protected-resource (RFC 9728).",
        )));
        return None;
    };
    let seen = format!("{}: {}", plain(&at), quoted(&body));
    let step = Step { seen, ..step };
    match ResourceMetadata::parse(&body) {
        Ok(metadata) => match check_resource(&metadata, url) {
            None => {
                report.push(step);
                Some(metadata)
            }
            Some(diagnosis) => {
                report.push(step.fail(diagnosis));
                None
            }
        },
        Err(error) => {
            let cause = format!("the protected-resource metadata cannot be read: {error}");
            report.push(step.fail(auth(cause, "Serve a JSON object as RFC 9728 has it.")));
            None
        }
    }
}

/// What keeps clients from using the metadata of a resource.
fn check_resource(metadata: &ResourceMetadata, url: &str) -> Option<Diagnosis> {
    if !metadata.covers(url) {
        return Some(auth(
            format!(
                "the metadata is for the resource {}, and the URL is another: clients refuse that",
                plain(&metadata.resource)
            ),
            "Let `resource` be the URL that clients connect to, scheme, host, port and path; behind \
             a proxy, the public one.",
        ));
    }
    if metadata.authorization_servers.is_empty() {
        return Some(auth(
            "the metadata names no authorization server",
            "Name its issuer in authorization_servers.",
        ));
    }
    None
}

/// The metadata of the authorization server; says whether a login can go on.
async fn server(report: &mut Report, site: &Site<'_>, issuer: &str) -> bool {
    let began = Instant::now();
    let (document, seen) = site.first(&ServerMetadata::addresses(issuer)).await;
    let step = Step::ok("authorization server", seen, began);
    let Some((at, body)) = document else {
        let cause =
            format!("the authorization server {} does not answer with its metadata", plain(issuer));
        let fix = "Check the issuer in authorization_servers; it must serve \
                   /.well-known/oauth-authorization-server or openid-configuration.";
        report.push(step.fail(auth(cause, fix)));
        return false;
    };
    let metadata = match ServerMetadata::parse(&body) {
        Ok(metadata) => metadata,
        Err(error) => {
            let cause = format!("the authorization server's metadata cannot be read: {error}");
            report.push(step.fail(auth(cause, "Serve a JSON object as RFC 8414 has it.")));
            return false;
        }
    };
    let seen = format!("{}; {}", plain(&at), ways_to_register(&metadata));
    let step = Step { seen, ..step };
    match check_server(&metadata, issuer) {
        Verdict::Good => report.push(step),
        Verdict::Odd(diagnosis) => report.push(step.warn(diagnosis)),
        Verdict::Bad(diagnosis) => {
            report.push(step.fail(diagnosis));
            return false;
        }
    }
    true
}

fn ways_to_register(metadata: &ServerMetadata) -> &'static str {
    match (metadata.client_id_metadata_document_supported, &metadata.registration_endpoint) {
        (true, _) => "clients are known by a document of theirs",
        (false, Some(_)) => "clients register by themselves",
        (false, None) => "clients must be registered by hand",
    }
}

/// What metadata is good for.
#[derive(Debug, PartialEq)]
enum Verdict {
    Good,
    Odd(Diagnosis),
    Bad(Diagnosis),
}

/// What keeps clients from logging in.
fn check_server(metadata: &ServerMetadata, issuer: &str) -> Verdict {
    if metadata.issuer != issuer {
        return Verdict::Bad(auth(
            format!(
                "the metadata is of the issuer {}, where {} was expected, to the letter",
                plain(&metadata.issuer),
                plain(issuer)
            ),
            "Let both be the same, also in the slash at the end.",
        ));
    }
    for (endpoint, name) in [
        (&metadata.authorization_endpoint, "authorization_endpoint"),
        (&metadata.token_endpoint, "token_endpoint"),
    ] {
        if endpoint.is_none() {
            return Verdict::Bad(auth(
                format!("the authorization server's metadata has no {name}"),
                "People cannot log in without it: add it.",
            ));
        }
    }
    if !metadata.checks_s256() {
        return Verdict::Bad(auth(
            "the authorization server does not say that it checks PKCE with S256, so clients must not log in",
            "Add \"code_challenge_methods_supported\": [\"S256\"] to its metadata.",
        ));
    }
    if metadata.registration_endpoint.is_none() && !metadata.client_id_metadata_document_supported {
        return Verdict::Odd(auth(
            "clients cannot register themselves: neither registration_endpoint nor client id documents",
            "Register a client by hand and give its id to the login, or enable one of the two.",
        ));
    }
    Verdict::Good
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
            let found = check_resource(&metadata, "https://a/mcp").unwrap();
            assert!(found.cause.contains(cause), "{document}: {found:?}");
        }
        let good = br#"{"resource":"https://a/mcp","authorization_servers":["https://c"]}"#;
        assert_eq!(check_resource(&ResourceMetadata::parse(good).unwrap(), "https://a/mcp"), None);
    }

    #[test]
    fn servers_where_nobody_can_log_in() {
        let ends = r#""authorization_endpoint":"https://c/a","token_endpoint":"https://c/t""#;
        let pkce = r#""code_challenge_methods_supported":["S256"]"#;
        for (document, cause, is_bad) in [
            (format!(r#"{{"issuer":"https://d",{ends},{pkce}}}"#), "issuer", true),
            (format!(r#"{{"issuer":"https://c",{pkce}}}"#), "authorization_endpoint", true),
            (format!(r#"{{"issuer":"https://c",{ends}}}"#), "PKCE", true),
            (format!(r#"{{"issuer":"https://c",{ends},{pkce}}}"#), "cannot register", false),
        ] {
            let metadata = ServerMetadata::parse(document.as_bytes()).unwrap();
            let (found, bad) = match check_server(&metadata, "https://c") {
                Verdict::Good => panic!("{document}"),
                Verdict::Odd(found) => (found, false),
                Verdict::Bad(found) => (found, true),
            };
            assert!(found.cause.contains(cause) && bad == is_bad, "{document}: {found:?}");
        }
        let good = format!(
            r#"{{"issuer":"https://c",{ends},{pkce},"registration_endpoint":"https://c/r"}}"#
        );
        let good = ServerMetadata::parse(good.as_bytes()).unwrap();
        assert_eq!(check_server(&good, "https://c"), Verdict::Good);
    }
}
