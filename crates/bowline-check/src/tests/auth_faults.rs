//! What servers do wrong with tokens, one fault per row.

use std::sync::Arc;

use bowline::http::auth::{Guard, Identity, StaticTokens};
use bowline::{Revision, Tool};
use bowline_serve::testing::{self, Service};
use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::faulty::Fault;
use super::task_faults::tasked;
use super::{Running, check, not_found, post, settings};
use crate::check::{CheckError, Target};
use crate::frames::Http as Endpoint;
use crate::probe::Settings;
use crate::report::Verdict;
use crate::rule::Transport;
use crate::survey::survey;

/// The parts of a request that matter.
struct Asked {
    verb: String,
    path: String,
    has_token: bool,
    /// Whether its token lacks a scope.
    is_weak: bool,
}

/// The response to it.
struct SiteReply {
    status: u16,
    challenge: Option<String>,
    body: Value,
}

/// A fault, and the check that must find it.
pub(super) struct Row {
    pub(super) id: &'static str,
    change: fn(&Asked, &mut SiteReply),
}

const fn row(id: &'static str, change: fn(&Asked, &mut SiteReply)) -> Row {
    Row { id, change }
}

/// Replaces the response for paths that end like this.
fn at(asked: &Asked, end: &str, answer: &mut SiteReply, change: fn(&mut SiteReply)) {
    if asked.path.ends_with(end) {
        change(answer);
    }
}

const RESOURCE: &str = "/.well-known/oauth-protected-resource/mcp";
const SERVER: &str = "/.well-known/oauth-authorization-server";
/// A token that lacks a scope.
const WEAK: &str = "Bearer weak";

pub(super) const ROWS: &[Row] = &[
    row("auth.status", |q, a| {
        at(q, "/mcp", a, |a| a.status = if a.status == 401 { 403 } else { 200 });
    }),
    row("auth.status", |q, a| {
        at(q, "/mcp", a, |a| a.status = if a.status == 401 { 302 } else { 200 });
    }),
    row("auth.challenge", |_, a| a.challenge = None),
    row("auth.challenge", |_, a| a.challenge = Some("Basic realm=\"x\"".to_owned())),
    row("auth.challenge-syntax", |_, a| {
        a.challenge = a.challenge.as_ref().map(|it| it.replace('"', ""));
    }),
    row("auth.pointer", |_, a| a.challenge = Some("Bearer".to_owned())),
    row("auth.metadata", |q, a| at(q, RESOURCE, a, |a| a.status = 404)),
    row("auth.metadata-valid", |q, a| {
        at(q, RESOURCE, a, |a| a.body["authorization_servers"] = json!([]));
    }),
    row("auth.metadata-valid", |q, a| at(q, RESOURCE, a, |a| a.body = json!("none"))),
    row("auth.resource", |q, a| {
        at(q, RESOURCE, a, |a| a.body["resource"] = json!("https://other.example/mcp"));
    }),
    row("auth.server", |q, a| at(q, SERVER, a, |a| a.status = 404)),
    row("auth.server", |q, a| at(q, SERVER, a, |a| a.body["token_endpoint"] = Value::Null)),
    row("auth.issuer", |q, a| {
        at(q, SERVER, a, |a| {
            a.body["issuer"] = json!(format!("{}/", a.body["issuer"].as_str().unwrap()));
        });
    }),
    row("auth.pkce", |q, a| {
        at(q, SERVER, a, |a| a.body["code_challenge_methods_supported"] = json!(["plain"]));
    }),
    row("auth.registration", |q, a| {
        at(q, SERVER, a, |a| a.body["registration_endpoint"] = Value::Null);
    }),
    row("auth.bad-token", |q, a| {
        if q.has_token {
            a.status = 403;
        }
    }),
    row("auth.bad-token-error", |q, a| {
        if q.has_token {
            a.challenge = Some("Bearer".to_owned());
        }
    }),
    row("auth.scope-syntax", |_, a| {
        a.challenge = a.challenge.as_ref().map(|it| it.replace("mcp:read", "mcp:read,  mcp:write"));
    }),
    row("auth.scope-syntax", |q, a| {
        at(q, RESOURCE, a, |a| a.body["scopes_supported"] = json!(["mcp:read mcp:write"]));
    }),
    row("auth.scope-hint", |_, a| {
        a.challenge = a.challenge.as_ref().map(|it| it.replace(" scope=\"mcp:read\",", ""));
    }),
    row("auth.scope-listed", |q, a| {
        at(q, RESOURCE, a, |a| a.body["scopes_supported"] = json!(["mcp:write"]));
    }),
    row("auth.offline-access", |q, a| {
        at(q, RESOURCE, a, |a| a.body["scopes_supported"] = json!(["mcp:read", "offline_access"]));
    }),
    row("auth.offline-access", |_, a| {
        let more = |it: &String| it.replace("mcp:read", "mcp:read offline_access");
        a.challenge = a.challenge.as_ref().map(more);
    }),
    row("auth.insufficient-scope", |_, a| {
        a.challenge = a.challenge.as_ref().map(|it| it.replace(" scope=\"mcp:read\",", ""));
    }),
    row("auth.insufficient-scope", |q, a| {
        if q.is_weak {
            a.challenge = a.challenge.as_ref().map(|it| it.replace("insufficient_scope", "no"));
        }
    }),
    row("auth.get", |q, a| {
        if q.verb == "GET" && q.path == "/mcp" {
            a.status = 200;
        }
    }),
];

type Change = fn(&Parts, &[u8], &mut Response<Bytes>);

/// Faults that only show with a valid token: what becomes of our own server's response.
pub(super) const LET_IN: [(&str, Change); 2] = [
    ("auth.closed", |q, _, a| {
        if !q.headers.contains_key(AUTHORIZATION) {
            *a.status_mut() = StatusCode::OK;
        }
    }),
    ("auth.session", |q, _, a| {
        if !q.headers.contains_key(AUTHORIZATION) && q.headers.contains_key("mcp-session-id") {
            *a.status_mut() = StatusCode::OK;
        }
    }),
];

/// A site that requires a token and says where to get one.
struct Site {
    base: String,
}

impl Site {
    fn start(change: fn(&Asked, &mut SiteReply)) -> Self {
        let service = Service::start(move |request| {
            let token = request.header("authorization");
            let asked = Asked {
                verb: request.method().to_owned(),
                path: request.path().to_owned(),
                has_token: token.is_some(),
                is_weak: token == Some(WEAK),
            };
            let mut answer = usual(&asked, &request.base());
            change(&asked, &mut answer);
            answer.into_http()
        });
        Self { base: service.url() }
    }

    fn settings(&self) -> Settings {
        let post = post(&format!("{}/mcp", self.base));
        Settings { is_barred: true, ..settings(Target::Http(post)) }
    }

    /// With a token that lacks a scope.
    fn weak(&self) -> Settings {
        let post = with_token(&post(&format!("{}/mcp", self.base)), WEAK);
        let settings = settings(Target::Http(post));
        Settings { is_barred: true, has_credentials: true, ..settings }
    }
}

impl SiteReply {
    fn into_http(self) -> testing::HttpReply {
        let mut answer =
            testing::HttpReply { status: self.status, ..testing::HttpReply::json(&self.body) }
                .with_header("content-type", "application/json");
        if let Some(challenge) = self.challenge {
            answer = answer.with_header("www-authenticate", challenge);
        }
        match self.status {
            300..400 => answer.with_header("location", "/login"),
            _ => answer,
        }
    }
}

/// The right response.
fn usual(asked: &Asked, base: &str) -> SiteReply {
    let ok = |body| SiteReply { status: 200, challenge: None, body };
    match asked.path.as_str() {
        "/mcp" => {
            let (status, error) = match (asked.has_token, asked.is_weak) {
                (false, _) => (401, ""),
                (true, false) => (401, ", error=\"invalid_token\""),
                (true, true) => (403, ", error=\"insufficient_scope\""),
            };
            let challenge =
                format!("Bearer scope=\"mcp:read\", resource_metadata=\"{base}{RESOURCE}\"{error}");
            SiteReply { status, challenge: Some(challenge), body: json!("who are you?") }
        }
        RESOURCE => ok(json!({
            "resource": format!("{base}/mcp"),
            "authorization_servers": [base],
            "scopes_supported": ["mcp:read", "mcp:write"],
        })),
        SERVER => ok(json!({
            "issuer": base,
            "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{base}/token"),
            "registration_endpoint": format!("{base}/register"),
            "code_challenge_methods_supported": ["S256"],
        })),
        _ => SiteReply { status: 404, challenge: None, body: Value::Null },
    }
}

/// A server of ours that requires a token, and settings with one.
pub(super) async fn guarded() -> (Running, Settings) {
    let site = Site::start(|_, _| {});
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let tokens = StaticTokens::new().token("open-sesame", Identity::new("alice").scope("mcp"));
    let guard = Guard::new(&url, tokens).unwrap().authorization_server(&site.base).unwrap();
    let guard = guard.scopes(["mcp"]).unwrap().offer_scopes(["admin"]).unwrap();
    let secret = Tool::new("secret", || async { "secret" }).read_only().scopes(["admin"]);
    let running = Running::serve(tasked().with(secret).http().require_auth(guard), listener);
    let target = Target::Http(with_token(&running.post, "Bearer open-sesame"));
    let settings = Settings { has_credentials: true, ..settings(target) };
    (running, settings)
}

fn with_token(post: &Endpoint, token: &'static str) -> Box<Endpoint> {
    let mut given = HeaderMap::new();
    given.insert(AUTHORIZATION, HeaderValue::from_static(token));
    Box::new(Endpoint::new(post.web.clone(), post.url.clone(), given))
}

#[tokio::test]
async fn a_well_guarded_server_passes() {
    let site = Site::start(|_, _| {});
    for settings in [site.settings(), site.weak()] {
        let findings = check(&settings, "", &[Revision::V2025_11_25]).await;
        for finding in &findings {
            assert!(!finding.verdict.is_problem(), "{}: {:?}", finding.rule.id, finding.said);
            assert_eq!(finding.rule.group_name(), "auth");
        }
        assert_eq!(findings.len(), ROWS_AND_LET_IN);
    }
}

/// How many rules of `auth` apply in 2025-11-25.
const ROWS_AND_LET_IN: usize = 20;

#[tokio::test]
async fn each_fault_is_found() {
    let mut missed = Vec::new();
    for row in ROWS {
        let site = Site::start(row.change);
        let revision = match row.id {
            "auth.offline-access" => Revision::V2026_07_28,
            _ => Revision::V2025_11_25,
        };
        let settings = match row.id {
            "auth.insufficient-scope" => site.weak(),
            _ => site.settings(),
        };
        let findings = check(&settings, row.id, &[revision]).await;
        missed.extend(not_found(row.id, &findings));
    }
    assert_eq!(missed, [""; 0]);
}

#[tokio::test]
async fn a_server_that_serves_requests_without_a_token_is_noticed() {
    let (_running, settings) = guarded().await;
    for (id, after) in LET_IN {
        let Target::Http(post) = &settings.target else { panic!("it has an address") };
        let post = Fault { after, event: |_| {} }.between(post).await;
        let gate = Arc::default();
        let settings = Settings { target: Target::Http(post), gate, ..settings.clone() };
        let findings = check(&settings, id, &[Revision::V2025_11_25]).await;
        assert_eq!(not_found(id, &findings), None);
    }
}

#[tokio::test]
async fn a_server_that_requires_a_token_is_recognised() {
    for change in [
        |_: &Asked, _: &mut SiteReply| {},
        |q: &Asked, a: &mut SiteReply| {
            at(q, "/mcp", a, |a| a.status = if a.status == 401 { 302 } else { 200 });
        },
    ] {
        let site = Site::start(change);
        let mut settings = site.settings();
        let found = survey(&mut settings).await;
        assert!(matches!(found, Err(CheckError::Barred(_))), "{found:?}");
    }
    // Not about tokens.
    let site = Site::start(|_, a| {
        (a.status, a.challenge, a.body) = (403, None, json!("not from here"));
    });
    let found = survey(&mut site.settings()).await;
    assert!(
        matches!(found, Err(CheckError::Unreachable(ref why)) if why.contains("403")),
        "{found:?}"
    );
    // With the token, everything is served.
    let (running, mut settings) = guarded().await;
    let found = survey(&mut settings).await;
    assert!(matches!(found, Ok((ref revisions, _)) if revisions.len() == 5));
    // The old transport, too: the token goes with the GET and with the POSTs.
    let Target::Http(mut post) = settings.target.clone() else { panic!("it has an address") };
    post.url = running.events.url.clone();
    let mut settings = Settings { target: Target::Http(post), ..settings };
    let found = survey(&mut settings).await;
    assert!(matches!(found, Ok((ref revisions, _)) if revisions.len() == 4));
    assert_eq!(settings.transport(), Transport::Sse);
    let findings = check(&settings, "auth,sse,tools.list", &[Revision::V2025_11_25]).await;
    let accused = findings.iter().filter(|it| it.verdict == Verdict::Failed);
    // The metadata is for the other URL.
    assert_eq!(accused.map(|it| it.rule.id).collect::<Vec<_>>(), ["auth.resource"]);
    let mut settings = self::settings(Target::Http(running.events.clone()));
    let found = survey(&mut settings).await;
    assert!(matches!(found, Err(CheckError::Barred(_))), "{found:?}");
}
