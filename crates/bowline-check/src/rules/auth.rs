//! Access: how a server rejects requests without a token, or with a bad one.
//!
//! All of it can be tried without a token, except what needs a session.

use std::sync::Arc;

use bowline::Revision::V2025_06_18;
use bowline::client::auth::Challenge;
use http::header::LOCATION;
use http::{HeaderMap, Method, StatusCode};
use serde_json::json;

use super::http::session;
use crate::check::Target;
use crate::discovery::{CHALLENGE, Discovery, Problem, RESOURCE, SERVER};
use crate::evidence::Evidence;
use crate::frames::message::{self, plain_method};
use crate::frames::{HeaderChanges, HttpRequest};
use crate::observed::Observed;
use crate::probe::{NotPassed, Outcome, PASS, Probe, Received, all_good, broken, ensure, skip};
use crate::rule::{Rule, Transport, table};
use crate::text::shorten;

/// Since 2025-06-18, MCP servers are protected resources.
const AUTH: Rule =
    Rule::group("basic/authorization").since(V2025_06_18).on(&[Transport::Http, Transport::Sse]);

table! { |probe| AUTH;
    Must "auth.status" => status(probe),
        "requests without a token are rejected with 401",
        "Answer with 401: clients log in after nothing else, and do not follow a redirect to a web page.";
    Should "auth.closed" => closed(probe),
        "nothing is served without a token where tokens are used",
        "Check the token of each request, and reject requests without one; if the server is open to all, run this check without a token.";
    Must "auth.challenge" => found(probe, "auth.challenge"),
        "the 401 asks for a bearer token",
        "Send WWW-Authenticate: Bearer resource_metadata=\"…\" with the 401.";
    Should "auth.challenge-syntax" => found(probe, "auth.challenge-syntax"),
        "WWW-Authenticate follows the grammar of HTTP",
        "Put parameter values into double quotes, with commas between parameters.";
    Portability "auth.pointer" => pointer(probe),
        "the 401 says where the server's metadata is",
        "Add resource_metadata=\"…\" to WWW-Authenticate: some clients look nowhere else.";
    Should "auth.metadata" => found(probe, "auth.metadata"),
        "metadata says where tokens come from",
        "Serve /.well-known/oauth-protected-resource followed by the path of the server (RFC 9728); without it clients cannot log in, and tokens must be handed out (for such a server, pass one with --token or --header).";
    Must "auth.metadata-valid" => found(probe, "auth.metadata-valid"),
        "the metadata can be read, and names an authorization server",
        "Serve a JSON object with resource and authorization_servers, a list of issuers (RFC 9728).";
    Must "auth.resource" => found(probe, "auth.resource"),
        "the metadata is for the URL that clients connect to",
        "Set resource to the URL that clients connect to: scheme, host, port and path; behind a proxy, the public one.";
    Must "auth.server" => found(probe, "auth.server"),
        "the authorization server's metadata has what a login needs",
        "Serve /.well-known/oauth-authorization-server (or openid-configuration) of the issuer over https, with authorization_endpoint and token_endpoint.";
    Must "auth.issuer" => found(probe, "auth.issuer"),
        "the issuer in the metadata is the expected one",
        "Make issuer and the entry of authorization_servers the same text, including a slash at the end.";
    Must "auth.pkce" => found(probe, "auth.pkce"),
        "the authorization server declares that it checks PKCE with S256",
        "Add \"code_challenge_methods_supported\": [\"S256\"] to its metadata: clients must not log in without it.";
    Portability "auth.registration" => found(probe, "auth.registration"),
        "unknown clients can log in",
        "Support client id metadata documents, or registration (RFC 7591); otherwise each client must be registered by hand.";
    Must "auth.bad-token" => bad_token(probe),
        "an invalid token is rejected with 401",
        "Answer with 401 to tokens that are malformed, expired, from other issuers or for other servers.";
    Should "auth.bad-token-error" => bad_token_error(probe),
        "the response to an invalid token says invalid_token",
        "Add error=\"invalid_token\" to WWW-Authenticate: it tells clients to get another token (RFC 6750).";
    Must "auth.get" [.on(&[Transport::Http]).legacy()] => get(probe),
        "the server's event stream requires a token, too",
        "Check the token of each HTTP request: GET and DELETE as well as POST.";
    Must "auth.session" [.on(&[Transport::Http]).legacy()] => without_token(probe),
        "a session does not replace a token",
        "Check the token of each request; otherwise anyone who has seen a session id can use it.";
}

const INVALID: &str = "Bearer bowline-check-no-such-token";

/// How a server rejects requests without a token, and where that leads.
pub(crate) struct Gate {
    status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) discovery: Discovery,
    pub(super) evidence: Vec<Evidence>,
}

/// A first request, with other headers.
pub(super) async fn knock(
    probe: &mut Probe,
    changes: HeaderChanges<'_>,
) -> Result<Received, NotPassed> {
    let (id, revision) = (json!(1), probe.revision);
    let frame = if revision.is_modern() {
        message::request(revision, &id, "server/discover", json!({}))
    } else {
        message::initialize(&id, revision.as_str())
    };
    let frame = frame.to_string();
    let request = match probe.settings.target {
        Target::HttpSse(_) => HttpRequest::without_body(Method::GET, changes),
        _ => HttpRequest::post(&frame, changes),
    };
    send(probe, &request).await
}

/// Sends a request apart from all connections.
async fn send(probe: &mut Probe, request: &HttpRequest<'_>) -> Result<Received, NotPassed> {
    let reply = probe.http()?.exchange(request, probe.settings.timeout, |_| false).await;
    let received = reply.map(|reply| Observed::new(probe.revision).reply(reply, false));
    probe.evidence.push(Evidence::request(request).with(&received));
    Ok(received?)
}

/// How the server responds without a token; tried once for all revisions.
async fn gate(probe: &mut Probe) -> Result<Arc<Gate>, NotPassed> {
    if let Some(gate) = probe.settings.gate.get() {
        return Ok(Arc::clone(gate));
    }
    if !probe.settings.has_credentials && !probe.settings.is_barred {
        return skip("the server requires no token");
    }
    let received = knock(probe, &[("authorization", None)]).await?;
    let evidence = std::mem::take(&mut probe.evidence);
    let http = probe.http()?;
    let (url, patience) = (http.url.to_string(), probe.settings.timeout);
    let discovery = Discovery::walk(&http.web, &url, &received.headers, patience).await;
    let (status, headers) = (received.http_status(), received.headers);
    let gate = Arc::new(Gate { status, headers, discovery, evidence });
    // Checks of a URL run one after the other: nothing else has set it.
    let _ = probe.settings.gate.set(Arc::clone(&gate));
    Ok(gate)
}

/// The same, if it rejects the request.
pub(super) async fn shut(probe: &mut Probe) -> Result<Arc<Gate>, NotPassed> {
    let gate = gate(probe).await?;
    if gate.status.is_success() {
        return skip("the server serves requests without a token");
    }
    Ok(gate)
}

async fn status(probe: &mut Probe) -> Outcome {
    let gate = shut(probe).await?;
    if gate.status == StatusCode::UNAUTHORIZED {
        return PASS;
    }
    probe.evidence.extend(gate.evidence.iter().cloned());
    let location = gate.headers.get(LOCATION).map(|it| String::from_utf8_lossy(it.as_bytes()));
    let location = location.map_or_else(String::new, |it| format!(", to {}", shorten(&it, 160)));
    broken(format!("a request without a token got {}{location}", gate.status))
}

async fn closed(probe: &mut Probe) -> Outcome {
    let gate = gate(probe).await?;
    if !gate.status.is_success() {
        return PASS;
    }
    probe.evidence.extend(gate.evidence.iter().cloned());
    broken(format!("a request without a token got {}", gate.status))
}

/// Passes unless discovery found a problem that breaks this rule.
async fn found(probe: &mut Probe, id: &str) -> Outcome {
    let gate = shut(probe).await?;
    let name = match id {
        "auth.challenge" | "auth.challenge-syntax" => CHALLENGE,
        "auth.metadata" | "auth.metadata-valid" | "auth.resource" => RESOURCE,
        _ => SERVER,
    };
    let Some(stage) = gate.discovery.stage(name) else {
        return skip("no document leads to an authorization server");
    };
    let is_silent = name == CHALLENGE && !stage.is_read;
    if is_silent && gate.status != StatusCode::UNAUTHORIZED {
        return skip("there is no 401 to look at");
    }
    if is_silent && id == "auth.challenge-syntax" {
        return skip("there is no WWW-Authenticate");
    }
    let mine: Vec<&Problem> = stage.problems.iter().filter(|it| it.rule == id).collect();
    if mine.is_empty() {
        let is_read = stage.is_read || id == "auth.metadata";
        return if is_read { PASS } else { skip("there is no document to look at") };
    }
    if name == CHALLENGE {
        probe.evidence.extend(gate.evidence.iter().cloned());
    } else {
        let (sent, received) = (format!("GET ({name})"), vec![stage.seen.clone()]);
        probe.evidence.push(Evidence { sent, received });
    }
    all_good(mine.iter().map(|problem| problem.cause.clone()))
}

async fn pointer(probe: &mut Probe) -> Outcome {
    let gate = shut(probe).await?;
    if gate.discovery.has_pointer {
        return PASS;
    }
    if !gate.discovery.has_metadata() {
        return skip("there is no metadata to point to");
    }
    probe.evidence.extend(gate.evidence.iter().cloned());
    broken("there is metadata, but WWW-Authenticate has no resource_metadata")
}

/// The response to an invalid token, where one is required.
async fn with_bad_token(probe: &mut Probe) -> Result<Received, NotPassed> {
    shut(probe).await?;
    knock(probe, &[("authorization", Some(INVALID))]).await
}

async fn bad_token(probe: &mut Probe) -> Outcome {
    with_bad_token(probe).await?.expect_status("an invalid token", &[401])
}

async fn bad_token_error(probe: &mut Probe) -> Outcome {
    let received = with_bad_token(probe).await?;
    if received.status != Some(StatusCode::UNAUTHORIZED) {
        return skip("an invalid token did not get 401");
    }
    let challenges = Challenge::all(&received.headers);
    if challenges.is_empty() {
        return skip("there is no WWW-Authenticate");
    }
    match challenges.iter().find_map(|it| it.parameter("error")) {
        Some(error) => {
            ensure(error == "invalid_token", || format!("the error is {:?}", shorten(error, 80)))
        }
        None => broken("WWW-Authenticate has no error"),
    }
}

async fn get(probe: &mut Probe) -> Outcome {
    shut(probe).await?;
    let changes = [("authorization", None)];
    let received = send(probe, &HttpRequest::without_body(Method::GET, &changes)).await?;
    // With 405 there is no stream.
    if received.status == Some(StatusCode::METHOD_NOT_ALLOWED) {
        return PASS;
    }
    received.expect_status("a GET without a token", &[401])
}

async fn without_token(probe: &mut Probe) -> Outcome {
    shut(probe).await?;
    if probe.settings.is_barred {
        return skip("without a token there is no session");
    }
    session(probe).await?;
    let message = probe.request(plain_method(probe.revision), json!({})).await?;
    let received = probe.say(&message.to_string(), &[("authorization", None)]).await?;
    received.expect_status("a request with a session and without a token", &[401])
}
