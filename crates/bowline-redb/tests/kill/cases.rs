//! When servers are killed, and what must be true afterwards.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Kill, Survivor};
use crate::journal::Journal;

/// A guard against hanging; nothing else depends on time.
pub(crate) const GUARD: Duration = Duration::from_secs(120);

/// The sentence of a task whose tool does not run again.
const INTERRUPTED: &str = "the server was restarted while this ran; call again";

pub(crate) fn run() {
    let cases: [(&str, fn()); 4] = [
        ("a_tool_that_runs_again_is_killed_at_every_step", every_step),
        ("a_tool_that_does_not_run_again_is_killed", never_again),
        ("servers_are_killed_after_every_answer", every_answer),
        ("servers_are_killed_at_random_steps", random_steps),
    ];
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    for (name, case) in cases {
        if filter.as_ref().is_none_or(|filter| name.contains(filter.as_str())) {
            println!("test {name}");
            case();
        }
    }
}

/// How a task ended.
#[derive(Debug)]
struct End {
    detail: Value,
    deaths: usize,
}

/// Begins a task, follows it to its end, and checks everything that must hold.
fn play(tool: &str, kills: Vec<Kill>) -> End {
    let folder = Folder::new();
    let journal = Journal::new(&folder.0);
    let mut survivor = Survivor::new(&folder.0, kills);
    let id = begin(&mut survivor, &journal, tool);
    let detail = follow(&mut survivor, &id);
    // The end is final, in this process and in the next one.
    survivor.restart();
    let again = get(&mut survivor, &id);
    for key in ["status", "result", "error", "lastUpdatedAt"] {
        assert_eq!(again[key], detail[key], "an end does not change");
    }
    let story = journal.story(&id);
    match detail["status"].as_str() {
        Some("completed") => {
            let (first, second) = (&story.kept["first"], &story.kept["second"]);
            let text = &detail["result"]["content"][0]["text"];
            assert_eq!(*text, format!("{first} {second} true false true"));
        }
        Some("failed") => {
            assert_eq!(tool, "never-again", "{detail}");
            assert_eq!(detail["error"]["message"], INTERRUPTED);
        }
        _ => panic!("it ended as {detail}"),
    }
    End { detail, deaths: survivor.deaths - 1 }
}

/// Calls the tool. A client that gets no answer finds its task in the journal, if there is one.
fn begin(survivor: &mut Survivor, journal: &Journal, tool: &str) -> String {
    loop {
        if let Some(created) = survivor.ask("tools/call", json!({ "name": tool, "arguments": {} }))
        {
            assert_eq!(created["result"]["resultType"], "task", "{created}");
            let id = created["result"]["taskId"].as_str().unwrap().to_owned();
            survivor.has_news();
            return id;
        }
        if let Some(id) = journal.last_task() {
            return id;
        }
    }
}

fn get(survivor: &mut Survivor, id: &str) -> Value {
    loop {
        if let Some(answer) = survivor.ask("tasks/get", json!({ "taskId": id })) {
            assert!(answer.get("error").is_none(), "the task is unknown: {answer}");
            return answer["result"].clone();
        }
    }
}

/// Polls and answers until the end.
fn follow(survivor: &mut Survivor, id: &str) -> Value {
    let started = Instant::now();
    loop {
        assert!(started.elapsed() < GUARD, "the task does not end");
        let detail = get(survivor, id);
        match detail["status"].as_str() {
            Some("working") => thread::sleep(Duration::from_millis(2)),
            Some("input_required") => {
                survivor.has_news();
                let answers = answers(&detail["inputRequests"]);
                let params = json!({ "taskId": id, "inputResponses": answers });
                if let Some(answer) = survivor.ask("tasks/update", params) {
                    assert!(answer.get("error").is_none(), "the answer is rejected: {answer}");
                    survivor.has_news();
                }
            }
            _ => {
                survivor.has_news();
                return get(survivor, id);
            }
        }
    }
}

/// "No" to the second question, "yes" to the others.
fn answers(questions: &Value) -> Value {
    let answer = |question: &Value| match question["params"]["message"].as_str() {
        Some("two?") => json!({ "action": "decline" }),
        _ => json!({ "action": "accept", "content": {} }),
    };
    let questions = questions.as_object().unwrap().iter();
    questions.map(|(key, question)| (key.clone(), answer(question))).collect()
}

/// The steps of one undisturbed task are fewer than that.
const STEPS: u64 = 200;

fn every_step() {
    let steps = (1..STEPS).take_while(|step| {
        let end = play("again", vec![Kill::AtStep(*step)]);
        assert_eq!(end.detail["status"], "completed");
        end.deaths > 0
    });
    let steps = steps.count();
    // Three questions and two values, each with steps of the store around it.
    // Polls have steps, too, and nobody knows how many of them there are.
    assert!(steps >= 30, "{steps} steps");
}

fn never_again() {
    let ends = (1..STEPS).step_by(3).map(|step| play("never-again", vec![Kill::AtStep(step)]));
    let ends: Vec<_> = ends.take_while(|end| end.deaths > 0).collect();
    let failed = ends.iter().filter(|end| end.detail["status"] == "failed").count();
    // Whatever waits for an answer goes on, whatever runs does not.
    assert!(failed > 0 && failed < ends.len(), "{failed} of {} have failed", ends.len());
}

/// The task is created; three times it waits and takes an answer; it ends.
fn every_answer() {
    for news in 1..=8 {
        let end = play("again", vec![Kill::AfterNews(news)]);
        assert_eq!((end.deaths, &end.detail["status"]), (1, &json!("completed")));
        let end = play("never-again", vec![Kill::AfterNews(news)]);
        assert_eq!(end.deaths, 1);
        // A task that waits has no handler, and one that has ended needs none.
        if [2, 4, 6, 8].contains(&news) {
            assert_eq!(end.detail["status"], "completed", "after news {news}");
        }
    }
}

/// Tasks whose servers are killed again and again.
fn random_steps() {
    let is_full = std::env::var_os("BOWLINE_FULL").is_some();
    let wanted = if is_full { 1_000 } else { 10 };
    let mut random = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = move |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let mut killed = 0;
    while killed < wanted {
        let kills = (0..=next(6)).map(|_| match next(4) {
            0 => Kill::AfterNews(1 + next(4)),
            _ => Kill::AtStep(1 + next(60)),
        });
        let kills: Vec<_> = kills.collect();
        let tool = if next(4) == 0 { "never-again" } else { "again" };
        println!("  {tool}: {kills:?}");
        killed += play(tool, kills).deaths;
    }
    println!("kills: {killed}");
}

/// A folder for one task, which is removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("bowline-kill-{}-{number}", std::process::id());
        // Killed processes lose nothing that the system has, and a disk would be slow.
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let path = parent.join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
