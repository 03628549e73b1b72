//! Tasks: any order of calls, answers, cancellations, ends from outside, restarts and time, on a
//! server in memory with a store of our own and virtual time, compared with a naive model.

#![no_main]

#[path = "tasks/model.rs"]
mod model;
#[path = "tasks/server.rs"]
mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bowline_fuzz::Bytes;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use tokio::runtime::Builder;

use self::model::{Kind, Model};
use self::server::Running;

/// The most tasks that the server keeps.
const MOST: usize = 5;
/// How long a task is kept, in seconds.
const TTL: u64 = 60;

fuzz_target!(|input: &[u8]| {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime needs nothing").block_on(World::live(Bytes::new(input)));
});

struct World {
    server: Running,
    /// By id.
    tasks: BTreeMap<String, Model>,
    /// All keys of questions, by task: they are never used again.
    keys: BTreeMap<String, BTreeSet<String>>,
}

impl World {
    async fn live(mut bytes: Bytes<'_>) {
        let (tasks, keys) = (BTreeMap::new(), BTreeMap::new());
        let mut world = Self { server: Running::start(), tasks, keys };
        for _ in 0..64 {
            if bytes.is_empty() {
                break;
            }
            match bytes.below(8) {
                0 | 1 => world.create(&mut bytes).await,
                2 | 3 => world.answer(&mut bytes).await,
                4 => world.cancel(&mut bytes).await,
                5 => world.end_outside(&mut bytes).await,
                6 => world.wait(&mut bytes).await,
                _ => world.restart().await,
            }
            world.check().await;
        }
        world.server.stop().await;
    }

    async fn create(&mut self, bytes: &mut Bytes<'_>) {
        let kind = Kind::choose(bytes);
        let params = json!({ "name": kind.tool(), "arguments": { "rounds": kind.rounds() } });
        let answer = self.server.ask("tools/call", params).await;
        let kept = self.tasks.values().filter(|task| !task.is_gone()).count();
        if kept >= MOST {
            assert!(answer["error"].is_object(), "more than {MOST} tasks: {answer}");
            return;
        }
        assert_eq!(answer["result"]["resultType"], "task", "{answer}");
        let id = answer["result"]["taskId"].as_str().expect("an id").to_owned();
        let is_new = self.tasks.insert(id, Model::new(kind, self.server.now())).is_none();
        assert!(is_new, "an id was used again: {answer}");
    }

    /// Answers one question: an open one, an old one, or one that never was.
    async fn answer(&mut self, bytes: &mut Bytes<'_>) {
        let Some(id) = self.pick(bytes) else { return };
        let open = self.open(&id).await;
        let key = match bytes.below(4) {
            0 => "never".to_owned(),
            1 => match self.keys.get(&id).and_then(|keys| keys.iter().next()) {
                Some(key) => key.clone(),
                None => return,
            },
            _ if open.is_empty() => return,
            _ => bytes.pick(&open),
        };
        let params = json!({ "taskId": id, "inputResponses": { (&key): { "action": "decline" } } });
        let answer = self.server.ask("tasks/update", params).await;
        let task = self.tasks.get_mut(&id).expect("it was picked");
        assert_eq!(answer.get("error").is_some(), task.is_gone(), "{answer}");
        if open.contains(&key) {
            task.answer(self.server.now());
        }
    }

    async fn cancel(&mut self, bytes: &mut Bytes<'_>) {
        let Some(id) = self.pick(bytes) else { return };
        let answer = self.server.ask("tasks/cancel", json!({ "taskId": id })).await;
        let task = self.tasks.get_mut(&id).expect("it was picked");
        assert_eq!(answer.get("error").is_some(), task.is_gone(), "{answer}");
        task.end(self.server.now(), "cancelled");
    }

    async fn end_outside(&mut self, bytes: &mut Bytes<'_>) {
        let Some(id) = self.pick(bytes) else { return };
        let succeeds = bytes.flag();
        let ended = self.server.end_outside(&id, succeeds).await;
        let task = self.tasks.get_mut(&id).expect("it was picked");
        assert_eq!(ended, task.is_outside(), "{id}: {task:?}");
        if ended {
            task.end(self.server.now(), if succeeds { "completed" } else { "failed" });
        }
    }

    async fn wait(&mut self, bytes: &mut Bytes<'_>) {
        let seconds = bytes.pick(&[1, 10, 50, 70, 250, 350, 700]);
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    async fn restart(&mut self) {
        let now = self.server.now();
        self.server.restart().await;
        for task in self.tasks.values_mut() {
            task.restart(now);
        }
    }

    /// Compares all tasks with their models.
    async fn check(&mut self) {
        // Near a deadline, either is right: wait until it is behind us.
        while self.tasks.values_mut().any(|task| task.is_near_deadline(self.server.now())) {
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
        let ids: Vec<_> = self.tasks.keys().cloned().collect();
        for id in ids {
            let answer = self.get(&id).await;
            let task = self.tasks.get_mut(&id).expect("it was listed");
            task.pass(self.server.now());
            if task.is_gone() {
                assert_eq!(answer["error"]["code"], -32602, "{id} is not forgotten: {answer}");
                continue;
            }
            let result = &answer["result"];
            assert_eq!(result["status"], task.status(), "{id}: {task:?}: {answer}");
            let open = keys(&result["inputRequests"]);
            assert_eq!(open.len(), task.open(), "{id}: {task:?}: {answer}");
            let is_ended = matches!(task.status(), "completed" | "failed" | "cancelled");
            assert!(!is_ended || open.is_empty(), "{answer}");
            assert_eq!(result.get("result").is_some(), task.status() == "completed", "{answer}");
            assert_eq!(result.get("error").is_some(), task.status() == "failed", "{answer}");
            self.see(&id, open);
        }
    }

    /// Remembers the keys of questions; answered ones do not come back.
    fn see(&mut self, id: &str, open: Vec<String>) {
        let known = self.keys.entry(id.to_owned()).or_default();
        known.extend(open);
        let asked = self.tasks.get(id).map_or(0, Model::asked);
        assert_eq!(known.len(), asked, "{id}: a key was used again, or replaced: {known:?}");
    }

    async fn open(&mut self, id: &str) -> Vec<String> {
        keys(&self.get(id).await["result"]["inputRequests"])
    }

    async fn get(&mut self, id: &str) -> Value {
        self.server.ask("tasks/get", json!({ "taskId": id })).await
    }

    fn pick(&self, bytes: &mut Bytes<'_>) -> Option<String> {
        let ids: Vec<_> = self.tasks.keys().cloned().collect();
        (!ids.is_empty()).then(|| bytes.pick(&ids))
    }
}

fn keys(asked: &Value) -> Vec<String> {
    asked.as_object().into_iter().flat_map(|asked| asked.keys().cloned()).collect()
}
