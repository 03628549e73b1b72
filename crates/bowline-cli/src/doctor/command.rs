//! The walk through a command: whether it exists, starts, speaks and exits.

use std::io::{self, ErrorKind};
use std::time::Duration;

use bowline_check::Ending;
use bowline_check::frames::Recipe;
use tokio::time::Instant;

use super::conversation::Conversation;
use super::era::{Plan, Search};
use super::program::Wanted;
use super::report::{Diagnosis, Report, Step, broken, unreachable};
use super::seen::{plain, quoted, seconds};
use super::{lists, stderr};

/// The steps after the program is found, in order.
const STEPS: &str = "start discover initialize era initialized tools resources prompts";

/// How long a server may take to exit after SIGTERM.
const TERM_GRACE: Duration = Duration::from_secs(3);
/// How long the first byte may take: other clients time out, too.
const SLOW: Duration = Duration::from_secs(10);

pub(crate) async fn walk(report: &mut Report, recipe: Recipe, plan: Plan) {
    if let Some(mut talk) = start(report, recipe) {
        let is_alive = speak(report, &mut talk, plan).await.unwrap_or(false);
        report.skip_rest(STEPS);
        look_back(report, &mut talk);
        let shutdown = if is_alive { shutdown(&mut talk, plan).await } else { None };
        report.push(shutdown.unwrap_or_else(|| Step::skipped("shutdown", "no connection")));
    }
    report.skip_rest(STEPS);
}

/// Finds and starts the program.
fn start(report: &mut Report, recipe: Recipe) -> Option<Conversation> {
    let path = recipe.env.iter().rev().find(|(name, _)| name == "PATH");
    let path = path.map(|(_, value)| value.clone()).or_else(|| std::env::var_os("PATH"));
    let wanted = Wanted {
        program: recipe.program.to_string_lossy().into_owned(),
        path: path.unwrap_or_default(),
        home: std::env::home_dir(),
        directory: recipe.directory.clone(),
    };
    if recipe.directory.is_some() {
        report.require(wanted.check_directory())?;
    }
    report.require(wanted.find())?;
    let began = Instant::now();
    report.require(match Conversation::start(recipe) {
        Ok(mut talk) => {
            let id = talk.connection.process().and_then(|process| process.id());
            let id = id.map(|id| format!("process {id}")).unwrap_or_default();
            Ok((Step::ok("start", id, began), talk))
        }
        Err(error) => {
            let diagnosis = not_started(&wanted.program, &error);
            Err(Step::ok("start", error.to_string(), began).fail(diagnosis))
        }
    })
}

/// Speaks the protocol; returns whether the program still responds.
async fn speak(report: &mut Report, conversation: &mut Conversation, plan: Plan) -> Option<bool> {
    let live = Search::new(conversation, report, plan).run().await?;
    report.push(if live.revision.is_modern() {
        Step::skipped("initialized", "the modern era has no handshake")
    } else {
        lists::initialized(conversation, plan).await
    });
    Some(lists::walk(conversation, report, &live, plan).await)
}

/// Why the system does not start a file that exists.
fn not_started(program: &str, error: &io::Error) -> Diagnosis {
    match (error.kind(), error.raw_os_error()) {
        (ErrorKind::NotFound, _) => {
            unreachable(format!("{program} exists, but its loader or interpreter does not")).fix(
                "It was built for another system (such as musl or glibc), or its interpreter is \
                 missing: use a build for this system.",
            )
        }
        (ErrorKind::PermissionDenied, _) => {
            unreachable(format!("the system does not allow {program} to be executed"))
                .fix("Check its mode, and whether its file system is mounted with noexec.")
        }
        // ENOEXEC.
        (_, Some(8)) => unreachable(format!(
            "{program} is neither a program for this machine nor a script with a #! line"
        ))
        .fix("Use a build for this machine, or begin the script with #! and its interpreter."),
        // E2BIG.
        (_, Some(7)) => unreachable("the arguments and the environment together are too long")
            .fix("Pass long values in a file."),
        _ => unreachable(format!("the system does not start {program}: {error}"))
            .fix("Start it by hand."),
    }
}

/// What the program wrote, and when.
fn look_back(report: &mut Report, talk: &mut Conversation) {
    let output = talk.output();
    let Some(process) = talk.connection.process() else { return };
    process.first_byte().into_iter().for_each(|took| report.push(first_byte(took)));
    let lines = process.stderr();
    let step = Step::ok("output", output.seen(), Instant::now());
    report.push(match (output.diagnose(), &talk.connection.unexpected) {
        (None, Some(response)) => {
            let id = plain(&response["id"].to_string());
            step.with_seen(format!("a response with the id {id}, which no request had")).warn(
                broken("the server sends a response that answers no request")
                    .fix("Answer each request once, under its own id, and answer no notification."),
            )
        }
        (diagnosis, _) => step.warn(diagnosis),
    });
    report.push(errors(&lines));
    report.keep_stderr(&lines);
}

fn first_byte(took: Duration) -> Step {
    let after = seconds(took);
    let step = Step::ok("first byte", format!("after {after}"), Instant::now());
    let warning = (took > SLOW).then(|| {
        unreachable(format!("the first byte took {after}, and many clients time out sooner"))
            .fix("Do slow work after the handshake; install what npx or uvx downloads beforehand.")
    });
    Step { took, ..step }.warn(warning)
}

fn errors(lines: &[String]) -> Step {
    let telling = stderr::explain(lines).map(|(_, line)| ("among them", line));
    let last = lines.iter().rfind(|line| !line.is_empty()).map(|line| ("the last", line.as_str()));
    let seen = match (lines.len(), telling.or(last)) {
        (_, None) => "nothing".to_owned(),
        (1, Some((_, only))) => quoted(only.as_bytes()),
        (count, Some((which, line))) => {
            format!("{count} lines, {which}: {}", quoted(line.as_bytes()))
        }
    };
    Step::ok("stderr", seen, Instant::now())
}

async fn shutdown(talk: &mut Conversation, plan: Plan) -> Option<Step> {
    let began = Instant::now();
    talk.connection.timeout = plan.timeout;
    let ending = talk.connection.close().await?;
    let after = seconds(began.elapsed());
    let process = talk.connection.process()?;
    let (seen, problem) = match ending {
        Ending::Exited { left, .. } if !left.is_empty() => {
            let left = left.join(", ");
            let cause = format!("the program leaves processes behind when it exits: {left}");
            let fix = "Stop children before exiting; a wrapper script should `exec` the server.";
            (format!("the program exited; still running: {left}"), Some(broken(cause).fix(fix)))
        }
        Ending::Exited { status, .. } => {
            let problem = (!status.success()).then(|| {
                broken(format!("the program fails when its input is closed ({status})"))
                    .fix("Treat the end of the input as a request to exit, with status 0.")
            });
            (format!("ended {after} after its input was closed ({status})"), problem)
        }
        Ending::Running => {
            process.terminate();
            let (how, cause) = match process.wait(plan.timeout.min(TERM_GRACE)).await {
                Some(status) => {
                    let how = format!("SIGTERM ended it ({status})");
                    (how, "the program does not exit when its input is closed")
                }
                None => (
                    "SIGTERM did not end it, SIGKILL did".to_owned(),
                    "the program must be killed: it exits neither at the end of its input nor on \
                     SIGTERM",
                ),
            };
            let fix = "Exit when the input ends; otherwise clients leave processes behind.";
            let seen = format!("still running {after} after its input was closed; {how}");
            (seen, Some(broken(cause).fix(fix)))
        }
    };
    process.kill();
    process.wait(TERM_GRACE).await;
    Some(Step::ok("shutdown", seen, began).warn(problem))
}

#[cfg(test)]
mod tests {
    use std::io::Error;

    use super::*;

    #[test]
    fn each_system_error_has_its_cause() {
        for (error, cause) in [
            (Error::from_raw_os_error(2), "its loader or interpreter"),
            (Error::from_raw_os_error(13), "does not allow"),
            (Error::from_raw_os_error(8), "neither a program for this machine"),
            (Error::from_raw_os_error(7), "too long"),
            (Error::other("odd"), "odd"),
        ] {
            let found = not_started("x", &error);
            assert!(found.cause.contains(cause), "{error}: {found:?}");
        }
    }
}
