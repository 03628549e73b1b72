//! A project's config file is used only once the user trusts it.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use bowline_serve::testing::{HttpReply, Service};
use serde_json::{Value, json};

use crate::fixture::{Folder, PROGRAM, program, said};
use crate::typed::Typed;

/// A server that leaves a mark when it is started.
fn server(mark: &str) -> Value {
    let script = format!("touch \"$HOME/{mark}\"; exec '{PROGRAM}' serve counter");
    json!({ "command": "sh", "args": ["-c", script] })
}

fn config(name: &str, server: &Value) -> String {
    json!({ "mcpServers": { name: server } }).to_string()
}

/// A home, and a repository in it with a config file.
struct World {
    home: Folder,
    repository: PathBuf,
    file: PathBuf,
}

impl World {
    fn new(text: &str) -> Self {
        let home = Folder::new();
        let repository = home.path().join("work/repository");
        std::fs::create_dir_all(repository.join(".git")).unwrap();
        let file = home.write("work/repository/.mcp.json", text);
        Self { home, repository, file }
    }

    fn run(&self, words: &[&str]) -> bowline_serve::testing::Said {
        said(program(&self.home).current_dir(&self.repository).args(words))
    }

    fn typed(&self, words: &[&str]) -> Typed {
        Typed::start(&self.home, &self.repository, words)
    }

    /// Whether a server was started since the last time.
    fn was_started(&self, mark: &str) -> bool {
        std::fs::remove_file(self.home.path().join(mark)).is_ok()
    }
}

#[test]
fn without_a_terminal_a_project_must_be_trusted_explicitly() {
    let world = World::new(&config("tool", &server("ran")));
    let told = world.run(&["ping", "tool"]);
    assert_eq!(told.code, Some(1), "{}", told.err);
    let problem = format!("{} belongs to a project, and is not trusted yet", world.file.display());
    assert!(told.err.contains(&problem) && told.err.contains("--trust"), "{}", told.err);
    assert!(!world.was_started("ran"));
    let told = world.run(&["servers"]);
    assert!(told.out.contains("tool (not trusted)"), "{}", told.out);
    let told = world.run(&["ping", "--trust", "tool"]);
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert!(told.err.contains(&format!("using {}", world.file.display())), "{}", told.err);
    assert!(world.was_started("ran"));
    // Only for that once.
    assert_eq!(world.run(&["ping", "tool"]).code, Some(1));
    let file = world.file.to_str().unwrap();
    assert_eq!(world.run(&["ping", "-q", "--config", file, "tool"]).code, Some(0));
}

#[test]
fn the_environment_does_not_reach_a_server_that_is_not_trusted() {
    let service = Service::start(|_| HttpReply::error(404, ""));
    let url = format!("{}/?x=${{SECRET}}", service.url());
    let world = World::new(&config("tool", &json!({ "url": url })));
    let run = |more: &[&str]| {
        let mut command = program(&world.home);
        command.current_dir(&world.repository).env("SECRET", "hunter2");
        said(command.args(["info", "tool"]).args(more))
    };
    assert_eq!(run(&[]).code, Some(1));
    assert!(service.asked().is_empty());
    assert_eq!(run(&["--trust"]).code, Some(4));
    assert!(service.asked()[0].what.contains("hunter2"), "{:?}", service.asked());
}

#[test]
fn what_the_user_configured_comes_before_a_project() {
    let world = World::new(&config("tool", &server("projects")));
    world.home.write(".claude.json", &config("tool", &server("users")));
    let told = world.run(&["ping", "tool"]);
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert!(world.was_started("users") && !world.was_started("projects"));
    assert!(told.err.contains("which is not trusted (--trust uses it)"), "{}", told.err);
    assert!(told.err.contains(world.file.to_str().unwrap()), "{}", told.err);
    let told = world.run(&["ping", "--trust", "tool"]);
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert!(world.was_started("projects") && !world.was_started("users"));
    assert!(told.err.contains("using "), "{}", told.err);
}

#[test]
fn folders_above_the_repository_are_not_searched() {
    let world = World::new("{}");
    world.home.write("work/.mcp.json", &config("tool", &server("ran")));
    let told = world.run(&["ping", "--trust", "tool"]);
    assert_eq!(told.code, Some(1));
    assert!(told.err.contains("there is no server \"tool\""), "{}", told.err);
    let below = world.repository.join("a/b");
    std::fs::create_dir_all(&below).unwrap();
    std::fs::write(&world.file, config("tool", &server("ran"))).unwrap();
    let told = said(program(&world.home).current_dir(&below).args(["ping", "--trust", "tool"]));
    assert_eq!(told.code, Some(0), "{}", told.err);
}

#[test]
fn a_person_is_asked_once_per_file_and_content() {
    let world = World::new(&config("tool", &server("ran")));
    let mut asked = world.typed(&["ping", "tool"]);
    asked.expect("It can run any command as you, and read your environment. Trust this file?");
    asked.enter("");
    let (code, shown) = asked.end();
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("\"command\": \"sh\"") && shown.contains("not trusted"), "{shown}");
    assert!(!world.was_started("ran"));
    for text in [config("tool", &server("ran")), config("tool", &server("again"))] {
        std::fs::write(&world.file, text).unwrap();
        let mut asked = world.typed(&["ping", "tool"]);
        asked.expect("is new, or has changed");
        asked.expect("[y/N] ");
        asked.enter("y");
        asked.expect("answered in");
        assert_eq!(asked.end().0, Some(0));
        // Remembered, for every command, and without a terminal.
        assert_eq!(world.run(&["ping", "tool"]).code, Some(0));
    }
    assert!(world.was_started("ran") && world.was_started("again"));
    let kept = world.home.path().join("data/trusted.json");
    assert_eq!(std::fs::metadata(kept).unwrap().permissions().mode() & 0o777, 0o600);
    let told = world.run(&["servers"]);
    assert!(!told.out.contains("not trusted"), "{}", told.out);
}
