//! Clients that write down what they were told.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::check::SEEN;
use crate::http;
use crate::node::RESOURCE;

/// What clients were told, and what was wrong with it.
#[derive(Default)]
pub struct History {
    pub tasks: Mutex<Vec<Task>>,
    /// Sessions that were ended, with their users.
    pub ended: Mutex<Vec<(String, String)>>,
    pub wrong: Mutex<Vec<String>>,
    pub answered: AtomicU64,
    pub refused: AtomicU64,
    /// Changes that were heard while things failed.
    pub heard: AtomicU64,
    /// The nodes that were ended, by port, as often as they were.
    pub ended_nodes: Mutex<Vec<u16>>,
    numbers: AtomicU64,
}

/// A task whose id a client was told.
#[derive(Clone)]
pub struct Task {
    pub id: String,
    pub user: String,
    pub tool: String,
    pub number: u64,
    /// The outcome, once a client has seen it.
    pub outcome: Option<String>,
}

impl History {
    pub fn wrong(&self, what: String) {
        self.wrong.lock().unwrap().push(what);
    }

    /// How often a node was ended.
    fn ends(&self, port: u16) -> usize {
        self.ended_nodes.lock().unwrap().iter().filter(|ended| **ended == port).count()
    }
}

/// Numbers that follow from a seed.
#[derive(Clone)]
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    pub fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// How a task is, as a node says.
pub enum Seen {
    /// The node has no answer: it is not there, or its store is not.
    Nothing,
    Unknown,
    Working,
    Ended(String),
}

/// Asks a node for a task.
pub async fn look(port: u16, user: &str, id: &str) -> Seen {
    let Some(response) = http::modern(port, user, "tasks/get", json!({ "taskId": id })).await
    else {
        return Seen::Nothing;
    };
    let Some(text) = response.text().await else { return Seen::Nothing };
    let Ok(answer) = serde_json::from_str::<Value>(&text) else { return Seen::Nothing };
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    if message.contains("no such task") {
        return Seen::Unknown;
    }
    let result = &answer["result"];
    match result["status"].as_str() {
        None => Seen::Nothing,
        Some("working" | "input_required") => Seen::Working,
        Some(status) => {
            let said = &result["result"]["content"][0]["text"];
            let why = &result["error"]["message"];
            Seen::Ended(format!(
                "{status} {} {}",
                said.as_str().unwrap_or(""),
                why.as_str().unwrap_or("")
            ))
        }
    }
}

/// Creates tasks until it is told to stop, with a pause after each.
pub async fn create_tasks(
    history: Arc<History>,
    ports: [u16; 3],
    mut random: Random,
    (stop, pause): (Arc<AtomicBool>, Duration),
) {
    while !stop.load(Ordering::Acquire) {
        tokio::time::sleep(pause).await;
        let number = history.numbers.fetch_add(1, Ordering::Relaxed);
        let (tool, user) = (random.pick(&["once", "again"]), random.pick(&["ada", "bob"]));
        let millis = random.pick(&[5, 50, 400, 2_500]);
        let arguments = json!({ "number": number, "millis": millis });
        let params = json!({ "name": tool, "arguments": arguments });
        let created = http::modern(random.pick(&ports), user, "tools/call", params).await;
        let text = match created {
            Some(created) => created.text().await,
            None => None,
        };
        let answer: Value =
            text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let Some(id) = answer["result"]["taskId"].as_str().map(str::to_owned) else {
            history.refused.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let task = Task {
            id: id.clone(),
            user: user.to_owned(),
            tool: tool.to_owned(),
            number,
            outcome: None,
        };
        let at = {
            let mut tasks = history.tasks.lock().unwrap();
            tasks.push(task);
            tasks.len() - 1
        };
        let other = if user == "ada" { "bob" } else { "ada" };
        for port in ports {
            if matches!(look(port, user, &id).await, Seen::Unknown) {
                history.wrong(format!("port {port} does not know task {number}, which was told"));
            }
            if matches!(look(port, other, &id).await, Seen::Working | Seen::Ended(_)) {
                history.wrong(format!("{other} sees task {number} of {user}"));
            }
        }
        if millis < 100
            && let Seen::Ended(outcome) = look(random.pick(&ports), user, &id).await
        {
            history.tasks.lock().unwrap()[at].outcome = Some(outcome);
        }
    }
}

/// Listens on one node and changes something on another one.
pub async fn watch_changes(
    history: Arc<History>,
    ports: [u16; 3],
    mut random: Random,
    stop: Arc<AtomicBool>,
) {
    while !stop.load(Ordering::Acquire) {
        let (from, to) = (random.pick(&ports), random.pick(&ports));
        if watch(&history, from, to).await.is_none() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// `None` if a step had no answer.
async fn watch(history: &History, from: u16, to: u16) -> Option<()> {
    let filter = json!({ "notifications": { "resourceSubscriptions": [RESOURCE] } });
    let mut stream = http::modern(to, "ada", "subscriptions/listen", filter).await?;
    let mut rest = String::new();
    tokio::time::timeout(http::PATIENCE, stream.event(&mut rest)).await.ok()??;
    let before = history.ends(from);
    let touched = http::modern(from, "ada", "tools/call", json!({ "name": "touch" })).await?;
    if touched.status != 200 {
        return None;
    }
    match tokio::time::timeout(SEEN, stream.event(&mut rest)).await {
        Ok(told) => {
            told?;
            history.heard.fetch_add(1, Ordering::Relaxed);
        }
        // A node that is killed takes with it what it has not announced yet.
        Err(_) if history.ends(from) > before => {}
        Err(_) => history.wrong(format!("a change on {from} is not heard on {to}")),
    }
    Some(())
}

/// Opens sessions, is asked on one node, answers on another, and ends them on a third.
pub async fn hold_sessions(
    history: Arc<History>,
    ports: [u16; 3],
    mut random: Random,
    stop: Arc<AtomicBool>,
) {
    while !stop.load(Ordering::Acquire) {
        let user = random.pick(&["ada", "bob"]);
        let walk = Walk {
            history: &history,
            ports,
            user,
            open: random.pick(&ports),
            ask: random.pick(&ports),
            answer: random.pick(&ports),
            end: random.pick(&ports),
        };
        if walk.run().await.is_none() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// One session, and the nodes that its steps are made on.
pub struct Walk<'a> {
    pub history: &'a History,
    pub ports: [u16; 3],
    pub user: &'a str,
    pub open: u16,
    pub ask: u16,
    pub answer: u16,
    pub end: u16,
}

impl Walk<'_> {
    /// `None` if a step had no answer, which is not wrong while something fails.
    pub async fn run(&self) -> Option<()> {
        let client = json!({ "name": "trial", "version": "1" });
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "elicitation": {} },
            "clientInfo": client,
        });
        let body = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let opened = http::legacy(self.open, self.user, None, body).await?;
        let session = opened.session.clone().filter(|_| opened.status == 200)?;
        let session = session.as_str();
        let told = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        http::legacy(self.answer, self.user, Some(session), told).await?;
        let other = if self.user == "ada" { "bob" } else { "ada" };
        let ping = json!({ "jsonrpc": "2.0", "id": 9, "method": "ping" });
        let strange = http::legacy(self.answer, other, Some(session), ping).await;
        if strange.is_some_and(|it| it.status == 200) {
            self.history.wrong(format!("{other} uses a session of {}", self.user));
        }
        let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call",
            "params": { "name": "ask" } });
        let mut asked = http::legacy(self.ask, self.user, Some(session), call).await?;
        if asked.status != 200 {
            self.known(asked.status, "a call");
            return None;
        }
        let mut rest = String::new();
        let question = self.event(&mut asked, &mut rest).await?;
        let answer = json!({ "jsonrpc": "2.0", "id": question["id"],
            "result": { "action": "accept", "content": { "confirmed": true, "confirm": true, "yes": true } } });
        let accepted = http::legacy(self.answer, self.user, Some(session), answer).await?;
        if accepted.status != 202 {
            self.known(accepted.status, "an answer");
            return None;
        }
        let result = self.event(&mut asked, &mut rest).await?;
        if result["id"] != 7 {
            self.history.wrong(format!("the call was answered with {result}"));
        }
        self.history.answered.fetch_add(1, Ordering::Relaxed);
        let ended = http::delete(self.end, self.user, session).await?;
        if ended.status != 204 {
            self.known(ended.status, "the end");
            return None;
        }
        self.history.ended.lock().unwrap().push((session.to_owned(), self.user.to_owned()));
        is_over(self.history, &self.ports, (session, self.user), false).await;
        Some(())
    }

    async fn event(&self, response: &mut http::Response, rest: &mut String) -> Option<Value> {
        tokio::time::timeout(http::PATIENCE, response.event(rest)).await.ok()?
    }

    /// A session that was opened and not ended is known to every node.
    fn known(&self, status: u16, what: &str) {
        if status == 404 {
            self.history.wrong(format!("{what} of a session that was opened: 404"));
        }
    }
}

/// Checks that no node serves an ended session; in peace all say so.
pub async fn is_over(
    history: &History,
    ports: &[u16],
    (session, user): (&str, &str),
    is_peace: bool,
) {
    for port in ports {
        let ping = json!({ "jsonrpc": "2.0", "id": 9, "method": "ping" });
        let status = http::legacy(*port, user, Some(session), ping).await.map(|it| it.status);
        if status == Some(200) || is_peace && status != Some(404) {
            history.wrong(format!("port {port}: an ended session is answered with {status:?}"));
        }
    }
}
