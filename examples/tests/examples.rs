//! Each example as a process of its own, in both eras.

#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

use std::process::Stdio;
use std::time::Duration;

use bowline::client::http::Endpoint;
use bowline::client::{CallError, Command, FormAnswer, Notifications, Started, Target, Wanted};
use bowline::model::CreateMessageResult;
use bowline::proto::session::Preference;
use bowline::{Client, ErrorCode, Revision, Revisions};
use bowline_examples::receipts::{ID, RECEIPT, REDEEMED, TOPIC, with_receipts};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command as Process};

const NOTES: &str = env!("CARGO_BIN_EXE_notes");
/// How long a server may take to answer, or to end: 2 minutes.
const PATIENCE: Duration = Duration::from_secs(120);

const ERAS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

/// A client that agrees to everything.
async fn client(revision: Revision, target: impl Into<Target>) -> Client {
    Client::builder("test", "1.0.0")
        .preference(Preference::Pin(revision))
        .on_form(async |_| Ok(FormAnswer::defaults()))
        .on_sampling(async |_| Ok(CreateMessageResult::text("fake", "Short.")))
        .connect(target)
        .await
        .unwrap()
}

/// Uses everything that a notes server has. `prefix` is before the names of its tools.
async fn walk(client: &Client, prefix: &str) {
    let tool = |name: &str| format!("{prefix}{name}");
    let draft = json!({ "title": "Bowline", "body": "A knot." });
    let added: Value = client.call_tool(tool("add"), &draft).structured().await.unwrap();
    let id = added["id"].as_i64().unwrap();
    let found = client.call_tool(tool("search"), json!({ "query": "knot" }));
    let found: Vec<Value> = found.structured().await.unwrap();
    assert_eq!(found.last(), Some(&added));

    let (progress, told) = std::sync::mpsc::channel();
    let call = client.call_tool(tool("import"), json!({ "notes": [draft.clone(), draft] }));
    let call = call.on_progress(move |report| progress.send(report.progress).unwrap());
    assert_eq!(call.text().await.unwrap(), "2 notes were added");
    assert_eq!(told.iter().last(), Some(2.0));

    let wanted = json!({ "id": id });
    assert_eq!(client.call_tool(tool("summarize"), &wanted).text().await.unwrap(), "Short.");
    let read = client.read_resource(format!("notes://{id}")).await.unwrap();
    assert_eq!(read.contents[0].as_text(), Some("A knot."));
    let prompt = client.get_prompt(tool("review"), &[("id", &id.to_string())]).await.unwrap();
    assert!(format!("{prompt:?}").contains("A knot."), "{prompt:?}");
    let completed = client.complete_template("notes://{id}", ("id", ""), &[]).await.unwrap();
    assert!(completed.completion.values.contains(&id.to_string()), "{completed:?}");

    let deleted = client.call_tool(tool("delete"), &wanted).text().await.unwrap();
    assert_eq!(deleted, format!("note {id} was deleted"));
    let error = client.call_tool(tool("delete"), &wanted).text().await.unwrap_err();
    assert!(error.to_string().contains(&format!("there is no note {id}")), "{error}");
    let unread = client.read_resource(format!("notes://{id}")).await;
    assert!(unread.unwrap_err().to_string().contains("unknown resource"));
}

#[tokio::test]
async fn the_notes_server_serves_both_eras_on_stdio() {
    for revision in ERAS {
        let client = client(revision, Command::new(NOTES)).await;
        walk(&client, "").await;
        client.close().await;
    }
}

#[tokio::test]
async fn the_notes_server_serves_both_eras_over_http() {
    let server = Served::start(|address| {
        let mut notes = Process::new(NOTES);
        notes.args([":memory:", "--http", address]);
        notes
    })
    .await;
    for revision in ERAS {
        let client = client(revision, server.url("/mcp")).await;
        walk(&client, "").await;
        client.close().await;
    }
    server.stop().await;
}

#[tokio::test]
async fn the_notes_server_is_at_home_inside_axum() {
    let server = Served::start(|address| {
        let mut notes = Process::new(env!("CARGO_BIN_EXE_notes-axum"));
        notes.args([":memory:", address]);
        notes
    })
    .await;
    let url = server.url("/mcp");
    assert!(Client::connect(url.as_str()).await.is_err(), "it needs a key");
    for (key, status) in [("", "401 Unauthorized"), ("x-api-key: secret\r\n", "200 OK")] {
        assert_eq!(server.get("/notes", key).await.unwrap(), format!("HTTP/1.1 {status}\r\n"));
    }
    for revision in ERAS {
        let client = client(revision, Endpoint::new(&url).header("x-api-key", "secret")).await;
        walk(&client, "").await;
        client.close().await;
    }
    server.stop().await;
}

#[tokio::test]
async fn the_proxy_forwards_everything_in_both_eras() {
    for revision in ERAS {
        let proxy = Command::new(env!("CARGO_BIN_EXE_notes-proxy")).arg(format!("my={NOTES}"));
        let client = client(revision, proxy).await;
        walk(&client, "my_").await;
        client.close().await;
    }
}

/// Uses the extension, with a client that knows it.
async fn walk_receipts(revision: Revision, target: impl Into<Target>) {
    let builder = Client::builder("test", "1.0.0").preference(Preference::Pin(revision));
    let client = with_receipts(builder).connect(target).await.unwrap();
    let declared = &client.peer().unwrap().capabilities.extensions;
    assert_eq!(declared.as_ref().unwrap().get(ID).unwrap()["most"], 1_000);
    let tool = client.list_tools().await.unwrap().remove(0);
    assert_eq!(tool.meta.unwrap().read(ID), Some(true));
    // The receipt is redeemed by the client, or is beside the result.
    let text = client.call_tool("brew", json!({ "cups": 2 })).text().await.unwrap();
    assert_eq!(text, "2 cups of tea");

    let brew = json!({ "name": "brew", "arguments": { "cups": 3 } });
    let said = client.call_json("tools/call", brew).once().await.unwrap().to_value();
    let id = match revision.is_modern() {
        true => said["id"].as_str(),
        false => said["_meta"][ID].as_str(),
    };
    let wanted = json!({ "id": id.unwrap() });
    if revision.is_modern() {
        assert_eq!(said["resultType"], RECEIPT);
        let mut told = client.notifications();
        let listening = client.changes(Wanted::new().topic(TOPIC, id.unwrap())).await.unwrap();
        assert_eq!(listening.granted().extra[TOPIC], json!([id.unwrap()]));
        let state = async |told: &mut Notifications| {
            told.next_of(REDEEMED).await.unwrap().params.to_value()["isRedeemed"].clone()
        };
        assert_eq!(state(&mut told).await, false);
        client.call_json("receipts/get", wanted).await.unwrap();
        assert_eq!(state(&mut told).await, true);
        let gone = client.call_json("receipts/list", json!({})).await.unwrap_err();
        assert_eq!(gone.as_refusal().unwrap().code, ErrorCode::METHOD_NOT_FOUND);
    } else {
        client.call_json("receipts/get", wanted).await.unwrap();
        let listed = client.call_json("receipts/list", json!({})).await.unwrap().to_value();
        let redeemed =
            listed["receipts"].as_array().unwrap().iter().find(|it| it["id"] == id.unwrap());
        assert_eq!(redeemed.unwrap()["isRedeemed"], true, "{listed}");
        let lacks = client.changes(Wanted::new().topic(TOPIC, id.unwrap())).await;
        assert!(matches!(lacks, Err(CallError::Lacks { .. })));
    }
    client.close().await;
}

#[tokio::test]
async fn the_extension_serves_both_eras_on_stdio_and_over_http() {
    let program = env!("CARGO_BIN_EXE_receipts");
    let server = Served::start(|address| {
        let mut receipts = Process::new(program);
        receipts.args(["--http", address]);
        receipts
    })
    .await;
    for revision in ERAS {
        walk_receipts(revision, Command::new(program)).await;
        walk_receipts(revision, server.url("/mcp")).await;
        // A client that does not know it sees no trace of it.
        let plain = client(revision, Command::new(program)).await;
        let brew = json!({ "name": "brew", "arguments": { "cups": 1 } });
        let result = plain.call_json("tools/call", brew).once().await.unwrap().to_value();
        assert_eq!(result["content"][0]["text"], "1 cups of tea", "{result}");
        assert_eq!(result["_meta"].get(ID), None);
        let refused = plain.call_json("receipts/get", json!({ "id": "0" })).await.unwrap_err();
        assert!(refused.to_string().contains("extension"), "{refused}");
        plain.close().await;
    }
    server.stop().await;
}

#[tokio::test]
async fn a_task_asks_before_it_publishes_in_both_eras() {
    for revision in ERAS {
        let client = client(revision, Command::new(env!("CARGO_BIN_EXE_publish"))).await;
        let call = client.call_tool("publish", json!({ "version": "1.2.0" }));
        let Started::Task(task) = call.start().await.unwrap() else { panic!("it is a task") };
        let result = task.wait().await.unwrap();
        assert_eq!(result.content[0].as_text(), Some("package-1.2.0 was published"));
        client.close().await;
    }
}

#[tokio::test]
async fn the_board_has_an_app_in_both_eras() {
    for revision in ERAS {
        let client = client(revision, Command::new(env!("CARGO_BIN_EXE_board"))).await;
        let tools = client.list_tools().await.unwrap();
        let uri = tools.iter().find_map(|tool| tool.ui()?.resource_uri).unwrap();
        let app = client.read_resource(uri).await.unwrap();
        assert!(app.contents[0].as_text().unwrap().starts_with("<!doctype html>"));
        // As the app calls it, and as the model does.
        let placed = client.call_tool("place", json!({ "column": 3 })).text().await.unwrap();
        assert_eq!(placed, "· · X · · · ·");
        assert_eq!(client.call_tool("show", json!({})).text().await.unwrap(), placed);
        client.close().await;
    }
}

/// The URL of a notes server in this process that speaks one revision only.
async fn notes_in(revision: Revision) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let notes = bowline_examples::notes(":memory:").unwrap().revisions(Revisions::only(revision));
    let app = axum::Router::new().nest_service("/mcp", notes.http().into_service().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    url
}

/// What a program prints, which must succeed.
async fn printed(program: &str, target: Option<&str>) -> String {
    let output = Process::new(program).args(target).kill_on_drop(true).output().await.unwrap();
    assert!(output.status.success(), "{target:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn the_client_prints_what_it_did_in_both_eras() {
    let mut targets = vec![NOTES.to_owned()];
    for revision in ERAS {
        targets.push(notes_in(revision).await);
    }
    for target in targets {
        let text = printed(env!("CARGO_BIN_EXE_notes-client"), Some(&target)).await;
        for line in [
            "2 of 2",
            "2 notes were added",
            "1: Bowline",
            "It is about knots.",
            "Delete \"Bowline\"? yes",
            "note 1 was deleted",
            "there is no note 1",
        ] {
            assert!(text.contains(line), "{target}: {line} is not in:\n{text}");
        }
    }
}

#[tokio::test]
async fn the_model_of_the_agent_gets_its_results_and_its_mistakes_in_both_eras() {
    let mut targets = vec![None];
    for revision in ERAS {
        targets.push(Some(notes_in(revision).await));
    }
    for target in targets {
        let text = printed(env!("CARGO_BIN_EXE_notes-agent"), target.as_deref()).await;
        let messages: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(messages[2]["content"].as_str().unwrap().starts_with("Error: "), "{text}");
        let found = messages[6]["content"].as_str().unwrap();
        assert!(found.contains("A knot."), "{target:?}: {found}");
        assert_eq!(messages[7]["content"], "There is one note about knots.");
    }
}

/// A server in a process of its own, at an address of its own.
struct Served {
    process: Child,
    address: String,
}

impl Served {
    /// Starts it on a free port; on another one, if somebody took that meanwhile.
    async fn start(command: impl Fn(&str) -> Process) -> Self {
        for _ in 0..20 {
            let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let address = free.local_addr().unwrap().to_string();
            drop(free);
            let mut command = command(&address);
            command.stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
            let mut served = Self { process: command.spawn().unwrap(), address };
            let answers = tokio::time::timeout(PATIENCE, served.answers()).await;
            if answers.expect("it answers or ends") {
                return served;
            }
        }
        panic!("no port is free");
    }

    /// Waits until it answers HTTP, or ends.
    async fn answers(&mut self) -> bool {
        loop {
            // Whoever answers after its end is another process.
            let answers = self.get("/health", "").await.is_some();
            if self.process.try_wait().unwrap().is_some() {
                return false;
            }
            if answers {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The first line of its answer to some path, with this after the head's first two lines.
    async fn get(&self, path: &str, headers: &str) -> Option<String> {
        use tokio::io::AsyncWriteExt;
        let mut stream = tokio::net::TcpStream::connect(&self.address).await.ok()?;
        let head = format!("GET {path} HTTP/1.1\r\nhost: {}\r\n{headers}\r\n", self.address);
        stream.write_all(head.as_bytes()).await.ok()?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).await.ok()?;
        line.starts_with("HTTP/1.1").then_some(line)
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Asks it to stop, and expects a clean end.
    async fn stop(mut self) {
        let pid = self.process.id().unwrap().to_string();
        assert!(Process::new("kill").arg(&pid).status().await.unwrap().success());
        let ended = tokio::time::timeout(PATIENCE, self.process.wait()).await;
        assert!(ended.unwrap().unwrap().success());
    }
}
