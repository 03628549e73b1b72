//! `bowline tasks`: calls that a server works on while nobody waits.

use std::path::PathBuf;
use std::time::Duration;

use bowline::client::{CallError, TaskState};
use bowline::model::{TaskStatus, task_extension};
use bowline::{Client, ErrorCode, Json};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::call;
use super::list::{TASKS, all_pages};
use crate::failure::{Code, Failure};
use crate::screen::{OutputArgs, Screen, Style};
use crate::session::{Invocation, Session, TaskTold};
use crate::target::{TargetArgs, TargetOptions};
use crate::text::{line, plain};

/// Manage tasks: calls that run in the background
///
/// `bowline call --task` starts one and prints its id. A task belongs to the login that started it,
/// and to the revision of the protocol: use the same --token and --revision here.
#[derive(Args)]
pub(crate) struct Tasks {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List a server's tasks; only revision 2025-11-25 has such a list
    List(Box<TargetArgs>),
    /// Show a task: what it does, how long it is kept, what it asks
    #[command(override_usage = "bowline tasks show [OPTIONS] TARGET ID\n       \
        bowline tasks show [OPTIONS] ID -- COMMAND [ARGS]...")]
    Show(Box<TaskArgs>),
    /// Wait for the end of a task, and print its result as `bowline call` does
    ///
    /// Fails if the task asks something: `bowline tasks resume` answers. Ctrl-C ends the waiting,
    /// not the task.
    #[command(override_usage = "bowline tasks wait [OPTIONS] TARGET ID\n       \
        bowline tasks wait [OPTIONS] ID -- COMMAND [ARGS]...")]
    Wait(Box<WaitArgs>),
    /// Ask the server to stop a task, and show what became of it
    #[command(override_usage = "bowline tasks cancel [OPTIONS] TARGET ID\n       \
        bowline tasks cancel [OPTIONS] ID -- COMMAND [ARGS]...")]
    Cancel(Box<TaskArgs>),
    /// Wait for the end of a task, answer what it asks, and print its result
    ///
    /// Ctrl-C ends the waiting, not the task.
    #[command(override_usage = "bowline tasks resume [OPTIONS] TARGET ID\n       \
        bowline tasks resume [OPTIONS] ID -- COMMAND [ARGS]...")]
    Resume(Box<WaitArgs>),
}

#[derive(Args)]
struct TaskArgs {
    /// The server, unless a command follows `--`; the id of the task
    #[arg(value_name = "TARGET ID")]
    words: Vec<String>,

    #[command(flatten)]
    options: TargetOptions,
}

#[derive(Args)]
struct WaitArgs {
    /// Save images, audio and other binary content to this directory
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,

    #[command(flatten)]
    task: TaskArgs,
}

impl Tasks {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        match self.action {
            Action::List(target) => Invocation::new(&target, root)?.run(list).await,
            Action::Show(task) => {
                let shown = async |session: &Session, id: &str| {
                    let task = look(&session.client, id).await?;
                    session.screen.show(&task, || Ok(describe(&task.to_value(), &session.screen)))
                };
                task.run(root, shown).await
            }
            Action::Cancel(task) => {
                let cancelled = async |session: &Session, id: &str| {
                    let task = cancel(session.client.clone(), id.to_owned()).await?;
                    session.screen.show(&task, || Ok(describe(&task.to_value(), &session.screen)))
                };
                task.run(root, cancelled).await
            }
            Action::Wait(args) => {
                let WaitArgs { save, task } = *args;
                let waited = async |session: &Session, id: &str| {
                    until_ended(session, id).await?;
                    let result = resume(session, id).await?;
                    call::show(&session.screen, &result, None, save)
                };
                task.run(root, waited).await
            }
            Action::Resume(args) => {
                let WaitArgs { save, task } = *args;
                let resumed = async |session: &Session, id: &str| {
                    let result = resume(session, id).await?;
                    call::show(&session.screen, &result, None, save)
                };
                task.run(root, resumed).await
            }
        }
    }
}

impl TaskArgs {
    /// Connects, and works on the task.
    async fn run(
        &self,
        root: &OutputArgs,
        work: impl AsyncFnOnce(&Session, &str) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let (invocation, words) = Invocation::split(&self.options, &self.words, root)?;
        let [id] = words else {
            let failure = Failure::usage("which task? give one id");
            return Err(failure.with_remedy("`bowline call --task` prints the id of its task"));
        };
        invocation
            .run(async |session| {
                check_offered(&session.client)?;
                work(session, id).await.map_err(unknown)
            })
            .await
    }
}

/// `bowline tasks list`.
async fn list(session: &Session) -> Result<(), Failure> {
    check_listed(&session.client)?;
    let (result, cut) = all_pages(&session.client, TASKS.method, TASKS.member).await?;
    let screen = &session.screen;
    if let Some(why) = cut {
        screen.warn(&why);
    }
    screen.show(&result, || Ok(TASKS.table(&TASKS.items(&result, screen)?, screen)))
}

/// Fails if the server has no tasks.
pub(crate) fn check_offered(client: &Client) -> Result<(), Failure> {
    let Some(peer) = client.peer() else { return Ok(()) };
    let revision = peer.revision;
    let is_offered = match revision.is_modern() {
        true => peer.capabilities.has_extension(task_extension::ID),
        false => peer.capabilities.tasks.is_some(),
    };
    let what = match revision.is_modern() || revision.has_requested_tasks() {
        true if is_offered => return Ok(()),
        true => "the server offers no tasks".to_owned(),
        false => format!("{revision} has no tasks; 2025-11-25 and 2026-07-28 do"),
    };
    Err(Failure::new(Code::Refused, what))
}

/// Fails if the server does not list its tasks.
pub(crate) fn check_listed(client: &Client) -> Result<(), Failure> {
    check_offered(client)?;
    let Some(peer) = client.peer() else { return Ok(()) };
    if peer.revision.is_modern() {
        let what = format!("{} has no list of tasks", peer.revision);
        let remedy = "`bowline tasks show` takes the id that `bowline call --task` has printed; \
             --revision 2025-11-25 lists the tasks that were started in that revision";
        return Err(Failure::new(Code::Refused, what).with_remedy(remedy));
    }
    if peer.capabilities.tasks.as_ref().is_none_or(|tasks| tasks.list.is_none()) {
        let failure = Failure::new(Code::Refused, "the server does not list tasks");
        let remedy = "servers list tasks only to callers that they can tell apart; log in, or use \
             the id that `bowline call --task` has printed";
        return Err(failure.with_remedy(remedy));
    }
    Ok(())
}

/// Says why a server may not know a task.
fn unknown(failure: Failure) -> Failure {
    let is_unknown =
        failure.error.as_ref().is_some_and(|error| error.code == ErrorCode::INVALID_PARAMS);
    match is_unknown {
        true => failure.with_remedy(
            "servers show a task only to the login that started it, in the same --revision, and \
             forget it some time after its end",
        ),
        false => failure,
    }
}

/// Asks for a task. The answer is as it came.
pub(crate) async fn look(client: &Client, id: &str) -> Result<Json, CallError> {
    client.call_json("tasks/get", json!({ "taskId": id })).await
}

/// Asks the server to stop a task, and then what became of it.
pub(crate) async fn cancel(client: Client, id: String) -> Result<Json, CallError> {
    client.resume_task(id.as_str()).cancel().await?;
    look(&client, &id).await
}

/// Waits for the end of a task.
///
/// # Errors
/// When the task asks something.
async fn until_ended(session: &Session, id: &str) -> Result<(), Failure> {
    const USUAL: Duration = Duration::from_secs(1);
    const SHORTEST: Duration = Duration::from_millis(100);
    const LONGEST: Duration = Duration::from_secs(60);
    let task = session.client.resume_task(id);
    let mut told = TaskTold::default();
    loop {
        let state = task.status().await?;
        told.tell(&session.screen, &state);
        match state.status {
            TaskStatus::InputRequired => {
                let failure = Failure::new(Code::Refused, "the task asks something");
                let remedy = "`bowline tasks resume` answers; `bowline tasks show` shows it";
                return Err(failure.with_remedy(remedy));
            }
            TaskStatus::Working => {
                let pause = state.poll_interval.unwrap_or(USUAL).clamp(SHORTEST, LONGEST);
                tokio::time::sleep(pause).await;
            }
            _ => return Ok(()),
        }
    }
}

/// Waits for the end of a task, and answers its questions.
pub(super) async fn resume(session: &Session, id: &str) -> Result<Json, Failure> {
    let screen = std::sync::Arc::clone(&session.screen);
    let mut told = TaskTold::default();
    // It may take as long as it takes: each answer of the server has a deadline of its own.
    let task = session.client.resume_task(id).timeout(Duration::MAX);
    let task = task.on_status(move |state: &TaskState| told.tell(&screen, state));
    Ok(task.wait_json().await?)
}

/// A task for programs, the same in all revisions.
pub(super) fn for_programs(state: &TaskState) -> Json {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let mut task = json!({
        "taskId": state.id,
        "status": state.status,
        "createdAt": state.created_at,
        "lastUpdatedAt": state.last_updated_at,
        "ttlMs": state.ttl.map(millis),
    });
    if let Some(message) = &state.message {
        task["statusMessage"] = json!(message);
    }
    if let Some(interval) = state.poll_interval {
        task["pollIntervalMs"] = json!(millis(interval));
    }
    task.into()
}

/// A task for people, from what `tasks/get` returns.
pub(crate) fn describe(task: &Value, screen: &Screen) -> String {
    let text = |name: &str| task.get(name).and_then(Value::as_str).map(line);
    let mut rows = vec![
        ("task", text("taskId")),
        ("status", text("status")),
        ("message", text("statusMessage")),
        ("created", text("createdAt")),
        ("updated", text("lastUpdatedAt")),
        ("kept", Some(kept(task))),
    ];
    let asked = task.get("inputRequests").and_then(Value::as_object);
    rows.extend(asked.into_iter().flatten().map(|(_, question)| ("asks", Some(asks(question)))));
    let error = task.pointer("/error/message").and_then(Value::as_str);
    rows.push(("error", error.map(line)));
    let is_over = text("status").is_some_and(|status| status == "completed");
    rows.push(("result", is_over.then(|| "`tasks wait` prints it".to_owned())));
    let rows = rows.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let rows = rows.map(|(name, value)| {
        format!("{} {value}\n", screen.out.paint(Style::Dim, &format!("{name:<8}")))
    });
    rows.collect()
}

/// How long a task is kept.
fn kept(task: &Value) -> String {
    let millis = task.get("ttlMs").or_else(|| task.get("ttl")).and_then(Value::as_u64);
    match millis.map(|millis| millis / 1000) {
        None => "until the server forgets it".to_owned(),
        Some(seconds) if seconds < 120 => format!("{seconds} s after it was created"),
        Some(seconds) => format!("{} min after it was created", seconds / 60),
    }
}

/// A question on one line.
fn asks(question: &Value) -> String {
    let method = question["method"].as_str().unwrap_or_default();
    let message = question.pointer("/params/message").and_then(Value::as_str);
    let text = message.map_or_else(|| method.to_owned(), |message| format!("{method}: {message}"));
    plain(&line(&text)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_generations_are_described() {
        let check = |task: Value, expected: &[&str]| {
            let screen = Screen::new(&OutputArgs::default());
            let text = describe(&task, &screen);
            assert_eq!(text.lines().collect::<Vec<_>>(), expected, "{task}");
        };
        check(
            json!({ "taskId": "a", "status": "working", "ttl": 90_000, "createdAt": "c",
                "statusMessage": "one\u{1b}[31m\ntwo", "lastUpdatedAt": "u" }),
            &[
                "task     a",
                "status   working",
                "message  one\\u{1b}[31m two",
                "created  c",
                "updated  u",
                "kept     90 s after it was created",
            ],
        );
        check(
            json!({ "taskId": "a", "status": "input_required", "ttlMs": 3_600_000,
                "inputRequests": { "k": { "method": "elicitation/create",
                    "params": { "message": "Sure?" } }, "l": { "method": "roots/list" } } }),
            &[
                "task     a",
                "status   input_required",
                "kept     60 min after it was created",
                "asks     elicitation/create: Sure?",
                "asks     roots/list",
            ],
        );
        check(
            json!({ "taskId": "a", "status": "failed", "ttlMs": null,
                "error": { "code": 1, "message": "no disk" } }),
            &[
                "task     a",
                "status   failed",
                "kept     until the server forgets it",
                "error    no disk",
            ],
        );
    }
}
