//! The way to a token, as far as it goes without one: each document is a step.

use std::time::Duration;

use bowline_check::discovery::{Discovery, Problem, SERVER};
use bowline_web::Web;
use tokio::time::Instant;

use super::report::{Code, Diagnosis, Report, Step};
use super::status::HttpReply;

/// Walks from a 401 to the point where a person can log in, or to what prevents it.
pub(crate) async fn walk(
    report: &mut Report,
    web: &Web,
    url: &str,
    reply: &HttpReply,
    patience: Duration,
) {
    let found = Discovery::walk(web, url, &reply.headers, patience).await;
    for stage in &found.stages {
        let fatal = stage.problems.iter().find(|problem| problem.is_fatal());
        let problem = fatal.or_else(|| stage.problems.first()).map(|problem: &Problem| {
            Diagnosis::new(Code::Unauthorized, problem.cause(), problem.fix())
        });
        let step = Step::ok(stage.name, stage.seen.as_str(), Instant::now());
        let step = Step { took: stage.took, ..step };
        if fatal.is_some() {
            return report.push(step.fail(problem));
        }
        report.push(step.warn(problem));
    }
    if found.stage(SERVER).is_some() {
        let step = Step::ok("login", "everything that a login needs is there", Instant::now());
        report.push(step.fail(reply.unauthorized()));
    }
}
