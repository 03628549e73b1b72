//! The way to a token, as far as it can be walked without one: each document a step.

use std::time::Duration;

use bowline_web::Web;
use tokio::time::Instant;

use super::discovery::{Discovery, Problem, SERVER, Stage};
use super::report::{Code, Diagnosis, Report, Step};
use super::status::{Answer, unauthorized};

/// Walks from a 401 to the point where a person must log in, or cannot.
pub(crate) async fn walk(
    report: &mut Report,
    web: &Web,
    url: &str,
    answer: &Answer,
    patience: Duration,
) {
    let found = Discovery::walk(web, url, &answer.headers, patience).await;
    for stage in &found.stages {
        report.push(step(stage));
        if stage.problems.iter().any(Problem::is_fatal) {
            return;
        }
    }
    if found.stage(SERVER).is_some() {
        let diagnosis = unauthorized(answer);
        let step = Step::ok("login", "everything a login needs is there", Instant::now());
        report.push(step.fail(diagnosis));
    }
}

fn step(stage: &Stage) -> Step {
    let step = Step::ok(stage.name, stage.seen.as_str(), Instant::now());
    let step = Step { took: stage.took, ..step };
    let fatal = stage.problems.iter().find(|problem| problem.is_fatal());
    match fatal.or_else(|| stage.problems.first()) {
        None => step,
        Some(problem) => {
            let diagnosis = Diagnosis::new(Code::Unauthorized, problem.cause(), problem.fix());
            if problem.is_fatal() { step.fail(diagnosis) } else { step.warn(diagnosis) }
        }
    }
}
