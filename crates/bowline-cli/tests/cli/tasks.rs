//! `bowline call --task` and `bowline tasks`, on a server in this process.

use std::process::Command;
use std::sync::Arc;

use bowline::{Context, HandlerError, Principal, Server, TaskMode, Tool};
use bowline_serve::testing::Said;
use serde_json::Value;
use tokio::sync::Notify;

use crate::fixture::{Folder, PROGRAM, program, said, serve};

const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// A server whose task `hold` runs until `release` is called.
fn server() -> Server {
    let gate = Arc::new(Notify::new());
    let opened = Arc::clone(&gate);
    let hold = Tool::new("hold", move |context: Context| {
        let gate = Arc::clone(&gate);
        async move {
            context.status("at the gate");
            gate.notified().await;
            "through"
        }
    });
    let release = Tool::new("release", move || {
        opened.notify_one();
        async { "open" }
    });
    let greet = Tool::new("greet", |context: Context| async move {
        let is_sure = context.confirm("Greet the world?").await?;
        Ok::<_, HandlerError>(if is_sure { "hello, world" } else { "silence" })
    });
    let broken = Tool::new("broken", || async { Err::<String, _>("it broke".to_owned()) });
    Server::new("gate", "1.0.0")
        .with(hold.task(TaskMode::Optional))
        .with(release)
        .with(greet.task(TaskMode::Required))
        .with(broken.task(TaskMode::Optional))
}

/// The URL of a new server, which tells callers apart by a header.
fn url() -> String {
    let http = server().http().identify(|head| {
        let name = head.headers.get("x-user")?.to_str().ok()?;
        Some(Principal::new(name))
    });
    format!("http://{}/mcp", serve(http))
}

/// A user of the server, with the home of the program.
struct User {
    home: Folder,
    name: String,
    revision: &'static str,
}

impl User {
    fn new(name: &str, revision: &'static str) -> Self {
        Self { home: Folder::new(), name: format!("{name}-{revision}"), revision }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = program(&self.home);
        let header = format!("x-user: {}", self.name);
        command.args(words).args(["--revision", self.revision, "-H", &header]);
        command
    }

    fn run(&self, words: &[&str]) -> Said {
        said(&mut self.command(words))
    }

    /// Starts a task, and returns its id.
    fn start(&self, url: &str, tool: &str) -> String {
        let told = self.run(&["call", url, tool, "--task", "--accept"]);
        assert_eq!(told.code, Some(0), "{}", told.err);
        let id = told.out.trim_end().to_owned();
        let hint = format!("to wait for it: bowline tasks wait --revision {} ", self.revision);
        assert!(told.err.contains(&format!("{hint}{url} {id}")), "{}", told.err);
        id
    }
}

#[test]
fn a_task_is_started_shown_and_waited_for() {
    let url = &url();
    for revision in REVISIONS {
        let user = User::new("ada", revision);
        let id = user.start(url, "hold");
        let told = user.run(&["tasks", "show", url, &id]);
        assert!(
            told.out.starts_with(&format!("task     {id}\nstatus   working\n")),
            "{}",
            told.out
        );
        assert!(told.out.contains("kept     60 min after it was created\n"), "{}", told.out);
        let told = user.run(&["tasks", "show", url, &id, "-o", "json"]);
        let task: Value = serde_json::from_str(&told.out).unwrap();
        assert_eq!((&task["taskId"], &task["status"]), (&id.into(), &"working".into()));

        let id = task["taskId"].as_str().unwrap();
        assert_eq!(user.run(&["call", url, "release"]).out, "open\n");
        let told = user.run(&["tasks", "wait", url, id]);
        assert_eq!((told.code, told.out.as_str()), (Some(0), "through\n"), "{}", told.err);
        // It is still there for whoever comes late.
        let told = user.run(&["tasks", "resume", url, id, "-o", "json"]);
        let result: Value = serde_json::from_str(&told.out).unwrap();
        assert_eq!(result["content"][0]["text"], "through", "{}", told.err);
    }
}

#[test]
fn programs_get_the_task_in_one_shape() {
    let url = &url();
    for revision in REVISIONS {
        let user = User::new("programs", revision);
        let told = user.run(&["call", url, "broken", "--task", "-o", "json"]);
        assert_eq!((told.code, told.err.as_str()), (Some(0), ""));
        let task: Value = serde_json::from_str(&told.out).unwrap();
        assert_eq!((&task["status"], &task["ttlMs"]), (&"working".into(), &3_600_000.into()));
        assert!(task["createdAt"].is_string() && task["lastUpdatedAt"].is_string(), "{task}");
        let id = task["taskId"].as_str().unwrap();
        let told = user.run(&["tasks", "wait", url, id]);
        assert_eq!((told.code, told.out.as_str()), (Some(5), "it broke\n"), "{}", told.err);
    }
}

#[test]
fn questions_are_answered_only_by_resume() {
    let url = &url();
    for revision in REVISIONS {
        let user = User::new("asked", revision);
        let id = user.start(url, "greet");
        let told = user.run(&["tasks", "wait", url, &id]);
        assert_eq!(told.code, Some(7), "{}", told.out);
        assert!(told.err.contains("the task asks something\n  `bowline tasks resume` answers"));
        if revision == "2026-07-28" {
            let told = user.run(&["tasks", "show", url, &id]);
            let asks = "asks     elicitation/create: Greet the world?\n";
            assert!(told.out.contains(asks), "{}", told.out);
        }
        let told = user.run(&["tasks", "resume", url, &id, "--accept"]);
        assert_eq!((told.code, told.out.as_str()), (Some(0), "hello, world\n"), "{}", told.err);
    }
}

#[test]
fn a_tool_that_must_be_a_task_is_called_like_any_other() {
    let url = &url();
    for revision in REVISIONS {
        let user = User::new("plain", revision);
        let told = user.run(&["call", url, "greet", "--decline"]);
        assert_eq!((told.code, told.out.as_str()), (Some(0), "silence\n"), "{}", told.err);
        assert!(told.err.contains("task │ "), "{}", told.err);
    }
}

#[test]
fn a_task_is_cancelled() {
    let url = &url();
    for revision in REVISIONS {
        let user = User::new("eve", revision);
        let id = user.start(url, "hold");
        let told = user.run(&["tasks", "cancel", url, &id]);
        assert!(told.out.contains("status   cancelled\n"), "{}{}", told.out, told.err);
        let told = user.run(&["tasks", "wait", url, &id]);
        assert_eq!((told.code, told.out.as_str()), (Some(7), ""));
        assert!(told.err.contains("cancelled"), "{}", told.err);
    }
}

#[test]
fn tasks_are_listed_where_the_revision_has_a_list() {
    let url = &url();
    let user = User::new("lists", "2025-11-25");
    assert_eq!(user.run(&["tasks", "list", url]).out, "no tasks\n");
    let id = user.start(url, "hold");
    let told = user.run(&["tasks", "list", url]);
    assert!(told.out.starts_with("TASK"), "{}{}", told.out, told.err);
    assert!(told.out.contains(&id) && told.out.contains("working"), "{}", told.out);
    let other = User::new("others", "2025-11-25");
    assert_eq!(other.run(&["tasks", "list", url]).out, "no tasks\n");
    let told = other.run(&["tasks", "show", url, &id]);
    assert_eq!(told.code, Some(7));
    assert!(told.err.contains("servers show a task only to the login that started it"));

    let told = User::new("lists", "2026-07-28").run(&["tasks", "list", url]);
    assert_eq!(told.code, Some(7));
    assert!(told.err.contains("2026-07-28 has no list of tasks\n  `bowline tasks show`"));
    // Nobody is known.
    let home = Folder::new();
    let words = ["tasks", "list", url, "--revision", "2025-11-25"];
    let told = said(program(&home).args(words));
    assert!(told.err.contains("the server does not list tasks\n  servers list"), "{}", told.err);
}

#[test]
fn what_cannot_be_a_task_is_said_before_anything_is_called() {
    let url = &url();
    let user = User::new("strict", "2025-11-25");
    let told = user.run(&["call", url, "release", "--task"]);
    assert_eq!(told.code, Some(1));
    assert!(told.err.contains("\"release\" cannot run as a task\n  call it without --task"));
    let told = User::new("strict", "2025-06-18").run(&["call", url, "hold", "--task"]);
    assert_eq!(told.code, Some(7));
    assert!(told.err.contains("2025-06-18 has no tasks; 2025-11-25 and 2026-07-28 do"));
    // The server decides in this revision.
    let told = User::new("strict", "2026-07-28").run(&["call", url, "release", "--task"]);
    assert_eq!((told.code, told.out.as_str()), (Some(0), "open\n"), "{}", told.err);
    assert!(told.err.contains("the server answered at once; there is no task"));
    let home = Folder::new();
    let words = ["tasks", "show", "x", "--", PROGRAM, "serve", "example"];
    let told = said(program(&home).args(words));
    assert_eq!((told.code, told.err.as_str()), (Some(7), "bowline: the server offers no tasks\n"));
}
