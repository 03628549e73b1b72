//! What could not be sent: kept on disk, sent in order when the receiver is back.
//!
//! The receivers are Unix sockets: they can be absent and come back without a race for a port.

#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use bowline::{Client, Revision, testing};
use bowline_serve::testing::Process;
use mcp_logger::spool::SPOOL_URI;
use mcp_logger::{Callers, Config};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::UnixListener;
use tokio::time::timeout;

use crate::receiver::{PATIENCE, folder};
use crate::{call, client, fail};

/// A folder with a spool and the socket of a receiver, deleted on drop.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        Self(folder(name))
    }

    fn socket(&self) -> PathBuf {
        self.0.join("log")
    }

    fn spool(&self) -> PathBuf {
        self.0.join("spool")
    }

    /// A configuration with a spool that is sent at once when the receiver is back.
    fn config(&self, more: &str) -> String {
        let (spool, socket) = (self.spool(), self.socket());
        format!(
            "messages_per_second = 0\n[targets.here]\nserver = {socket:?}\ntransport = \"unix\"\n\
             [spool]\ndir = {spool:?}\nretry_ms = 5\nmax_retry_ms = 20\n{more}"
        )
    }

    fn listen(&self) -> UnixListener {
        let _ = std::fs::remove_file(self.socket());
        UnixListener::bind(self.socket()).unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Reads connections until this many records have come, and returns their texts.
async fn records(listener: &UnixListener, count: usize) -> Vec<String> {
    let mut texts = Vec::new();
    let reading = async {
        while texts.len() < count {
            let mut all = Vec::new();
            listener.accept().await.unwrap().0.read_to_end(&mut all).await.unwrap();
            let all = String::from_utf8(all).unwrap();
            assert!(all.is_empty() || all.ends_with('\0'), "half a record: {all:?}");
            texts.extend(all.split_terminator('\0').map(|it| text_of(it).to_owned()));
        }
    };
    let read = timeout(PATIENCE, reading).await;
    assert!(read.is_ok(), "{} of {count} came", texts.len());
    texts
}

fn text_of(record: &str) -> &str {
    record.split_once("mcp-logger: ").unwrap().1
}

async fn state(client: &Client) -> Value {
    let read = client.read_resource(SPOOL_URI).await.unwrap();
    serde_json::from_str(read.contents[0].as_text().unwrap()).unwrap()
}

async fn until_empty(client: &Client) {
    let looking = async {
        while state(client).await["messages"] != 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, looking).await.unwrap();
}

fn here(message: &str) -> Value {
    json!({ "server": "here", "message": message })
}

fn numbered(numbers: std::ops::Range<usize>) -> Vec<String> {
    numbers.map(|number| number.to_string()).collect()
}

#[tokio::test]
async fn messages_wait_and_arrive_in_order() {
    let place = Place::new("spool-order");
    let client = client(&place.config("")).await;
    for number in 0..5 {
        let result = client.call_tool("send-syslog", here(&number.to_string())).await.unwrap();
        let sent = result.structured_content.unwrap().to_value();
        assert_eq!(sent["delivery"], "spooled");
        assert_eq!(sent["waiting"]["messages"], number + 1);
        let text = result.content[0].as_text().unwrap();
        assert!(text.starts_with("Spooled: not sent to here ("), "{text}");
        assert!(text.contains(&format!("; {} messages are waiting", number + 1)), "{text}");
        if number == 0 {
            assert!(text.contains("cannot connect over unix"), "{text}");
        }
    }
    let entries: Vec<_> = numbered(5..260).into_iter().map(|it| json!({ "message": it })).collect();
    let batch = json!({ "server": "here", "messages": entries });
    let sent = call(&client, "send-syslog-batch", batch).await;
    assert_eq!((&sent["sent"], &sent["delivery"]), (&json!(0), &json!("spooled")));
    assert_eq!(sent["waiting"]["messages"], 260);

    let shown = state(&client).await;
    assert_eq!((&shown["messages"], &shown["max_messages"]), (&json!(260), &json!(10_000)));
    let waiting = &shown["destinations"][0];
    assert_eq!((&waiting["messages"], &waiting["transport"]), (&json!(260), &json!("unix")));
    assert!(waiting["target"].as_str().unwrap().starts_with("here ("), "{waiting}");

    let receiver = place.listen();
    assert_eq!(records(&receiver, 260).await, numbered(0..260));
    until_empty(&client).await;
    let left: Vec<_> = std::fs::read_dir(place.spool()).unwrap().collect();
    assert_eq!(left.len(), 1, "only the lock is left: {left:?}");

    // Nothing waits, so the next one is sent at once.
    let (sent, received) =
        tokio::join!(call(&client, "send-syslog", here("now")), records(&receiver, 1));
    assert_eq!((&sent["delivery"], received), (&json!("written"), vec!["now".to_owned()]));
    let recent = client.read_resource("syslog://recent").await.unwrap();
    let recent: Value = serde_json::from_str(recent.contents[0].as_text().unwrap()).unwrap();
    assert_eq!((&recent[0]["outcome"], &recent[1]["outcome"]), (&json!("sent"), &json!("spooled")));
}

#[tokio::test]
async fn a_full_spool_is_an_error() {
    let place = Place::new("spool-full");
    let client = client(&place.config("max_messages = 3\nmax_bytes = 1000")).await;
    for _ in 0..2 {
        call(&client, "send-syslog", here("kept")).await;
    }
    // All or none.
    let batch = json!({ "server": "here", "messages": [{ "message": "a" }, { "message": "b" }] });
    let text = fail(&client, "send-syslog-batch", batch).await;
    assert!(text.contains("and it cannot be kept for later: the spool is full: 2 messages with"));
    assert_eq!(state(&client).await["messages"], 2);
    let text = fail(&client, "send-syslog", here(&"x".repeat(1_000))).await;
    assert!(text.contains("and at most 3 with 1000 are kept"), "{text}");
    call(&client, "send-syslog", here("kept")).await;
    let text = fail(&client, "send-syslog", here("lost")).await;
    assert!(text.contains("the spool is full: 3 messages"), "{text}");
    let receiver = place.listen();
    assert_eq!(records(&receiver, 3).await, ["kept"; 3]);
}

#[tokio::test]
async fn mistakes_are_not_spooled() {
    let place = Place::new("spool-mistakes");
    let config = format!("allow = [\"192.0.2.0/24\"]\n{}", place.config(""));
    let client = client(&config).await;
    let text =
        fail(&client, "send-syslog", json!({"server": "192.0.2.1", "port": 1, "message": "x"}));
    assert!(text.await.contains("is not allowed"));
    let text = fail(&client, "send-syslog", json!({"server": "here", "message": "x", "tag": " "}));
    assert!(text.await.contains("tag"));
    assert_eq!(state(&client).await["messages"], 0);
}

#[tokio::test]
async fn one_destination_does_not_hold_up_another() {
    let place = Place::new("spool-two");
    let other = place.0.join("other");
    let more = format!("[targets.other]\nserver = {other:?}\ntransport = \"unix\"");
    let client = client(&place.config(&more)).await;
    call(&client, "send-syslog", here("waits")).await;
    call(&client, "send-syslog", json!({ "server": "other", "message": "goes" })).await;
    let receiver = UnixListener::bind(&other).unwrap();
    assert_eq!(records(&receiver, 1).await, ["goes"]);
    let looking = async {
        while state(&client).await["messages"] != 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, looking).await.unwrap();
    let shown = state(&client).await;
    assert!(shown["destinations"][0]["target"].as_str().unwrap().starts_with("here"), "{shown}");
    assert!(shown["destinations"][0]["error"].as_str().unwrap().contains("cannot connect"));
}

#[tokio::test]
async fn subscribers_are_notified_of_the_spool() {
    let place = Place::new("spool-subscribed");
    let config = Config::parse(&place.config("")).unwrap();
    let server = mcp_logger::server(config, Callers::Owner).unwrap();
    let client = testing::connect_in(server, Revision::V2025_11_25).await.unwrap();
    let uri = json!({ "uri": SPOOL_URI });
    client.call_json("resources/subscribe", uri.clone()).await.unwrap();
    let mut notifications = client.notifications();
    call(&client, "send-syslog", here("x")).await;
    let updated = notifications.next_of("notifications/resources/updated").await.unwrap();
    assert_eq!(updated.params.to_value(), uri);
}

#[tokio::test]
async fn without_a_spool_there_is_no_resource() {
    let uris = client("").await.list_resources().await.unwrap();
    assert!(uris.iter().all(|it| it.uri != SPOOL_URI));
}

/// The program on stdio, with the configuration in a file.
pub(crate) struct Program {
    process: Process,
    next: u64,
}

impl Program {
    pub(crate) fn start(config: &Path) -> Self {
        let config = config.display().to_string();
        let process = Process::start(env!("CARGO_BIN_EXE_mcp-logger"), &["--config", &config]);
        let mut program = Self { process, next: 0 };
        program.ask(
            "initialize",
            &json!({ "protocolVersion": "2025-11-25", "capabilities": {},
                     "clientInfo": { "name": "test", "version": "1" } }),
        );
        program.process.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        program
    }

    /// Sends a request without waiting for its answer, and returns its id.
    fn post(&mut self, method: &str, params: &Value) -> u64 {
        self.next += 1;
        let request =
            json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params });
        self.process.send(&request.to_string());
        self.next
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.post(method, params);
        self.process.answer(&id.into())["result"].clone()
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    /// How many messages are waiting.
    pub(crate) fn waiting(&mut self) -> u64 {
        let read = self.ask("resources/read", &json!({ "uri": SPOOL_URI }));
        let text = read["contents"][0]["text"].as_str().unwrap();
        serde_json::from_str::<Value>(text).unwrap()["messages"].as_u64().unwrap()
    }

    pub(crate) fn close(self) -> Option<i32> {
        self.process.close().code
    }
}

#[tokio::test]
async fn what_was_spooled_survives_kill_9() {
    let place = Place::new("spool-kill");
    let config = place.0.join("config.toml");
    std::fs::write(&config, place.config("")).unwrap();
    let mut spooled = Vec::new();
    for round in 0..6 {
        let mut program = Program::start(&config);
        let first = program.next + 1;
        for number in 0..30 {
            let text = format!("{round}-{number}-{}-end", "x".repeat(500));
            program.post("tools/call", &json!({ "name": "send-syslog", "arguments": here(&text) }));
        }
        // Killed in the middle of its work, later in every round.
        for _ in 0..round * 5 {
            let answer = program.process.receive();
            let number = answer["id"].as_u64().unwrap() - first;
            assert_eq!(answer["result"]["structuredContent"]["delivery"], "spooled", "{answer}");
            spooled.push(format!("{round}-{number}-{}-end", "x".repeat(500)));
        }
        // Dropping it sends SIGKILL.
    }
    let mut program = Program::start(&config);
    let waiting = usize::try_from(program.waiting()).unwrap();
    assert!((spooled.len()..=180).contains(&waiting), "{waiting} of {}", spooled.len());
    let receiver = place.listen();
    let received = records(&receiver, waiting).await;
    let waits = tokio::task::spawn_blocking(move || {
        while program.waiting() > 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        program.close()
    });
    assert_eq!(timeout(PATIENCE, waits).await.unwrap().unwrap(), Some(0));
    assert_eq!(received.len(), waiting, "none came twice");
    for text in &received {
        assert!(text.ends_with("x-end") && text.len() >= 508, "half a message: {text}");
    }
    for text in &spooled {
        assert!(received.contains(text), "lost: {text}");
    }
}

#[tokio::test]
async fn one_process_per_folder() {
    let place = Place::new("spool-lock");
    let config = place.0.join("config.toml");
    std::fs::write(&config, place.config("")).unwrap();
    let first = Program::start(&config);
    let config = config.display().to_string();
    let said = tokio::task::spawn_blocking(move || {
        bowline_serve::testing::run(env!("CARGO_BIN_EXE_mcp-logger"), &["--config", &config], "")
    });
    let said = said.await.unwrap();
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("is in use by another mcp-logger"), "{}", said.err);
    assert_eq!(first.close(), Some(0));
}

#[tokio::test]
async fn a_target_that_is_gone_keeps_its_messages() {
    let place = Place::new("spool-gone");
    let config = place.0.join("config.toml");
    std::fs::write(&config, place.config("")).unwrap();
    let mut program = Program::start(&config);
    program.call("send-syslog", &here("kept"));
    drop(program);
    let without = place.config("").replace("targets.here", "targets.there");
    std::fs::write(&config, without).unwrap();
    let mut program = Program::start(&config);
    let shown = loop {
        let read = program.ask("resources/read", &json!({ "uri": SPOOL_URI }));
        let text = read["contents"][0]["text"].as_str().unwrap().to_owned();
        if text.contains("error") {
            break text;
        }
    };
    assert!(shown.contains(r#"target \"here\" is no longer configured"#), "{shown}");
    assert_eq!(program.waiting(), 1);
}
