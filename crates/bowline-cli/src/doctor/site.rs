//! The walk to a URL: the address, the network, TLS, HTTP, and then the protocol.

use std::time::Duration;

use bowline::proto::revision::{Era, Revision, Revisions};
use bowline_web::Web;
use http::HeaderMap;
use serde_json::{Value, json};

use super::address::Address;
use super::era::{Search, Want};
use super::http::Talk;
use super::lists::{self, Left};
use super::report::{Diagnosis, Report, Step};
use super::status::{self, Answer};
use super::tls::Believed;
use super::wire::{Answered, Trouble, Wire, initialize};
use super::{auth, network, places, streams, tls, wire};
use crate::target::Kept;
use tokio::time::Instant;

/// What comes after the URL was read, in order.
const STEPS: [&str; 11] = [
    "dns",
    "tcp",
    "tls",
    "http",
    "discover",
    "initialize",
    "era",
    "initialized",
    "tools",
    "resources",
    "prompts",
];

/// What a visitor brings.
#[derive(Default)]
pub(crate) struct Visit {
    pub(crate) headers: HeaderMap,
    /// Certificates to believe beside those of the system.
    pub(crate) ca_pem: Option<Vec<u8>>,
    /// A login that was kept.
    pub(crate) login: Option<Kept>,
}

/// Walks.
pub(crate) async fn walk(report: &mut Report, url: &str, visit: Visit, want: Want) {
    let Some(address) = read(report, url) else {
        return skip_from(report, 0, "no URL");
    };
    let Visit { headers, ca_pem, login } = visit;
    let web = match build(ca_pem.as_deref(), want.timeout) {
        Ok(web) => web,
        Err(step) => return report.push(step),
    };
    let believed = Believed { ca_pem: ca_pem.as_deref(), patience: want.timeout };
    let Some(at) = reach(report, &web, &address, believed).await else { return };
    let mut talk = Talk::new(web, address, headers, login);
    if !speak(report, &mut talk, at, want).await {
        return skip_from(report, 4, "no connection");
    }
    let mut wire = Wire::Http(Box::new(talk));
    let Some(live) = Search::new(&mut wire, report, want).run().await else {
        return skip_from(report, 6, "no connection");
    };
    let Wire::Http(talk) = &mut wire else { return };
    transport(report, talk, want.timeout).await;
    if !live.revision.is_modern() {
        talk.revision = Some(live.revision);
        initialized(report, talk, live.revision, want.timeout).await;
    }
    if lists::walk(&mut wire, report, &live, want).await == Left::Gone {
        return;
    }
    let Wire::Http(talk) = &mut wire else { return };
    streams::walk(report, talk, &live, want.timeout).await;
}

fn skip_from(report: &mut Report, first: usize, why: &str) {
    for name in &STEPS[first..] {
        report.push(Step::skipped(name, why));
    }
}

fn read(report: &mut Report, url: &str) -> Option<Address> {
    let began = Instant::now();
    let step = Step::ok("url", super::seen::plain(url), began);
    match Address::parse(url) {
        Ok(address) => {
            report.push(match address.advice() {
                None => step,
                Some(advice) => step.warn(advice),
            });
            Some(address)
        }
        Err(diagnosis) => {
            report.push(step.fail(diagnosis));
            None
        }
    }
}

fn build(ca_pem: Option<&[u8]>, patience: Duration) -> Result<Web, Step> {
    let began = Instant::now();
    let web = match ca_pem {
        Some(pem) => Web::builder().ca_pem(pem),
        None => Web::builder(),
    };
    let web = web.connect_timeout(patience).header_timeout(None);
    web.build().map_err(|error| {
        let fix = "Check HTTPS_PROXY, HTTP_PROXY and ALL_PROXY, and the system's certificates.";
        let diagnosis = Diagnosis::unreachable(error.to_string(), fix);
        Step::ok("proxy", error.to_string(), began).fail(diagnosis)
    })
}

/// How the host is reached.
#[derive(Debug, Clone, Copy)]
enum Way {
    Straight(std::net::SocketAddr),
    /// Through a proxy, so that nothing below HTTP can be looked at.
    Proxy,
}

/// Name, connection and TLS, one after another; through a proxy they are its own business.
async fn reach(
    report: &mut Report,
    web: &Web,
    address: &Address,
    believed: Believed<'_>,
) -> Option<Way> {
    let patience = believed.patience;
    let began = Instant::now();
    if let Some(proxy) = web.proxy_for(&address.uri) {
        report.push(Step::ok("proxy", format!("through {proxy}, as the environment says"), began));
        for name in ["dns", "tcp", "tls"] {
            report.push(Step::skipped(name, "the proxy does that"));
        }
        return Some(Way::Proxy);
    }
    let found = network::resolve(report, address, patience).await;
    if found.is_empty() {
        skip_from(report, 1, "the host has no address");
        return None;
    }
    let Some(at) = network::connect(report, address, &found, patience).await else {
        skip_from(report, 2, "no connection");
        return None;
    };
    if !tls::walk(report, address, at, believed).await {
        skip_from(report, 3, "no TLS");
        return None;
    }
    Some(Way::Straight(at))
}

/// The first exchange; says whether to go on.
async fn speak(report: &mut Report, talk: &mut Talk, way: Way, want: Want) -> bool {
    let began = Instant::now();
    let (method, params, revision) = first_question(want);
    let answered = talk.ask(method, params, revision, want.timeout).await;
    let step = Step::ok("http", seen(&answered), began);
    match answered {
        Err(Trouble::Unreachable { diagnosis, .. }) => {
            let diagnosis = match way {
                Way::Straight(at)
                    if !talk.address.is_secure && tls::is_spoken(&talk.address, at).await =>
                {
                    tls::wants_tls(&talk.address)
                }
                _ => *diagnosis,
            };
            report.push(step.fail(diagnosis));
            false
        }
        Err(Trouble::Http(answer)) if answer.status == 401 => {
            report.push(step);
            let url = talk.address.uri.to_string();
            auth::walk(report, &talk.web, &url, &answer, want.timeout).await;
            false
        }
        Err(Trouble::Http(answer)) if answer.is_redirect() => {
            report.push(step.fail(redirected(&answer)));
            false
        }
        Err(Trouble::Http(answer)) if answer.is_undecided() => {
            let failure = look_again(talk, (method, answer), want).await;
            let is_good = failure.is_none();
            report.push(match failure {
                None => step,
                Some(diagnosis) => step.fail(diagnosis),
            });
            is_good
        }
        Err(Trouble::Http(answer)) => {
            report.push(step.fail(status::diagnose(&answer)));
            false
        }
        Err(trouble @ (Trouble::NoAnswer(_) | Trouble::Ended)) => {
            report.push(step.fail(wire::silent(method, &trouble)));
            false
        }
        answered => {
            talk.keep(method, answered);
            report.push(step);
            true
        }
    }
}

fn first_question(want: Want) -> (&'static str, Value, Revision) {
    let ours = want.preference.narrow(Revisions::ALL);
    match ours.newest(Era::Modern) {
        Some(modern) => ("server/discover", json!({}), modern),
        None => {
            let legacy = ours.newest(Era::Legacy).unwrap_or(Revision::LATEST_LEGACY);
            ("initialize", initialize(legacy), legacy)
        }
    }
}

fn seen(answered: &Answered) -> String {
    match answered {
        Ok(_) => "a message".to_owned(),
        Err(Trouble::Refused { .. }) => "a message, an error".to_owned(),
        Err(trouble) => trouble.seen(),
    }
}

/// An answer that a server of another era or transport may give as well: those are tried before
/// the path is called wrong.
async fn look_again(
    talk: &mut Talk,
    (method, answer): (&str, Box<Answer>),
    want: Want,
) -> Option<Diagnosis> {
    let status = answer.status;
    let legacy = want.preference.narrow(Revisions::ALL).newest(Era::Legacy);
    if let Some(legacy) = legacy.filter(|_| method != "initialize") {
        let again = talk.ask("initialize", initialize(legacy), legacy, want.timeout).await;
        let is_message = !matches!(again, Err(Trouble::Http(_) | Trouble::Unreachable { .. }));
        if is_message {
            talk.keep(method, Err(Trouble::Http(answer)));
            talk.keep("initialize", again);
            return None;
        }
    }
    let uri = talk.address.uri.clone();
    let opens = places::opens_sse(talk, &uri);
    if tokio::time::timeout(want.timeout, opens).await.unwrap_or(false) {
        return None;
    }
    match places::find(talk, want.timeout).await {
        Some(uri) => Some(places::elsewhere(talk, status, &uri)),
        None => Some(status::diagnose(&answer)),
    }
}

/// Whether a redirect is to a page where people log in.
pub(crate) fn leads_to_login(place: &str) -> bool {
    let place = place.to_lowercase();
    ["login", "signin", "sso", "auth"].iter().any(|word| place.contains(word))
}

fn redirected(answer: &Answer) -> Diagnosis {
    let place = answer.header(http::header::LOCATION).unwrap_or_default();
    let mut diagnosis = status::diagnose(answer);
    diagnosis.fix = match leads_to_login(&place) {
        true => "It leads to a login page for browsers: let the server answer 401 to clients, or \
                 let this path pass without that login."
            .to_owned(),
        false => format!("Use the URL that it leads to: {}", super::seen::plain(&place)),
    };
    diagnosis
}

async fn transport(report: &mut Report, talk: &Talk, patience: Duration) {
    let began = Instant::now();
    let session = match &talk.session {
        Some(_) => ", with a session",
        None => ", without a session",
    };
    if !talk.is_sse() {
        let seen = format!("streamable HTTP{session}");
        return report.push(Step::ok("transport", seen, began));
    }
    let step = Step::ok("transport", "HTTP+SSE of 2024-11-05", began);
    report.push(step.warn(match places::find(talk, patience).await {
        Some(uri) => Diagnosis::broken(
            "the URL leads to the old transport, and the server has the new one as well",
            format!("Use {uri}"),
        ),
        None => Diagnosis::broken(
            "the server speaks only the old transport, which clients are giving up",
            "Serve streamable HTTP (2025-03-26 and later) as well.",
        ),
    }));
}

async fn initialized(report: &mut Report, talk: &Talk, revision: Revision, patience: Duration) {
    let began = Instant::now();
    let sent = talk.notify("notifications/initialized", revision, patience).await;
    let (seen, problem) = match sent {
        Ok(202) => ("HTTP 202".to_owned(), None),
        Ok(status @ 200..300) => (
            format!("HTTP {status}"),
            Some(format!("the server answers a notification with HTTP {status}, not 202")),
        ),
        Ok(status) => (
            format!("HTTP {status}"),
            Some(format!("the server refuses notifications/initialized (HTTP {status})")),
        ),
        Err(trouble) => (
            trouble.seen(),
            Some(format!("notifications/initialized was not taken: {}", trouble.seen())),
        ),
    };
    let step = Step::ok("initialized", seen, began);
    report.push(match problem {
        None => step,
        Some(cause) => step.warn(Diagnosis::broken(
            cause,
            "Answer notifications with 202 and no body, and keep the session open.",
        )),
    });
}
