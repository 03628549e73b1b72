//! Each check passes on good servers and fails on servers that break just that rule: good servers
//! whose messages are changed on the way, one fault per row.

mod auth_faults;
#[allow(dead_code, unexpected_cfgs, reason = "an example has a main, and features of its crate")]
#[path = "../../bowline/examples/everything.rs"]
mod everything;
mod extension_faults;
mod faults;
mod faulty;
mod http_faults;
mod reports;
mod rewrite;
#[allow(dead_code, reason = "not every server of the example is checked")]
#[path = "../../bowline/examples/features/servers.rs"]
mod servers;
mod task_faults;

use std::collections::BTreeSet;
use std::time::Duration;

use bowline::http::Http;
use bowline::{Revision, Server, Tool};
use bowline_web::{Proxy, Web};
use http::HeaderMap;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use self::rewrite::Rewrite;
use crate::check::Target;
use crate::frames::Http as Endpoint;
use crate::probe::Settings;
use crate::report::{Finding, Verdict};
use crate::rule::{Profile, Severity, all};
use crate::run::{Choice, run};
use crate::survey::survey;

/// A server that has something for every check.
fn good() -> Server {
    everything::server()
        .with(Tool::new("now", || async { "now" }).description("Says now").read_only())
}

fn settings(target: Target) -> Settings {
    let calls = vec![
        ("structured".to_owned(), json!({"a": 1, "b": 2})),
        ("slow".to_owned(), json!({"steps": 3, "ms": 1})),
    ];
    let timeout = Duration::from_secs(120);
    Settings { calls, jobs: 4, is_local: true, timeout, ..Settings::new(target) }
}

/// A call that takes long enough to be cancelled.
fn slow() -> Vec<(String, Value)> {
    vec![("slow".to_owned(), json!({"steps": 8, "ms": 50}))]
}

/// The revisions that servers of HTTP+SSE speak.
const LEGACY: [Revision; 4] =
    [Revision::V2024_11_05, Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25];

/// A server over HTTP, until this is dropped.
struct Running {
    task: JoinHandle<()>,
    /// Streamable HTTP.
    post: Box<Endpoint>,
    /// HTTP+SSE.
    events: Box<Endpoint>,
}

impl Running {
    async fn start(server: Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::serve(server.http(), listener)
    }

    fn serve(http: Http, listener: TcpListener) -> Self {
        let base = format!("http://{}", listener.local_addr().unwrap());
        let serving = http.serve_until(listener, std::future::pending());
        let task = tokio::spawn(async move { serving.await.unwrap() });
        Self { task, post: post(&format!("{base}/mcp")), events: post(&format!("{base}/sse")) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn post(url: &str) -> Box<Endpoint> {
    let web = Web::builder().proxy(Proxy::None).build().unwrap();
    Box::new(Endpoint::new(web, url.parse().unwrap(), HeaderMap::new()))
}

/// Runs one check, a group, or all of them.
async fn check(settings: &Settings, only: &str, revisions: &[Revision]) -> Vec<Finding> {
    let only = only.split(',').filter(|it| !it.is_empty()).map(ToOwned::to_owned);
    let choice = Choice { only: only.collect(), ..Choice::default() };
    run(settings, &choice, (revisions, revisions), |_| {}).await
}

fn problems(findings: &[Finding]) -> Vec<String> {
    let is_bad = |it: &&Finding| it.verdict.is_problem() && it.rule.severity <= Severity::Should;
    let tell =
        |it: &Finding| format!("{} {}: {:?} {:?}", it.revision, it.rule.id, it.said, it.evidence);
    findings.iter().filter(is_bad).map(tell).collect()
}

#[tokio::test]
async fn our_servers_break_nothing_in_any_revision_on_any_transport() {
    // Most of the time is spent waiting for what must not come.
    let all = tokio::task::LocalSet::new();
    let tasks = ["features", "empty", "pages", "counter"].map(|name| {
        all.spawn_local(async move {
            let make = move || servers::server(name).unwrap();
            let running = Running::start(make()).await;
            let pipe = settings(Rewrite::none(make).target());
            let http = settings(Target::Http(running.post.clone()));
            let events = settings(Target::HttpSse(running.events.clone()));
            let (pipe, http, events) = tokio::join!(
                check(&pipe, "", &Revision::ALL),
                check(&http, "", &Revision::ALL),
                check(&events, "", &LEGACY),
            );
            for findings in [pipe, http, events] {
                assert_eq!(problems(&findings), [""; 0], "{name}");
                assert!(findings.len() > 300, "{name}: {}", findings.len());
            }
        })
    });
    all.await;
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test]
async fn every_check_can_be_passed() {
    let pipe = settings(Rewrite::none(good).target());
    let mut findings = check(&pipe, "", &Revision::ALL).await;
    let pipe = Settings { calls: slow(), ..pipe };
    findings.extend(check(&pipe, "cancel.running", &Revision::ALL).await);
    let running = Running::start(good()).await;
    let http = settings(Target::Http(running.post.clone()));
    findings.extend(check(&http, "", &Revision::ALL).await);
    let events = settings(Target::HttpSse(running.events.clone()));
    findings.extend(check(&events, "", &LEGACY).await);
    let (_running, guarded) = auth_faults::guarded().await;
    // Tasks are listed only to those whose tasks they are.
    let only = "auth,tools.call,tasks.list,tasks.bad-cursor";
    findings.extend(check(&guarded, only, &Revision::ALL).await);
    let extended = settings(Rewrite::none(extension_faults::extended).target());
    findings.extend(check(&extended, "skills,apps", &Revision::ALL).await);
    let tasked = settings(Rewrite::none(task_faults::tasked).target());
    findings.extend(check(&tasked, "tasks", &Revision::ALL).await);
    // Some rules are about servers without the legacy era.
    let modern = good().revisions(Revision::LATEST.into());
    let running = Running::start(modern).await;
    let http = settings(Target::Http(running.post.clone()));
    findings.extend(check(&http, "", &[Revision::LATEST]).await);
    assert_eq!(problems(&findings), [""; 0]);
    let passed = findings.iter().filter(|it| it.verdict == Verdict::Passed);
    let passed: BTreeSet<&str> = passed.map(|it| it.rule.id).collect();
    let missing: Vec<&str> = all().map(|it| it.id).filter(|id| !passed.contains(id)).collect();
    assert_eq!(missing, [""; 0]);
}

/// A server that ignores modern requests gets less time than one that is still starting.
#[tokio::test(start_paused = true)]
async fn a_server_that_starts_slowly_is_asked_for_every_revision() {
    for jobs in [1, 4] {
        let target = Rewrite::none(good).slow_target(Duration::from_secs(8));
        let mut settings = Settings { jobs, ..settings(target) };
        let found = survey(&mut settings).await;
        let Ok((revisions, _)) = found else { panic!("{found:?}") };
        assert_eq!(revisions, Revision::ALL);
        assert_eq!(settings.jobs, jobs);
        assert!(settings.openings.values().all(|it| it.ending.is_some()));
        assert_eq!(settings.openings.len(), 5);
    }
}

#[tokio::test]
async fn every_check_has_a_fault_that_it_finds() {
    let known: BTreeSet<&str> = faults::ROWS
        .iter()
        .map(|row| row.id)
        .chain(http_faults::ROWS.iter().map(|row| row.id))
        .chain(http_faults::EVENTS.iter().map(|row| row.id))
        .chain(auth_faults::ROWS.iter().map(|row| row.id))
        .chain(auth_faults::LET_IN.map(|(id, _)| id))
        .chain(extension_faults::ids())
        .chain(task_faults::ids())
        .chain(faults::BY_PROGRAM)
        .chain(http_faults::BY_SOCKET)
        .collect();
    let missing: Vec<&str> = all().map(|it| it.id).filter(|id| !known.contains(id)).collect();
    assert_eq!(missing, [""; 0]);
}

/// Why the findings do not report the fault.
fn not_found(id: &str, findings: &[Finding]) -> Option<String> {
    let [finding] = findings else { return Some(format!("{id}: {} findings", findings.len())) };
    let is_counted = finding.rule.counts_in(Profile::Default);
    let wanted = if is_counted { Verdict::Failed } else { Verdict::Warned };
    let is_found = finding.verdict == wanted && !finding.said.is_empty();
    let Finding { verdict, said, evidence, .. } = finding;
    (!is_found).then(|| format!("{id}: {verdict:?} {said:?} {evidence:?}"))
}
