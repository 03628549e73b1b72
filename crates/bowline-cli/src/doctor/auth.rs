//! The way to a token, as far as it goes without one: each document is a step.

use std::time::Duration;

use bowline_check::discovery::{Discovery, SERVER};
use bowline_check::frames::Http;
use tokio::time::Instant;

use super::report::{Report, Step, unauthorized};
use super::status::HttpReply;

/// Walks from a 401 to the point where a person can log in, or to what prevents it.
pub(crate) async fn walk(report: &mut Report, http: &Http, reply: &HttpReply, patience: Duration) {
    let found = Discovery::walk(&http.web, &http.url.to_string(), &reply.headers, patience).await;
    for stage in &found.stages {
        let fatal = stage.problems.iter().find(|problem| problem.is_fatal());
        let problem = fatal.or_else(|| stage.problems.first()).map(|problem| {
            let is_other_scheme = problem.rule == "auth.challenge" && stage.is_read;
            let header = if is_other_scheme {
                "Send what it asks for with --header. For logins: "
            } else {
                ""
            };
            unauthorized(problem.cause.as_str()).fix(format!("{header}{}", problem.fix()))
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
