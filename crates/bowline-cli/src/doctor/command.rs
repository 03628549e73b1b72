//! The walk through a command: whether it exists, starts, speaks and exits.

use std::io::{self, ErrorKind};
use std::time::Duration;

use bowline_check::frames::Recipe;
use tokio::time::Instant;

use super::conversation::{Conversation, StdioTalk};
use super::ending::End;
use super::era::{Plan, Search};
use super::program::Wanted;
use super::report::{Diagnosis, Report, Step};
use super::seen::{quoted, seconds};
use super::{lists, stderr};

/// The steps after the program is found, in order.
const STEPS: [&str; 9] = [
    "start",
    "discover",
    "initialize",
    "era",
    "initialized",
    "tools",
    "resources",
    "prompts",
    "ping",
];

/// How long a server may take to exit once its input is closed, and then after SIGTERM.
const EXIT_GRACE: Duration = Duration::from_secs(5);
const TERM_GRACE: Duration = Duration::from_secs(3);
/// How long children may outlive their parent.
const CHILD_GRACE: Duration = Duration::from_millis(500);
/// How long the first byte may take: other clients time out, too.
const SLOW: Duration = Duration::from_secs(10);

pub(crate) async fn walk(report: &mut Report, recipe: Recipe, plan: Plan) {
    if !find(report, &recipe) {
        return report.skip(&STEPS, "the program cannot be started");
    }
    let Some(talk) = start(report, recipe) else {
        return report.skip(&STEPS[1..], "the program did not start");
    };
    let mut conversation = Conversation::Stdio(Box::new(talk));
    let live = Search::new(&mut conversation, report, plan).run().await;
    let mut is_alive = false;
    match live {
        None => report.skip(&STEPS[3..], "no connection"),
        Some(live) => {
            initialized(&mut conversation, report, live.revision.is_modern(), plan).await;
            is_alive = lists::walk(&mut conversation, report, &live, plan).await;
        }
    }
    let Conversation::Stdio(mut talk) = conversation else { return };
    first_byte(report, &talk);
    output(report, &talk);
    errors(report, &talk);
    if is_alive {
        shutdown(report, &mut talk, plan).await;
    } else {
        report.push(Step::skipped("shutdown", "no connection"));
    }
}

fn find(report: &mut Report, recipe: &Recipe) -> bool {
    let began = Instant::now();
    let path = recipe.env.iter().rev().find(|(name, _)| name == "PATH");
    let path = path.map(|(_, value)| value.clone()).or_else(|| std::env::var_os("PATH"));
    let wanted = Wanted {
        program: recipe.program.to_string_lossy().into_owned(),
        path: path.unwrap_or_default(),
        home: std::env::home_dir(),
        directory: recipe.directory.clone(),
    };
    let (name, (seen, diagnosis)) = match (wanted.check_directory(), wanted.find()) {
        (Err(fault), _) => ("directory", fault),
        (Ok(directory), found) => {
            if let Some(seen) = directory {
                report.push(Step::ok("directory", seen, began));
            }
            match found {
                Ok(found) => {
                    report.push(Step::ok("program", found.seen, began).warn(found.advice));
                    return true;
                }
                Err(fault) => ("program", fault),
            }
        }
    };
    report.push(Step::ok(name, seen, began).fail(diagnosis));
    false
}

fn start(report: &mut Report, recipe: Recipe) -> Option<StdioTalk> {
    let began = Instant::now();
    let program = recipe.program.to_string_lossy().into_owned();
    match StdioTalk::start(recipe) {
        Ok(talk) => {
            let id = talk.process.id().map(|id| format!("process {id}")).unwrap_or_default();
            report.push(Step::ok("start", id, began));
            Some(talk)
        }
        Err(error) => {
            let diagnosis = not_started(&program, &error);
            report.push(Step::ok("start", error.to_string(), began).fail(diagnosis));
            None
        }
    }
}

/// Why the system does not start a file that exists.
fn not_started(program: &str, error: &io::Error) -> Diagnosis {
    let (cause, fix) = match (error.kind(), error.raw_os_error()) {
        (ErrorKind::NotFound, _) => (
            format!("{program} exists, but its loader or interpreter does not"),
            "It was built for another system (such as musl or glibc), or its interpreter is \
             missing: use a build for this system.",
        ),
        (ErrorKind::PermissionDenied, _) => (
            format!("the system does not allow {program} to be executed"),
            "Check its mode, and whether its file system is mounted with noexec.",
        ),
        // ENOEXEC.
        (_, Some(8)) => (
            format!("{program} is neither a program for this machine nor a script with a #! line"),
            "Use a build for this machine, or begin the script with #! and its interpreter.",
        ),
        // E2BIG.
        (_, Some(7)) => (
            "the arguments and the environment together are too long".to_owned(),
            "Pass long values in a file.",
        ),
        _ => (format!("the system does not start {program}: {error}"), "Start it by hand."),
    };
    Diagnosis::unreachable(cause, fix)
}

async fn initialized(
    conversation: &mut Conversation,
    report: &mut Report,
    is_modern: bool,
    plan: Plan,
) {
    let Conversation::Stdio(talk) = conversation else { return };
    if is_modern {
        return report.push(Step::skipped("initialized", "the modern era has no handshake"));
    }
    let began = Instant::now();
    let is_sent = talk.initialized(plan.timeout).await;
    let seen = if is_sent { "sent" } else { "the program accepts no more input" };
    let step = Step::ok("initialized", seen, began);
    report.push(match &talk.early_request {
        None => step,
        Some(method) => step.with_seen(format!("it sent {method} before")).warn(Diagnosis::broken(
            format!("the server sends {method} before the handshake is over"),
            "Send no request but ping before notifications/initialized has arrived.",
        )),
    });
}

fn first_byte(report: &mut Report, talk: &StdioTalk) {
    let Some(took) = talk.process.first_byte() else { return };
    let step = Step::ok("first byte", format!("after {}", seconds(took)), Instant::now());
    let warning = (took > SLOW).then(|| {
        Diagnosis::unreachable(
            format!("the first byte took {}, and many clients time out sooner", seconds(took)),
            "Do slow work after the handshake; install what npx or uvx downloads beforehand.",
        )
    });
    report.push(Step { took, ..step }.warn(warning));
}

fn output(report: &mut Report, talk: &StdioTalk) {
    let output = talk.output();
    let step = Step::ok("output", output.seen(), Instant::now());
    report.push(match (output.diagnose(), talk.unexpected.first()) {
        (None, Some(message)) => step.with_seen(message).warn(Diagnosis::broken(
            format!("the server sends a message that answers no request: {message}"),
            "Answer each request once, under its own id, and answer no notification.",
        )),
        (diagnosis, _) => step.warn(diagnosis),
    });
}

fn errors(report: &mut Report, talk: &StdioTalk) {
    let lines = talk.process.stderr();
    let mut seen = match lines.as_slice() {
        [] => "nothing".to_owned(),
        [only] => quoted(only.as_bytes()),
        [.., last] => format!("{} lines, the last: {}", lines.len(), quoted(last.as_bytes())),
    };
    if let Some((_, line)) = stderr::explain(&lines).filter(|_| lines.len() > 1) {
        seen = format!("{seen}; among them: {}", quoted(line.as_bytes()));
    }
    report.push(Step::ok("stderr", seen, Instant::now()));
}

async fn shutdown(report: &mut Report, talk: &mut StdioTalk, plan: Plan) {
    const FIX: &str = "Exit when the input ends; otherwise clients leave processes behind.";
    let began = Instant::now();
    let grace = plan.timeout.min(EXIT_GRACE);
    if let Some(end) = talk.close_input(grace).await {
        let took = began.elapsed();
        if let Some(names) = talk.process.survivors(CHILD_GRACE).await {
            return report.push(survivors(talk, &names, began));
        }
        let end = describe(end);
        let seen = format!("exited {} after its input was closed ({end})", seconds(took));
        let warning = (end != "status 0").then(|| {
            Diagnosis::broken(
                format!("the program exits with {end} when its input is closed"),
                "Treat the end of the input as a request to exit, with status 0.",
            )
        });
        return report.push(Step { took, ..Step::ok("shutdown", seen, began) }.warn(warning));
    }
    talk.process.terminate();
    let ended = talk.process.wait(plan.timeout.min(TERM_GRACE)).await;
    let (how, cause) = match ended {
        Some(status) => (
            format!("SIGTERM ended it ({})", describe(status.into())),
            "the program does not exit when its input is closed",
        ),
        None => {
            talk.process.kill();
            talk.process.wait(TERM_GRACE).await;
            (
                "SIGTERM did not end it, SIGKILL did".to_owned(),
                "the program exits neither when its input is closed nor on SIGTERM: it must be \
                 killed",
            )
        }
    };
    let seen = format!("still running {} after its input was closed; {how}", seconds(grace));
    report.push(Step::ok("shutdown", seen, began).warn(Diagnosis::broken(cause, FIX)));
}

fn survivors(talk: &StdioTalk, names: &[String], began: Instant) -> Step {
    talk.process.kill();
    let names = if names.is_empty() { "children".to_owned() } else { names.join(", ") };
    let seen = format!("the program exited; still running: {names}");
    Step::ok("shutdown", seen, began).warn(Diagnosis::broken(
        format!("the program leaves processes behind when it exits: {names}"),
        "Stop children before exiting; a wrapper script should `exec` the server.",
    ))
}

fn describe(end: End) -> String {
    match end {
        End::Code(code) => format!("status {code}"),
        End::Signal(signal) => format!("signal {signal}"),
    }
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
