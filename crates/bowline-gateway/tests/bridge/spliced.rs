//! A client and a server process of the same era: not one byte of a message changes, and a process
//! that dies is started again without the client's help.
//!
//! The servers are shell scripts, so that each says exactly what the test wants and dies when the
//! test wants.

use std::process::Command;
use std::sync::{Arc, Mutex};

use bowline::client::{Client, ClientLimits, Preference, Restart, Target};
use bowline::{Revision, Revisions, Server, Tool};
use bowline_gateway::bridge::{Bridge, BridgeError};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::world::{bridge_to, soon};

/// Answers `initialize`, and takes `notifications/initialized`.
const OPEN: &str = r#"
read first
echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"sh","version":"1"}}}'
read second
"#;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A client that writes and reads lines.
struct Raw {
    lines: BufReader<ReadHalf<DuplexStream>>,
    writer: WriteHalf<DuplexStream>,
    serving: JoinHandle<Result<(), BridgeError>>,
    stop: Arc<Notify>,
    reports: Arc<Mutex<Vec<String>>>,
}

impl Raw {
    /// A client of a bridge to a script; `instead` is what a client of the other era gets.
    fn new(script: &str, instead: impl Fn() -> Target + Send + Sync + 'static) -> Self {
        let script = script.to_owned();
        Self::of(Bridge {
            target: Arc::new(instead),
            command: Some(Box::new(move || {
                let mut command = Command::new("sh");
                command.arg("-c").arg(&script);
                command
            })),
            ..bridge_to(Target::stream(tokio::io::empty()))
        })
    }

    /// A client of a bridge.
    fn of(bridge: Bridge) -> Self {
        let reports = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&reports);
        let report = Arc::new(move |text: &str| heard.lock().unwrap().push(text.to_owned()));
        let bridge = Bridge { report, ..bridge };
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        let stop = Arc::new(Notify::new());
        let stopped = Arc::clone(&stop);
        let serving = tokio::spawn(async move {
            let (reader, writer) = tokio::io::split(theirs);
            bridge.serve_until(reader, writer, stopped.notified()).await
        });
        let (reader, writer) = tokio::io::split(ours);
        Self { lines: BufReader::new(reader), writer, serving, stop, reports }
    }

    async fn send(&mut self, line: &str) {
        self.writer.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        soon(self.lines.read_line(&mut line)).await.unwrap();
        line
    }

    async fn message(&mut self) -> Value {
        serde_json::from_str(&self.line().await).unwrap()
    }

    async fn open(&mut self) {
        self.send(INITIALIZE).await;
        assert_eq!(self.message().await["result"]["serverInfo"]["name"], "sh");
        self.send(INITIALIZED).await;
    }

    async fn close(mut self) -> Result<(), BridgeError> {
        self.writer.shutdown().await.unwrap();
        soon(self.serving).await.unwrap()
    }
}

fn nothing() -> Target {
    panic!("the bridge must not translate here")
}

#[tokio::test]
async fn frames_pass_as_they_are() {
    let script = format!("{OPEN} exec cat");
    let mut raw = Raw::new(&script, nothing);
    raw.open().await;
    // Odd spacing, unknown members, numbers and escapes that no encoder would write again.
    let odd = [
        r#"{ "params":{"_meta":{"x":1e0,"progressToken":"\u0061"},"x":[ ]} ,"method":"a","id":7.0,"jsonrpc":"2.0","more":null}"#,
        r#"{"jsonrpc":"2.0","id":"s","result":{"a":1,"a":2}}"#,
        "not a message at all",
        r#"[{"jsonrpc":"2.0","id":1,"method":"a"}]"#,
    ];
    for line in odd {
        raw.send(line).await;
        assert_eq!(raw.line().await, format!("{line}\n"));
    }
    raw.close().await.unwrap();
}

#[tokio::test]
async fn large_frames_pass_in_both_directions_at_once() {
    let script = format!("{OPEN} exec cat");
    let mut raw = Raw::new(&script, nothing);
    raw.open().await;
    let line = json!({ "jsonrpc": "2.0", "method": "a", "params": { "x": "y".repeat(300_000) } });
    let line = line.to_string();
    let Raw { mut lines, mut writer, serving, .. } = raw;
    let sent = line.clone();
    let sending = tokio::spawn(async move {
        for _ in 0..8 {
            writer.write_all(format!("{sent}\n").as_bytes()).await.unwrap();
        }
        writer.shutdown().await.unwrap();
    });
    for _ in 0..8 {
        let mut found = String::new();
        soon(lines.read_line(&mut found)).await.unwrap();
        assert_eq!(found.trim_end(), line);
    }
    soon(sending).await.unwrap();
    soon(serving).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_server_that_dies_is_reported_and_started_again() {
    // Dies of `die`, and answers everything else with what it has heard before.
    let script = format!(
        r#"{OPEN}
        while read line; do
            case "$line" in
                *setLevel*) level="$line"; case "$line" in *bowline-*) echo '{{"jsonrpc":"2.0","id":"bowline-1-0","result":{{}}}}';; *) echo '{{"jsonrpc":"2.0","id":2,"result":{{}}}}';; esac;;
                *die*) exit 3;;
                *) case "$second$level" in
                    *initialized*debug*) echo '{{"jsonrpc":"2.0","id":4,"result":{{"knows":true}}}}';;
                    *) echo '{{"jsonrpc":"2.0","id":4,"result":{{"knows":false}}}}';;
                   esac;;
            esac
        done"#
    );
    let mut raw = Raw::new(&script, nothing);
    raw.open().await;
    raw.send(r#"{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"debug"}}"#)
        .await;
    assert_eq!(raw.message().await["id"], 2);
    raw.send(r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"die"}}"#).await;
    let failed = raw.message().await;
    assert_eq!((&failed["id"], &failed["error"]["code"]), (&json!(3), &json!(-32603)));
    let what = failed["error"]["message"].as_str().unwrap();
    assert!(what.contains("exit status: 3") && what.contains("may have been executed"), "{what}");
    // The client sees neither the second handshake nor the answer to our own request.
    assert_eq!(raw.message().await["method"], "notifications/tools/list_changed");
    raw.send(r#"{"jsonrpc":"2.0","id":4,"method":"tools/list"}"#).await;
    let answer = raw.message().await;
    assert_eq!((&answer["id"], &answer["result"]["knows"]), (&json!(4), &json!(true)));
    let reports = raw.reports.lock().unwrap().clone();
    assert!(reports[0].contains("exit status: 3"), "{reports:?}");
    assert_eq!(reports[1], "the server is back");
    raw.close().await.unwrap();
}

#[tokio::test]
async fn a_server_that_dies_again_and_again_ends_the_bridge() {
    // Opens, and dies at once.
    let mut raw = Raw::new(OPEN, nothing);
    raw.open().await;
    let ended = soon(&mut raw.serving).await.unwrap().unwrap_err();
    let ended = bowline::with_causes(&ended);
    assert!(ended.contains("the server ended 10 times in a row"), "{ended}");
}

#[tokio::test]
async fn a_server_of_the_other_era_is_translated() {
    // Modern only: it does not know `initialize`.
    let script = r#"read first; echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}'; cat > /dev/null"#;
    let modern = || {
        let server = Server::new("modern", "1.0.0").with(Tool::new("hello", || async { "hello" }));
        server.revisions(Revisions::MODERN).into()
    };
    let mut raw = Raw::new(script, modern);
    raw.send(INITIALIZE).await;
    let opened = raw.message().await;
    assert_eq!(opened["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(opened["result"]["serverInfo"]["name"], "modern");
    raw.send(INITIALIZED).await;
    raw.send(r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hello","arguments":{}}}"#)
        .await;
    assert_eq!(raw.message().await["result"]["content"][0]["text"], "hello");
    raw.close().await.unwrap();
}

#[tokio::test]
async fn a_modern_client_and_a_modern_process_are_spliced() {
    // Its answers are told apart by their ids: the bridge asks first, under its own.
    let script = r#"
    read first
    case "$first" in *server/discover*) ;; *) exit 1;; esac
    echo '{"jsonrpc":"2.0","id":"bowline-discover","result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}}'
    exec cat"#;
    let mut raw = Raw::new(script, nothing);
    let call = r#"{"jsonrpc":"2.0","id":9,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}, "odd" : 1}}"#;
    raw.send(call).await;
    assert_eq!(raw.line().await, format!("{call}\n"));
    raw.close().await.unwrap();
}

#[tokio::test]
async fn a_client_whose_server_cannot_be_reached_is_told() {
    let gone = || Target::from(bowline::client::Command::new("/does/not/exist"));
    let mut raw = Raw::new("exit 1", gone);
    raw.send(INITIALIZE).await;
    let answer = raw.message().await;
    assert_eq!(answer["id"], 1);
    let what = answer["error"]["message"].as_str().unwrap();
    assert!(what.starts_with("the bridge has no server: "), "{what}");
    assert!(raw.close().await.is_err());
}

/// Whether a process is there.
fn is_alive(pid: &str) -> bool {
    let status = Command::new("sh").args(["-c", &format!("kill -0 {pid} 2> /dev/null")]).status();
    status.unwrap().success()
}

async fn gone(pid: &str) {
    soon(async {
        while is_alive(pid) {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_server_ends_with_all_its_descendants() {
    // Neither of the two minds that the input has ended.
    let script = format!("{OPEN} sleep 1000 & echo $!; cat > /dev/null; sleep 1000");
    let mut raw = Raw::new(&script, nothing);
    raw.open().await;
    let pid = raw.line().await.trim().to_owned();
    assert!(is_alive(&pid), "{pid}");
    raw.stop.notify_one();
    soon(&mut raw.serving).await.unwrap().unwrap();
    gone(&pid).await;
}

#[tokio::test]
async fn a_server_that_is_stopped_may_clean_up() {
    let file = std::env::temp_dir().join(format!("bowline-cleaned-{}", std::process::id()));
    let script = format!(
        "{OPEN} trap 'echo yes > {}; exit 0' TERM; echo ready; while :; do sleep 0.05; done",
        file.display()
    );
    let mut raw = Raw::new(&script, nothing);
    raw.open().await;
    assert_eq!(raw.line().await, "ready\n");
    raw.stop.notify_one();
    soon(&mut raw.serving).await.unwrap().unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "yes\n");
    std::fs::remove_file(&file).unwrap();
}

/// Whatever the server does, the bridge ends when its client has gone.
#[tokio::test]
async fn a_bridge_does_not_outlive_its_client() {
    // Closes its input; and never reads it.
    for rest in ["exec sleep 1000 <&-", "exec sleep 1000"] {
        let mut raw = Raw::new(&format!("{OPEN} {rest}"), nothing);
        raw.open().await;
        let line = json!({ "jsonrpc": "2.0", "method": "a", "params": "y".repeat(300_000) });
        raw.send(&line.to_string()).await;
        raw.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_bridge_whose_server_does_not_come_back_ends_with_its_client() {
    let file = std::env::temp_dir().join(format!("bowline-started-{}", std::process::id()));
    // The second process answers nothing.
    let script =
        format!("if [ -e {0} ]; then exec sleep 1000; fi; touch {0}; {OPEN}", file.display());
    let mut raw = Raw::new(&script, nothing);
    raw.open().await;
    soon(async {
        while raw.reports.lock().unwrap().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    })
    .await;
    raw.close().await.unwrap();
    std::fs::remove_file(&file).unwrap();
}

/// Neither a process nor a server of the other era answers.
#[tokio::test]
async fn a_bridge_that_is_still_opening_ends_with_its_client() {
    let silent = || {
        let command = bowline::client::Command::new("sleep").arg("1000");
        Target::from(command)
    };
    let spliced = Raw::new("exec sleep 1000", nothing);
    let translated = Raw::of(Bridge {
        preference: Preference::Pin(Revision::V2025_11_25),
        ..bridge_to(silent())
    });
    for mut raw in [spliced, translated] {
        raw.send(INITIALIZE).await;
        raw.writer.shutdown().await.unwrap();
        // It may still read.
        let answer = raw.message().await;
        assert_eq!(answer["id"], 1);
        let what = answer["error"]["message"].as_str().unwrap();
        assert!(what.contains("the client closed its side"), "{what}");
        soon(raw.serving).await.unwrap().unwrap();
    }
}

/// More than a pipe holds, in both directions.
#[tokio::test]
async fn a_server_that_talks_before_it_reads_is_opened() {
    let notice = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let script = format!("yes '{notice}' | head -n 4000; {OPEN} exec cat");
    let mut raw = Raw::new(&script, nothing);
    let initialize = INITIALIZE.replace("\"raw\"", &format!("\"{}\"", "x".repeat(200_000)));
    raw.send(&initialize).await;
    for _ in 0..4000 {
        assert_eq!(raw.line().await, format!("{notice}\n"));
    }
    assert_eq!(raw.message().await["result"]["serverInfo"]["name"], "sh");
    raw.close().await.unwrap();
}

/// The subscriptions that are made again, and the answers to them, are more than pipes hold.
#[tokio::test]
async fn many_subscriptions_survive_a_restart() {
    let pad = "x".repeat(200);
    let script = format!(
        r#"{OPEN}
        while read -r line; do
            case "$line" in *die*) exit 3;; esac
            id=${{line#*\"id\":}}
            echo '{{"jsonrpc":"2.0","id":'${{id%%,*}}',"result":{{"pad":"{pad}"}}}}'
        done"#
    );
    let mut raw = Raw::new(&script, nothing);
    raw.open().await;
    for id in 100..1124 {
        let subscribe = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"resources/subscribe","params":{{"uri":"test:{id}/{pad}"}}}}"#
        );
        raw.send(&subscribe).await;
        assert_eq!(raw.message().await["id"], id);
    }
    raw.send(r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"die"}}"#).await;
    let failed = raw.message().await;
    assert_eq!((&failed["id"], failed["error"].is_object()), (&json!(2), true), "{failed}");
    raw.send(r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#).await;
    let mut updated = 0;
    loop {
        let message = raw.message().await;
        updated += usize::from(message["method"] == "notifications/resources/updated");
        if message["id"] == 3 {
            break;
        }
        assert!(message["method"].is_string(), "{message}");
    }
    assert_eq!(updated, 1024);
    raw.close().await.unwrap();
}

#[tokio::test]
async fn a_bridge_whose_client_does_not_read_can_be_stopped() {
    // Just what fits, so that the bridge has no room for what it says itself.
    let script = format!("{OPEN} read line; head -c 65530 /dev/zero | tr '\\0' x; echo; exit 3");
    let mut raw = Raw::new(&script, nothing);
    raw.open().await;
    raw.send(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#).await;
    soon(async {
        while raw.reports.lock().unwrap().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    })
    .await;
    raw.stop.notify_one();
    soon(&mut raw.serving).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_line_of_the_client_that_is_too_long_is_answered() {
    let question = r#"{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{}}"#;
    let script = format!("{OPEN} echo '{question}'; exec cat");
    let mut raw = Raw::new(&script, nothing);
    raw.open().await;
    assert_eq!(raw.line().await, format!("{question}\n"));
    let long = "x".repeat(2 << 20);
    let too_long = |error: &Value| {
        let what = error["message"].as_str().unwrap();
        assert!(what.contains("longer than 1048576 bytes (see --max-size"), "{what}");
    };
    raw.send(&format!(r#"{{"jsonrpc":"2.0","id":2,"method":"a","params":{{"x":"{long}"}}}}"#))
        .await;
    let answer = raw.message().await;
    assert_eq!(answer["id"], 2);
    too_long(&answer["error"]);
    // An answer is one for the server, which says here what it hears.
    raw.send(&format!(r#"{{"jsonrpc":"2.0","id":"q","result":{{"x":"{long}"}}}}"#)).await;
    let heard = raw.message().await;
    assert_eq!(heard["id"], "q");
    too_long(&heard["error"]);
    raw.send(&long).await;
    let fault = raw.message().await;
    assert_eq!(fault["id"], Value::Null);
    too_long(&fault["error"]);
    let line = r#"{"jsonrpc":"2.0","method":"b"}"#;
    raw.send(line).await;
    assert_eq!(raw.line().await, format!("{line}\n"));
    raw.close().await.unwrap();
}

#[tokio::test]
async fn the_questions_of_a_server_that_dies_are_withdrawn() {
    let question = r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}"#;
    let script = format!("{OPEN} echo '{question}'; read line; exit 3");
    let mut raw = Raw::new(&script, nothing);
    raw.open().await;
    assert_eq!(raw.line().await, format!("{question}\n"));
    raw.send(r#"{"jsonrpc":"2.0","method":"a"}"#).await;
    let withdrawn = raw.message().await;
    assert_eq!(withdrawn["method"], "notifications/cancelled");
    assert_eq!(withdrawn["params"]["requestId"], "q");
    let why = withdrawn["params"]["reason"].as_str().unwrap();
    assert!(why.contains("exit status: 3"), "{why}");
    raw.close().await.unwrap();
}

/// A modern client and a process that answers nothing that it does not know. An answer to a request
/// of the client's own would be waited for longer than this test is patient.
#[tokio::test]
async fn a_silent_server_is_not_waited_for_as_long_as_for_an_answer() {
    let legacy = || {
        let server = Server::new("legacy", "1.0.0").with(Tool::new("hello", || async { "hello" }));
        server.revisions(Revisions::only(Revision::V2025_11_25)).into()
    };
    let mut raw = Raw::new("exec sleep 1000", legacy);
    raw.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hello","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#)
        .await;
    assert_eq!(raw.message().await["result"]["content"][0]["text"], "hello");
    raw.close().await.unwrap();
}

#[tokio::test]
async fn a_line_that_is_too_long_is_reported_as_such() {
    let script = format!("{OPEN} read line; head -c 2000000 /dev/zero; exec cat > /dev/null");
    let mut raw = Raw::new(&script, nothing);
    raw.open().await;
    raw.send(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#).await;
    let failed = raw.message().await;
    let what = failed["error"]["message"].as_str().unwrap();
    assert!(what.contains("a line of more than 1048576 bytes (see --max-size)"), "{what}");
    raw.close().await.unwrap();
}

/// A legacy server that the bridge translates for; `rest` is what it does with other lines.
const TRANSLATED: &str = r#"
while read line; do
    id=$(echo "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
    case "$line" in
        *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}}';;
        *tools/list*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"die","inputSchema":{"type":"object"}}]}}';;
        *tools/call*) exit 7;;
    esac
done
"#;

/// A client of a bridge that translates between two legacy revisions.
async fn translated(script: &str) -> Raw {
    let command = bowline::client::Command::new("sh").arg("-c").arg(script);
    let client = || {
        let limits = ClientLimits {
            exit_grace: std::time::Duration::from_secs(120),
            ..ClientLimits::default()
        };
        Client::builder("bridge", "1").without_cache().limits(limits).restart(Restart::Never)
    };
    let mut raw = Raw::of(Bridge {
        client: Arc::new(client),
        preference: Preference::Pin(Revision::V2025_11_25),
        ..bridge_to(Target::from(command))
    });
    raw.open().await;
    raw
}

#[tokio::test]
async fn a_translated_server_may_clean_up_before_the_bridge_ends() {
    for is_stopped in [false, true] {
        let name = format!("bowline-translated-{}-{is_stopped}", std::process::id());
        let file = std::env::temp_dir().join(name);
        let script = format!("{TRANSLATED} sleep 1; echo yes > {}", file.display());
        let raw = translated(&script).await;
        if is_stopped {
            raw.stop.notify_one();
            soon(raw.serving).await.unwrap().unwrap();
        } else {
            raw.close().await.unwrap();
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "yes\n", "{is_stopped}");
        std::fs::remove_file(&file).unwrap();
    }
}

#[tokio::test]
async fn a_translated_server_that_is_gone_for_good_ends_the_bridge() {
    let mut raw = translated(TRANSLATED).await;
    raw.send(
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"die","arguments":{}}}"#,
    )
    .await;
    // The client hears of it first.
    let failed = raw.message().await;
    assert_eq!((&failed["id"], failed["error"].is_object()), (&json!(2), true), "{failed}");
    let ended = soon(&mut raw.serving).await.unwrap().unwrap_err();
    let ended = bowline::with_causes(&ended);
    assert!(ended.contains("the connection to the server ended: "), "{ended}");
    assert!(ended.contains("exit status: 7"), "{ended}");
}
