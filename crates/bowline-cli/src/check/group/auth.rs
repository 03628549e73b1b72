//! Who is let in: what a server says to who brings no token, and to who brings a bad one.
//!
//! All of it can be tried without a token, but for what needs a session. The walk through the
//! documents is the doctor's.

use std::sync::Arc;

use bowline::Revision;
use bowline::client::auth::Challenge;
use http::header::LOCATION;
use http::{HeaderMap, Method, StatusCode};
use serde_json::json;

use super::jsonrpc::plain;
use crate::check::evidence::{Evidence, shorten};
use crate::check::probe::{Outcome, PASS, Probe, Trouble, all_good, broken, skip};
use crate::check::table::Check;
use crate::check::wire::{Ask, Changes, Door, Heard, initialize, request};
use crate::doctor::{CHALLENGE, Discovery, Problem, RESOURCE, SERVER};

const PAGE: &str = "basic/authorization";

/// A check of who is let in: since there are protected resources.
const fn of(check: Check) -> Check {
    check.since(Revision::V2025_06_18).web().page(PAGE)
}

pub(super) const CHECKS: &[Check] = &[
    of(Check::must("auth.status", "who brings no token is refused with 401", |probe| {
        Box::pin(status(probe))
    }))
    .fix("Answer with 401: clients log in after nothing else, and do not follow a page for browsers."),
    of(Check::should("auth.closed", "nothing is served without a token where tokens are used", |probe| {
        Box::pin(closed(probe))
    }))
    .fix("Look at the token of each request, and refuse the request if there is none; if the server is open to all, no token need be given to this check."),
    of(Check::must("auth.challenge", "the 401 says that a bearer token is wanted", |probe| {
        Box::pin(found(probe, "auth.challenge"))
    }))
    .fix("Send WWW-Authenticate: Bearer resource_metadata=\"…\" with the 401."),
    of(Check::should("auth.challenge-syntax", "WWW-Authenticate follows the grammar of HTTP", |probe| {
        Box::pin(found(probe, "auth.challenge-syntax"))
    }))
    .fix("Put the values of parameters into double quotes, with commas between parameters."),
    of(Check::portability("auth.pointer", "the 401 says where the metadata of the server is", |probe| {
        Box::pin(pointer(probe))
    }))
    .fix("Add resource_metadata=\"…\" to WWW-Authenticate: some clients look nowhere else."),
    of(Check::should("auth.metadata", "there is metadata that says where tokens come from", |probe| {
        Box::pin(found(probe, "auth.metadata"))
    }))
    .fix("Serve /.well-known/oauth-protected-resource followed by the path of the server (RFC 9728); without it nobody can log in, and tokens must be handed out."),
    of(Check::must("auth.metadata-valid", "the metadata can be read, and names an authorization server", |probe| {
        Box::pin(found(probe, "auth.metadata-valid"))
    }))
    .fix("Serve a JSON object with resource and authorization_servers, a list of issuers (RFC 9728)."),
    of(Check::must("auth.resource", "the metadata is for the URL that clients connect to", |probe| {
        Box::pin(found(probe, "auth.resource"))
    }))
    .fix("Let resource be the URL that clients connect to: scheme, host, port and path; behind a proxy, the public one."),
    of(Check::must("auth.server", "the authorization server has metadata with what a login needs", |probe| {
        Box::pin(found(probe, "auth.server"))
    }))
    .fix("Serve /.well-known/oauth-authorization-server (or openid-configuration) of the issuer over https, with authorization_endpoint and token_endpoint."),
    of(Check::must("auth.issuer", "the issuer in the metadata is the one that was asked for", |probe| {
        Box::pin(found(probe, "auth.issuer"))
    }))
    .fix("Let issuer and the entry of authorization_servers be the same text, also in the slash at the end."),
    of(Check::must("auth.pkce", "the authorization server says that it checks PKCE with S256", |probe| {
        Box::pin(found(probe, "auth.pkce"))
    }))
    .fix("Add \"code_challenge_methods_supported\": [\"S256\"] to its metadata: clients must not log in without."),
    of(Check::portability("auth.registration", "clients that nobody knows can log in", |probe| {
        Box::pin(found(probe, "auth.registration"))
    }))
    .fix("Support client id metadata documents, or registration (RFC 7591); otherwise each client must be registered by hand."),
    of(Check::must("auth.bad-token", "a token that is none is refused with 401", |probe| {
        Box::pin(bad_token(probe))
    }))
    .fix("Answer with 401 to tokens that are malformed, expired, of other issuers or for other servers."),
    of(Check::should("auth.bad-token-error", "a token that is none is called invalid_token", |probe| {
        Box::pin(bad_token_error(probe))
    }))
    .fix("Add error=\"invalid_token\" to WWW-Authenticate: it tells clients to get another one (RFC 6750)."),
    of(Check::must("auth.get", "the stream of the server needs a token, too", |probe| {
        Box::pin(get(probe))
    }))
    .http()
    .legacy()
    .fix("Look at the token of each HTTP request: GET and DELETE as well as POST."),
    of(Check::must("auth.session", "a session does not stand in for a token", |probe| {
        Box::pin(session(probe))
    }))
    .http()
    .legacy()
    .fix("Look at the token of each request; whoever has seen a session id could use it otherwise."),
];

/// What no token stands for.
const NOBODYS: &str = "Bearer bowline-check-no-such-token";

/// The answer to who brings no token, and where that leads.
pub(in crate::check) struct Gate {
    status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) discovery: Discovery,
    pub(super) evidence: Vec<Evidence>,
}

/// A first request, without the token or with another.
async fn knock(probe: &mut Probe, token: Option<&str>) -> Result<Heard, Trouble> {
    knock_with(probe, &[("authorization", token)]).await
}

/// A first request with what we have.
pub(super) async fn knock_as_we_are(probe: &mut Probe) -> Result<Heard, Trouble> {
    knock_with(probe, &[]).await
}

async fn knock_with(probe: &mut Probe, changes: Changes<'_>) -> Result<Heard, Trouble> {
    let (id, revision) = (json!(1), probe.revision);
    let frame = match revision.is_modern() {
        true => request(revision, &id, "server/discover", json!({})).to_string(),
        false => initialize(&id, revision.as_str()).to_string(),
    };
    let ask = match probe.settings.door {
        Door::Events(_) => Ask::verb(Method::GET, changes),
        _ => Ask::post(&frame, changes),
    };
    send(probe, &ask).await
}

async fn send(probe: &mut Probe, ask: &Ask<'_>) -> Result<Heard, Trouble> {
    let Some(post) = probe.settings.door.post() else { return skip("a program takes no tokens") };
    let heard = post.ask(ask, probe.settings.timeout).await;
    probe.evidence.push(ask.evidence().heard(&heard));
    Ok(heard?)
}

/// What it looks like without a token; looked at once for all revisions.
async fn gate(probe: &mut Probe) -> Result<Arc<Gate>, Trouble> {
    if let Some(gate) = probe.settings.gate.get() {
        return Ok(Arc::clone(gate));
    }
    if !probe.settings.has_credentials && !probe.settings.is_barred {
        return skip("the server wants no token");
    }
    let heard = knock(probe, None).await?;
    let evidence = std::mem::take(&mut probe.evidence);
    let Some(post) = probe.settings.door.post() else { return skip("a program takes no tokens") };
    let url = post.url.to_string();
    let patience = probe.settings.timeout;
    let discovery = Discovery::walk(&post.web, &url, &heard.headers, patience).await;
    let status = heard.status.unwrap_or_default();
    let gate = Arc::new(Gate { status, headers: heard.headers, discovery, evidence });
    // Checks run one after the other: nobody else has set it.
    let _ = probe.settings.gate.set(Arc::clone(&gate));
    Ok(gate)
}

/// The same, where it is shut.
pub(super) async fn shut(probe: &mut Probe) -> Result<Arc<Gate>, Trouble> {
    let gate = gate(probe).await?;
    match gate.status.is_success() {
        true => skip("the server serves who brings no token"),
        false => Ok(gate),
    }
}

async fn status(probe: &mut Probe) -> Outcome {
    let gate = shut(probe).await?;
    if gate.status == StatusCode::UNAUTHORIZED {
        return PASS;
    }
    probe.evidence.extend(gate.evidence.iter().cloned());
    let place = gate.headers.get(LOCATION).map(|it| String::from_utf8_lossy(it.as_bytes()));
    let place = place.map_or_else(String::new, |it| format!(", to {}", shorten(&it, 160)));
    broken(format!("a request without a token was answered with {}{place}", gate.status))
}

async fn closed(probe: &mut Probe) -> Outcome {
    let gate = gate(probe).await?;
    match gate.status.is_success() {
        false => PASS,
        true => {
            probe.evidence.extend(gate.evidence.iter().cloned());
            broken(format!("a request without a token was answered with {}", gate.status))
        }
    }
}

/// The check that tells of a problem.
fn teller(problem: &Problem) -> &'static str {
    match problem {
        Problem::NoChallenge | Problem::OtherScheme(_) => "auth.challenge",
        Problem::Malformed(_) => "auth.challenge-syntax",
        Problem::NoResource => "auth.metadata",
        Problem::UnreadableResource(_) | Problem::NoServers => "auth.metadata-valid",
        Problem::OtherResource(_) => "auth.resource",
        Problem::NoServer(_)
        | Problem::UnreadableServer(_)
        | Problem::Exposed(_)
        | Problem::NoEndpoint(_) => "auth.server",
        Problem::OtherIssuer(..) => "auth.issuer",
        Problem::NoPkce => "auth.pkce",
        Problem::NoRegistration => "auth.registration",
    }
}

/// Passes unless the walk found what this check is about.
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
    let is_silent = stage.problems.contains(&Problem::NoChallenge);
    if name == CHALLENGE && is_silent && gate.status != StatusCode::UNAUTHORIZED {
        return skip("there is no 401 to look at");
    }
    if id == "auth.challenge-syntax" && is_silent {
        return skip("there is no WWW-Authenticate");
    }
    let is_readable = |problem: &Problem| {
        !matches!(
            problem,
            Problem::NoResource
                | Problem::UnreadableResource(_)
                | Problem::NoServer(_)
                | Problem::UnreadableServer(_)
        )
    };
    let mine: Vec<&Problem> = stage.problems.iter().filter(|it| teller(it) == id).collect();
    if mine.is_empty() {
        let is_read = stage.problems.iter().all(is_readable) || id == "auth.metadata";
        return if is_read { PASS } else { skip("there is no document to look at") };
    }
    match name {
        CHALLENGE => probe.evidence.extend(gate.evidence.iter().cloned()),
        _ => probe
            .evidence
            .push(Evidence { sent: format!("GET ({name})"), received: vec![stage.seen.clone()] }),
    }
    all_good(mine.iter().map(|problem| problem.cause()).collect())
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
    broken("the metadata is there, but WWW-Authenticate has no resource_metadata")
}

/// The answer to a token that is none, where one is wanted.
async fn with_bad_token(probe: &mut Probe) -> Result<Heard, Trouble> {
    shut(probe).await?;
    knock(probe, Some(NOBODYS)).await
}

fn expect_401(what: &str, status: Option<StatusCode>) -> Outcome {
    match status.unwrap_or_default() {
        StatusCode::UNAUTHORIZED => PASS,
        other => broken(format!("{what} was answered with {other}, not 401")),
    }
}

async fn bad_token(probe: &mut Probe) -> Outcome {
    let heard = with_bad_token(probe).await?;
    expect_401("a token that is none", heard.status)
}

async fn bad_token_error(probe: &mut Probe) -> Outcome {
    let heard = with_bad_token(probe).await?;
    if heard.status != Some(StatusCode::UNAUTHORIZED) {
        return skip("a token that is none was not answered with 401");
    }
    let challenges = Challenge::all(&heard.headers);
    if challenges.is_empty() {
        return skip("there is no WWW-Authenticate");
    }
    let told = challenges.iter().find_map(|it| it.parameter("error"));
    match told {
        Some("invalid_token") => PASS,
        Some(other) => broken(format!("the error is {:?}", shorten(other, 80))),
        None => broken("WWW-Authenticate has no error"),
    }
}

async fn get(probe: &mut Probe) -> Outcome {
    shut(probe).await?;
    let changes = [("authorization", None)];
    let heard = send(probe, &Ask::verb(Method::GET, &changes)).await?;
    match heard.status {
        // There is none.
        Some(StatusCode::METHOD_NOT_ALLOWED) => PASS,
        status => expect_401("a GET without a token", status),
    }
}

async fn session(probe: &mut Probe) -> Outcome {
    shut(probe).await?;
    if probe.settings.is_barred {
        return skip("without a token there is no session");
    }
    let link = probe.link().await?;
    if link.post().is_none_or(|post| post.session.is_none()) {
        return skip("the server gave no session id");
    }
    let id = link.next_id();
    let message = request(probe.revision, &id, plain(probe), json!({}));
    let changes: Changes<'_> = &[("authorization", None)];
    let heard = probe.say(&message.to_string(), changes).await?;
    expect_401("a request with a session and without a token", heard.status)
}
