//! Clients of both generations. They remember what they were told.

use std::sync::Arc;
use std::time::Duration;

use bowline::Revision;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::client::{Ask, Session, Stream, modern_with, request};
use crate::world::World;

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

pub(crate) struct Person {
    world: Arc<World>,
    is_modern: bool,
    /// Whether questions are answered at all.
    answers: bool,
    session: Option<Session>,
    tasks: Vec<Known>,
}

/// A task that a client knows.
struct Known {
    id: String,
    created: Instant,
    ttl: Duration,
    end: Option<Value>,
}

impl Person {
    /// Does whatever clients do, until all of its tasks have ended.
    pub(crate) async fn live(world: Arc<World>) {
        let (is_modern, answers) = (!world.random.one_in(3), !world.random.one_in(4));
        let mut person = Self { world, is_modern, answers, session: None, tasks: Vec::new() };
        let began = Instant::now();
        let mut left = 1 + person.world.random.below(4);
        while left > 0 || person.tasks.iter().any(|task| task.end.is_none()) {
            assert!(began.elapsed() < Duration::from_secs(3_000), "a task does not end");
            if left > 0 && (person.tasks.is_empty() || person.world.random.one_in(3)) {
                left -= 1;
                person.create().await;
            } else {
                let at = person.world.random.below(person.tasks.len().max(1) as u64);
                person.tend(usize::try_from(at).unwrap()).await;
            }
            sleep(Duration::from_millis(person.world.random.below(1_500))).await;
        }
    }

    async fn create(&mut self) {
        let tool = if self.world.random.one_in(2) { "again" } else { "never-again" };
        let number = self.world.random.below(1_000);
        let mut params = json!({ "name": tool, "arguments": { "number": number } });
        if !self.is_modern {
            params["task"] = json!({ "ttl": 1_000 + self.world.random.below(100_000) });
        }
        let created = Instant::now();
        let Some(answer) = self.ask("tools/call", params).await else { return };
        let task = if self.is_modern { &answer["result"] } else { &answer["result"]["task"] };
        let Some(id) = task["taskId"].as_str() else {
            assert_eq!(answer["error"]["code"], -32603, "{answer}");
            return;
        };
        let ttl = task["ttlMs"].as_u64().or_else(|| task["ttl"].as_u64()).unwrap();
        let ttl = Duration::from_millis(ttl);
        self.tasks.push(Known { id: id.to_owned(), created, ttl, end: None });
    }

    /// Does something about one task.
    async fn tend(&mut self, at: usize) {
        let Some(id) = self.tasks.get(at).map(|task| task.id.clone()) else { return };
        let random = self.world.random.below(12);
        if random == 0 && self.world.is_stormy() {
            let answer = self.ask("tasks/cancel", json!({ "taskId": id })).await;
            self.check_known(at, answer.as_ref());
        } else if random < 4 && !self.is_modern && self.answers {
            let answer = self.ask("tasks/result", json!({ "taskId": id })).await;
            // The outcome may be an error, too.
            let is_known = answer.filter(|answer| answer["error"]["code"] == -32602);
            self.check_known(at, is_known.as_ref());
        } else if let Some(task) = self.poll(at).await
            && task["status"] == "input_required"
            && self.is_modern
            && self.answers
        {
            self.answer(at, &task).await;
        }
    }

    /// What a task is like, compared with what it was like before.
    async fn poll(&mut self, at: usize) -> Option<Value> {
        let answer = self.ask("tasks/get", json!({ "taskId": self.tasks[at].id })).await?;
        self.check_known(at, Some(&answer));
        let task = answer.get("result")?.clone();
        let end = json!([task["status"], task["result"], task["error"], task["lastUpdatedAt"]]);
        let known = &mut self.tasks[at];
        if let Some(before) = &known.end {
            assert_eq!(end, *before, "an end does not change");
        } else if task["status"] != "working" && task["status"] != "input_required" {
            known.end = Some(end);
        }
        Some(task)
    }

    /// Answers some of the questions, under keys that are open and others.
    async fn answer(&mut self, at: usize, task: &Value) {
        let mut answers = Map::new();
        for key in task["inputRequests"].as_object().unwrap().keys() {
            if !self.world.random.one_in(3) {
                answers.insert(key.clone(), json!({ "action": "accept", "content": {} }));
            }
        }
        answers.insert("nobody asked".to_owned(), json!(1));
        let params = json!({ "taskId": self.tasks[at].id, "inputResponses": answers });
        let answer = self.ask("tasks/update", params).await;
        self.check_known(at, answer.as_ref());
    }

    /// A task is known for as long as it was promised.
    fn check_known(&mut self, at: usize, answer: Option<&Value>) {
        let Some(error) = answer.and_then(|answer| answer.get("error")) else { return };
        let task = &mut self.tasks[at];
        let has_ended = error["message"].as_str().unwrap().contains("already ended");
        if error["code"] == -32602 && !has_ended {
            assert!(task.created.elapsed() >= task.ttl, "{} is unknown: {error}", task.id);
            task.end.get_or_insert_with(|| json!("forgotten"));
        }
    }

    /// The answer to a request; `None` if there is none, or this client did not wait for it.
    async fn ask(&mut self, method: &str, params: Value) -> Option<Value> {
        let mut servers = self.world.servers.subscribe();
        let world = Arc::clone(&self.world);
        let patience = match world.is_stormy() && world.random.one_in(5) {
            true => Duration::from_millis(world.random.below(500)),
            false => Duration::from_secs(60),
        };
        let asking = async {
            let found = servers.wait_for(|servers| !servers.is_empty()).await.ok()?.clone();
            let at = usize::try_from(world.random.below(found.len() as u64)).unwrap();
            let service = &found[at].service;
            let ask = match self.is_modern {
                true => modern(method, &params),
                false => self.session(service).await.post(request(7, method, params)),
            };
            let response = service.handle(ask.into_request()).await;
            self.read(Stream::new(response)).await
        };
        let asked = timeout(patience, asking).await.ok().flatten();
        if asked.is_none() {
            // It may be another server by now.
            self.session = None;
        }
        asked
    }

    /// The session, in a legacy revision.
    async fn session(&mut self, service: &bowline::http::HttpService) -> Session {
        if self.session.is_none() || self.world.is_shared {
            self.session = Some(Session::open(service, Revision::V2025_11_25).await);
        }
        self.session.clone().unwrap()
    }

    /// Reads a response to its end, and answers what is asked on the way.
    async fn read(&self, mut stream: Stream) -> Option<Value> {
        let is_stream =
            stream.headers.get("content-type").is_some_and(|it| it == "text/event-stream");
        if !is_stream {
            if stream.status == 404 {
                // A session of a server that is gone: the next request opens another one.
                return None;
            }
            let answer = stream.rest().await.json();
            return (!answer["jsonrpc"].is_null()).then_some(answer);
        }
        while let Some(event) = stream.next().await {
            let message = event.json();
            if message["id"] == 7 && message.get("method").is_none() {
                return Some(message);
            }
            if let (Some(session), Some("elicitation/create")) =
                (&self.session, message["method"].as_str())
            {
                let result = json!({ "action": "accept", "content": {} });
                let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
                session.service.handle(session.post(answer).into_request()).await;
            }
        }
        None
    }
}

/// A modern request of a client that can use tasks.
fn modern(method: &str, params: &Value) -> Ask {
    let capabilities = json!({ "elicitation": { "form": {} }, "extensions": { (EXTENSION): {} } });
    let ask = modern_with(7, method, params.clone(), capabilities);
    match params["taskId"].as_str() {
        Some(task) => ask.with("mcp-name", task),
        None => ask,
    }
}
