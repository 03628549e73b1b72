//! The walk through a command: is it there, does it start, does it speak, does it end.

use std::time::Duration;

use super::ending::{End, seconds};
use super::era::{Search, Want};
use super::lists::{self, Left};
use super::process::{Process, Recipe, is_soon_gone, names};
use super::program::Wanted;
use super::report::{Diagnosis, Report, Step};
use super::seen::quoted;
use super::wire::Wire;
use super::{output, words};
use tokio::time::Instant;

/// What comes after the program was found, in order.
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

/// How long a server may take to end when its input does, and then when it is told to.
const END_GRACE: Duration = Duration::from_secs(5);
const TERM_GRACE: Duration = Duration::from_secs(3);
/// How long children may take to follow their parent.
const CHILD_GRACE: Duration = Duration::from_millis(500);

/// Walks.
pub(crate) async fn walk(report: &mut Report, recipe: Recipe, want: Want) {
    if !find(report, &recipe) {
        return skip_from(report, 0, "the program cannot be started");
    }
    let Some(process) = start(report, recipe) else {
        return skip_from(report, 1, "the program did not start");
    };
    let mut wire = Wire::Process(Box::new(process));
    let live = Search::new(&mut wire, report, want).run().await;
    let left = match live {
        None => {
            skip_from(report, 3, "no connection");
            Left::Gone
        }
        Some(live) => {
            initialized(&mut wire, report, live.revision.is_modern(), want).await;
            lists::walk(&mut wire, report, &live, want).await
        }
    };
    let Wire::Process(mut process) = wire else { return };
    first_byte(report, &process);
    tell_output(report, &process);
    tell_stderr(report, &process);
    match left {
        Left::Alive => shutdown(report, &mut process, want).await,
        Left::Gone => report.push(Step::skipped("shutdown", "no connection")),
    }
}

fn skip_from(report: &mut Report, first: usize, why: &str) {
    for name in &STEPS[first..] {
        report.push(Step::skipped(name, why));
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
    match wanted.check_directory() {
        Ok(None) => {}
        Ok(Some(seen)) => report.push(Step::ok("directory", seen, began)),
        Err((seen, diagnosis)) => {
            report.push(Step::ok("directory", seen, began).fail(diagnosis));
            return false;
        }
    }
    match wanted.find() {
        Ok(found) => {
            let step = Step::ok("program", found.seen, began);
            report.push(match found.advice {
                Some(advice) => step.warn(advice),
                None => step,
            });
            true
        }
        Err((seen, diagnosis)) => {
            report.push(Step::ok("program", seen, began).fail(diagnosis));
            false
        }
    }
}

fn start(report: &mut Report, recipe: Recipe) -> Option<Process> {
    let began = Instant::now();
    let program = recipe.program.to_string_lossy().into_owned();
    match Process::start(recipe) {
        Ok(process) => {
            let id = process.id().map(|id| format!("process {id}")).unwrap_or_default();
            report.push(Step::ok("start", id, began));
            Some(process)
        }
        Err(error) => {
            let diagnosis = not_started(&program, &error);
            report.push(Step::ok("start", error.to_string(), began).fail(diagnosis));
            None
        }
    }
}

/// Why the system does not start a file that is there.
fn not_started(program: &str, error: &std::io::Error) -> Diagnosis {
    let (cause, fix) = match (error.kind(), error.raw_os_error()) {
        (std::io::ErrorKind::NotFound, _) => (
            format!(
                "{program} is there, but what it needs to run (its loader or interpreter) is not"
            ),
            "It was built for another system (such as musl or glibc), or its interpreter is gone: \
             use a build for this system.",
        ),
        (std::io::ErrorKind::PermissionDenied, _) => (
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

async fn initialized(wire: &mut Wire, report: &mut Report, is_modern: bool, want: Want) {
    let Wire::Process(process) = wire else { return };
    if is_modern {
        return report.push(Step::skipped("initialized", "the modern era has no handshake"));
    }
    let began = Instant::now();
    let is_sent = process.notify("notifications/initialized", want.timeout).await;
    let early: Vec<&str> = process
        .asked
        .iter()
        .filter(|(_, is_late)| !is_late)
        .map(|(method, _)| method.as_str())
        .collect();
    let seen = if is_sent { "sent" } else { "it does not take any more input" };
    let step = Step::ok("initialized", seen, began);
    report.push(match early.iter().find(|method| **method != "ping") {
        None => step,
        Some(method) => {
            Step { seen: format!("it asked {method} before"), ..step }.warn(Diagnosis::broken(
                format!("the server asks {method} before the handshake is over"),
                "Ask the client nothing but ping before notifications/initialized has come.",
            ))
        }
    });
}

/// How long the first byte took: clients have deadlines of their own.
fn first_byte(report: &mut Report, process: &Process) {
    let Some(took) = process.first_byte else { return };
    let step =
        Step { took, ..Step::ok("first byte", format!("after {}", seconds(took)), Instant::now()) };
    report.push(match took > Duration::from_secs(10) {
        false => step,
        true => step.warn(Diagnosis::unreachable(
            format!("the first byte took {}, and many clients give up sooner", seconds(took)),
            "Do slow work after the handshake; install what npx or uvx downloads beforehand.",
        )),
    });
}

fn tell_output(report: &mut Report, process: &Process) {
    let step = Step::ok("output", process.output.seen(), Instant::now());
    if let Some(diagnosis) = output::diagnose(&process.output) {
        return report.push(step.warn(diagnosis));
    }
    match process.odd.first() {
        None => report.push(step),
        Some(odd) => report.push(Step { seen: odd.clone(), ..step }.warn(Diagnosis::broken(
            format!("the server sends what nobody waits for: {odd}"),
            "Answer each request once, under its own id, and no notification at all.",
        ))),
    }
}

fn tell_stderr(report: &mut Report, process: &Process) {
    let lines = process.stderr_lines();
    let seen = match lines.as_slice() {
        [] => "nothing".to_owned(),
        [only] => quoted(only.as_bytes()),
        [.., last] => format!("{} lines, the last: {}", lines.len(), quoted(last.as_bytes())),
    };
    let seen = match words::explain(&lines) {
        Some((_, line)) if lines.len() > 1 => {
            format!("{seen}; among them: {}", quoted(line.as_bytes()))
        }
        _ => seen,
    };
    report.push(Step::ok("stderr", seen, Instant::now()));
}

async fn shutdown(report: &mut Report, process: &mut Process, want: Want) {
    let began = Instant::now();
    let grace = want.timeout.min(END_GRACE);
    if let Some(end) = process.close_input(grace).await {
        let took = began.elapsed();
        if !is_soon_gone(&process.group, CHILD_GRACE).await {
            return leftovers(report, process, began);
        }
        let seen = format!("ended by itself {} after its input ({})", seconds(took), told(end));
        let step = Step { took, ..Step::ok("shutdown", seen, began) };
        return report.push(match end {
            End::Code(0) => step,
            _ => step.warn(Diagnosis::broken(
                format!("the program ends with {} when its input does", told(end)),
                "Take the end of the input as the wish to end, and exit with status 0.",
            )),
        });
    }
    process.group.terminate();
    let ended = process.ended(want.timeout.min(TERM_GRACE)).await;
    let seen = match ended {
        Some(end) => format!(
            "still there {} after its input ended; SIGTERM ended it ({})",
            seconds(grace),
            told(end)
        ),
        None => {
            process.group.kill();
            process.ended(TERM_GRACE).await;
            format!(
                "still there {} after its input ended; SIGTERM did not end it, SIGKILL did",
                seconds(grace)
            )
        }
    };
    let cause = match ended {
        Some(_) => "the program does not end when its input does",
        None => "the program ends neither with its input nor on SIGTERM: it has to be killed",
    };
    let fix =
        "Take the end of the input as the wish to end; otherwise clients leave processes behind.";
    report.push(Step::ok("shutdown", seen, began).warn(Diagnosis::broken(cause, fix)));
}

fn leftovers(report: &mut Report, process: &Process, began: Instant) {
    let names = names(&process.group);
    process.group.kill();
    let who = if names.is_empty() { "children".to_owned() } else { names.join(", ") };
    let seen = format!("the program ended; still there: {who}");
    report.push(Step::ok("shutdown", seen, began).warn(Diagnosis::broken(
        format!("the program leaves processes behind when it ends: {who}"),
        "End children before ending; a wrapper script should `exec` the server.",
    )));
}

fn told(end: End) -> String {
    match end {
        End::Code(code) => format!("exit status {code}"),
        End::Signal(signal) => format!("signal {signal}"),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Error;

    use super::*;

    #[test]
    fn what_the_system_says_has_a_reason() {
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
