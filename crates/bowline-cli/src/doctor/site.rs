//! The walk to a URL: the address, the network, TLS, HTTP, and then the protocol.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bowline::proto::revision::{Era, Revision};
use bowline_check::discovery::leads_to_login;
use bowline_check::frames::Http;
use bowline_web::{Authorize, Url, Web, WebBuilder};
use http::{HeaderMap, header};
use serde_json::json;
use tokio::time::Instant;

use super::conversation::{AskError, Asked, Conversation, silent};
use super::era::{Plan, Search};
use super::report::{Diagnosis, Report, Step, broken, unreachable};
use super::seen::plain;
use super::status::HttpReply;
use super::{address, auth, lists, network, places, streams, tls};

/// The steps after the URL is parsed, in order.
const STEPS: &str = "dns tcp tls http discover initialize era initialized tools resources prompts";

/// What requests carry, and which certificates to trust.
#[derive(Default)]
pub(crate) struct Visit {
    pub(crate) headers: HeaderMap,
    /// The HTTP client, as the command line wants it; `None` is the usual one.
    pub(crate) web: Option<WebBuilder>,
    /// A stored login.
    pub(crate) login: Option<Arc<dyn Authorize>>,
}

pub(crate) async fn walk(report: &mut Report, url: &str, visit: Visit, plan: Plan) {
    // `None` once a step has failed that the others depend on.
    let _ = try_walk(report, url, visit, plan).await;
    report.skip_rest(STEPS);
}

async fn try_walk(report: &mut Report, url: &str, visit: Visit, plan: Plan) -> Option<()> {
    let Visit { headers, web, login } = visit;
    let step = Step::ok("url", plain(url), Instant::now());
    let url = report.require(match address::parse(url) {
        Ok(url) => Ok((step.warn(address::advice(&url)), url)),
        Err(diagnosis) => Err(step.fail(diagnosis)),
    })?;
    let web = match build(web.unwrap_or_else(Web::builder), plan.timeout) {
        Ok(web) => web,
        Err(step) => return report.require(Err(step)),
    };
    let at = reach(report, &web, &url, plan.timeout).await?;
    let http = Http::new(web, url.uri().clone(), headers).with_login(login);
    let mut talk = Conversation::open(http).await.ok()?;
    speak(report, &mut talk, (&url, at), plan).await?;
    let live = Search::new(&mut talk, report, plan).run().await?;
    report.push(transport(&talk, plan.timeout).await);
    if !live.revision.is_modern() {
        report.push(lists::initialized(&mut talk, plan).await);
    }
    if lists::walk(&mut talk, report, &live, plan).await {
        streams::walk(report, &talk, &live, plan.timeout).await;
    }
    Some(())
}

fn build(web: WebBuilder, patience: Duration) -> Result<Web, Step> {
    let began = Instant::now();
    web.connect_timeout(patience).header_timeout(None).build().map_err(|error| {
        let fix = "Check HTTPS_PROXY, HTTP_PROXY and ALL_PROXY, and the system's certificates.";
        let diagnosis = unreachable(error.to_string()).fix(fix);
        Step::ok("proxy", error.to_string(), began).fail(diagnosis)
    })
}

/// Name, connection and TLS, one after another, unless a proxy is in charge of them: then there is
/// no address.
async fn reach(
    report: &mut Report,
    web: &Web,
    url: &Url,
    patience: Duration,
) -> Option<Option<SocketAddr>> {
    let began = Instant::now();
    if let Some(proxy) = web.proxy_for(url.uri()) {
        let seen = format!("through {proxy}, set in the environment");
        report.push(Step::ok("proxy", seen, began));
        for name in ["dns", "tcp", "tls"] {
            report.push(Step::skipped(name, "left to the proxy"));
        }
        return Some(None);
    }
    let found = report.require(network::resolve(url, patience).await)?;
    let at = report.require(network::connect(url, &found, patience).await)?;
    report.require(tls::walk(url, at, web, patience).await)?;
    Some(Some(at))
}

/// The first exchange; `None` if the protocol cannot begin.
async fn speak(
    report: &mut Report,
    talk: &mut Conversation,
    (url, at): (&Url, Option<SocketAddr>),
    plan: Plan,
) -> Option<()> {
    let began = Instant::now();
    let (method, revision) = first_request(plan);
    let asked = talk.ask(method, json!({}), revision, plan.timeout).await;
    let step = Step::ok("http", seen(&asked), began);
    let problem = match asked {
        Err(AskError::Unreachable(diagnosis)) => Some(match at {
            Some(at) if !url.is_https() && tls::is_spoken(url, at).await => tls::other_scheme(url),
            _ => *diagnosis,
        }),
        Err(AskError::Http(reply)) if reply.status == 401 => {
            report.push(step);
            auth::walk(report, talk.target.http()?, &reply, plan.timeout).await;
            return None;
        }
        Err(AskError::Http(reply)) if reply.is_redirect() => Some(redirected(&reply)),
        Err(AskError::Http(reply)) if reply.is_inconclusive() => {
            look_again(talk, (method, reply), plan).await
        }
        Err(AskError::Http(reply)) => Some(reply.diagnose()),
        Err(error @ (AskError::TimedOut(_) | AskError::Ended)) => Some(silent(method, &error)),
        asked => {
            talk.keep(method, asked);
            None
        }
    };
    report.require(match problem {
        None => Ok((step, ())),
        Some(problem) => Err(step.fail(problem)),
    })
}

fn first_request(plan: Plan) -> (&'static str, Revision) {
    let ours = plan.revisions();
    match ours.newest(Era::Modern) {
        Some(modern) => ("server/discover", modern),
        None => ("initialize", ours.newest(Era::Legacy).unwrap_or(Revision::LATEST_LEGACY)),
    }
}

fn seen(asked: &Asked) -> String {
    match asked {
        Ok(_) => "a message".to_owned(),
        Err(AskError::Refused { .. }) => "a message with an error".to_owned(),
        Err(error) => error.seen(),
    }
}

/// Servers of another era or transport may respond like this, too: tries those, then the usual
/// paths, before it calls the path wrong.
async fn look_again(
    talk: &mut Conversation,
    (method, reply): (&str, Box<HttpReply>),
    plan: Plan,
) -> Option<Diagnosis> {
    let legacy = plan.revisions().newest(Era::Legacy);
    if let Some(legacy) = legacy.filter(|_| method != "initialize") {
        let again = talk.ask("initialize", json!({}), legacy, plan.timeout).await;
        if !matches!(again, Err(AskError::Http(_) | AskError::Unreachable(_))) {
            talk.keep(method, Err(AskError::Http(reply)));
            talk.keep("initialize", again);
            return None;
        }
    }
    let http = talk.target.http()?;
    if places::opens_sse(http, plan.timeout).await {
        return None;
    }
    let Some(url) = places::find(http, plan.timeout).await else { return Some(reply.diagnose()) };
    let (here, there) = (http.url.path(), url.path());
    Some(
        unreachable(format!(
            "the MCP server is not at {here} (HTTP {}), but at {there}",
            reply.status
        ))
        .fix(format!("Use {}", url.as_str())),
    )
}

fn redirected(reply: &HttpReply) -> Diagnosis {
    let location = reply.header(header::LOCATION).unwrap_or_default();
    let fix = if leads_to_login(&location) {
        "It leads to a login page for browsers: respond with 401 to clients, or exempt this path \
         from that login."
            .to_owned()
    } else {
        format!("Use the URL that it leads to: {}", plain(&location))
    };
    Diagnosis { fix, ..reply.diagnose() }
}

async fn transport(talk: &Conversation, patience: Duration) -> Step {
    let began = Instant::now();
    if !talk.is_sse() {
        let has_session = talk.connection.http().is_some_and(|http| http.session.is_some());
        let session = if has_session { "with" } else { "without" };
        return Step::ok("transport", format!("streamable HTTP, {session} a session"), began);
    }
    let step = Step::ok("transport", "HTTP+SSE of 2024-11-05", began);
    let Some(http) = talk.target.http() else { return step };
    step.warn(match places::find(http, patience).await {
        Some(url) => {
            broken("the URL leads to the old transport, but the server has the new one, too")
                .fix(format!("Use {}", url.as_str()))
        }
        None => broken("the server has only the old transport, which clients are abandoning")
            .fix("Serve streamable HTTP (2025-03-26 and later), too."),
    })
}
