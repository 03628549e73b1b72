//! The messages in five notes that people wrote while learning the protocol.
//!
//! Every fenced block of every note is accounted for. Messages are read, typed (requests by their
//! method, responses by their request), and written back unchanged. Where a note contradicts the
//! specification, a test says so.

use bowline_proto::method::*;
use bowline_proto::model::*;
use bowline_proto::revision::Revision::{self, *};
use bowline_proto::revision::{Adapt, Outcome, decode_outcome};
use bowline_proto::wire::{Id, Message, Response, parse_batch};
use serde_json::{Value, json};

use crate::shared::{path, same};
use crate::typed::*;

/// What a block of a note is.
enum Block {
    /// A message: its id, and how to read and write it.
    Message(Option<i64>, fn(&str) -> Written),
    /// Not a message: what it is instead, and how it is handled.
    Other(&'static str),
}

use Block::{Message as Says, Other};

/// A fenced block: its language, and its text without comments.
struct Fenced {
    language: String,
    text: String,
}

/// All fenced blocks of a note, if it is available.
fn blocks(note: &str) -> Option<Vec<Fenced>> {
    let text = std::fs::read_to_string(path(&format!("seeds/{note}.txt"))?).unwrap();
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.strip_prefix("```") else { continue };
        let body: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
        let text = body.into_iter().map(without_comment).collect::<Vec<_>>().join("\n");
        blocks.push(Fenced { language: language.to_owned(), text });
    }
    Some(blocks)
}

/// A line without a trailing `// …` comment. `//` inside a string is not a comment.
fn without_comment(line: &str) -> &str {
    let mut in_string = false;
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            b'"' => in_string = !in_string,
            b'/' if !in_string && line[at..].starts_with("//") => return &line[..at],
            _ => {}
        }
    }
    line
}

/// Checks all blocks of a note against their expected kinds, and returns the messages.
fn check(note: &str, expected: &[Block]) -> Option<Vec<String>> {
    let blocks = blocks(note)?;
    assert_eq!(blocks.len(), expected.len(), "{note}: blocks");
    let mut messages = Vec::new();
    for (number, (block, expected)) in blocks.into_iter().zip(expected).enumerate() {
        match expected {
            Says(id, round_trip) => {
                let read: Value = serde_json::from_str(&block.text).unwrap();
                let written = round_trip(&block.text)
                    .unwrap_or_else(|error| panic!("{note}, block {number}: {error}"));
                assert!(same(&read, &written), "{note}, block {number}:\n{read}\n{written}");
                assert_eq!(written.get("id").and_then(Value::as_i64), *id);
                messages.push(block.text);
            }
            Other(what) => {
                assert_ne!(block.language, "json", "{note}, block {number} is not {what}");
                assert!(Message::parse(block.text.as_bytes()).is_err(), "{note}: {what}");
            }
        }
    }
    Some(messages)
}

/// The result inside a message, typed by its request.
fn answer<M: Method>(revision: Revision, text: &str) -> M::Result {
    let Message::Response(Response { outcome: Ok(raw), .. }) =
        Message::parse(text.as_bytes()).unwrap()
    else {
        panic!("not a result: {text}");
    };
    match decode_outcome::<M>(revision, raw).unwrap() {
        Outcome::Complete(result) => result,
        _ => panic!("not complete: {text}"),
    }
}

fn params<'a, M: Method>(text: &'a str) -> M::Params<'a> {
    let Message::Request(request) = Message::parse(text.as_bytes()).unwrap() else {
        panic!("not a request: {text}");
    };
    bowline_proto::decode::decode_params(M::NAME, request.params.raw()).unwrap()
}

#[test]
fn note_000_a_walk_through_2025_06_18() {
    let Some(messages) = check(
        "000_1f43ec002134eda9",
        &[
            Says(Some(1), request::<Initialize>),
            Says(Some(1), |text| response_in::<Initialize>(V2025_06_18, text)),
            Says(None, notification::<Initialized>),
            Says(Some(2), request::<ListTools>),
            Says(Some(2), |text| response_in::<ListTools>(V2025_06_18, text)),
            Says(Some(3), request::<CallTool>),
            Says(Some(3), |text| response_in::<CallTool>(V2025_06_18, text)),
            Says(None, notification::<ToolListChanged>),
            Says(Some(4), request::<ListTools>),
        ],
    ) else {
        return;
    };
    let opening = params::<Initialize>(&messages[0]);
    assert_eq!(opening.protocol_version.parse(), Ok(V2025_06_18));
    assert!(opening.capabilities.has_elicitation_form());
    assert_eq!(opening.client_info.name, "example-client");
    let tools = answer::<ListTools>(V2025_06_18, &messages[4]).tools;
    let names: Vec<_> = tools.iter().map(Tool::display_name).collect();
    assert_eq!(names, ["Calculator", "Weather Information"]);
    assert_eq!(params::<CallTool>(&messages[5]).name, "weather_current");
    let said = answer::<CallTool>(V2025_06_18, &messages[6]);
    assert!(said.content[0].as_text().unwrap().contains("68°F"));
}

/// The note requests input with `elicitation/request`, which is not a method, and counts sampling,
/// elicitation and logging among the notifications: the first two are requests to the client.
#[test]
fn note_000_names_a_method_that_does_not_exist() {
    assert!(!is_known("elicitation/request"));
    let row = |name| find(name, V2025_06_18).unwrap();
    for name in ["elicitation/create", "sampling/createMessage"] {
        assert_eq!(
            (row(name).kind, row(name).direction),
            (MethodKind::Request, Direction::ToClient)
        );
    }
    assert_eq!(row("notifications/message").kind, MethodKind::Notification);
}

#[test]
fn note_001_a_logger() {
    let Some(messages) = check(
        "001_89d27619c63e8868",
        &[
            Says(Some(1), request::<Initialize>),
            Says(Some(1), |text| response_in::<Initialize>(V2024_11_05, text)),
            Says(None, notification::<Initialized>),
            Says(Some(2), request::<ListTools>),
            Says(Some(2), |text| response_in::<ListTools>(V2024_11_05, text)),
            Says(Some(3), request::<CallTool>),
            Says(Some(3), |text| response_in::<CallTool>(V2024_11_05, text)),
        ],
    ) else {
        return;
    };
    let opened = answer::<Initialize>(V2024_11_05, &messages[1]);
    assert_eq!(opened.server_info, Implementation::new("mcp-logger", "0.1.0"));
    assert_eq!(opened.capabilities.tools, Some(ListCapability::default()));
    let call = params::<CallTool>(&messages[5]);
    let arguments: Value = serde_json::from_str(call.arguments.unwrap().get()).unwrap();
    assert_eq!((&*call.name, &arguments["port"]), ("send-syslog", &json!(514)));
    let said = answer::<CallTool>(V2024_11_05, &messages[6]);
    assert_eq!(said.is_error, Some(false));
}

#[test]
fn note_002_a_counter() {
    let Some(messages) = check(
        "002_2f5a6bbcf26e48d2",
        &[
            Says(Some(0), request::<Initialize>),
            Says(Some(0), |text| response_in::<Initialize>(V2024_11_05, text)),
            Says(None, notification::<Initialized>),
            Says(Some(1), request::<ListTools>),
            Says(Some(1), |text| response_in::<ListTools>(V2024_11_05, text)),
            Says(Some(2), request::<ListResources>),
            Says(Some(2), |text| response_in::<ListResources>(V2024_11_05, text)),
            Says(Some(4), request::<CallTool>),
            Says(Some(7), request::<CallTool>),
            Says(Some(7), |text| response_in::<CallTool>(V2024_11_05, text)),
            Other("a diagram"),
        ],
    ) else {
        return;
    };
    assert_eq!(params::<Initialize>(&messages[0]).client_info.name, "Cline");
    // Annotations came with 2025-03-26, but a server of that note's time sent them. They are read,
    // and not sent to a peer of 2024-11-05.
    let mut tools = answer::<ListTools>(V2024_11_05, &messages[4]);
    assert_eq!(tools.tools[0].annotations.as_ref().unwrap().idempotent_hint, Some(true));
    tools.adapt(V2024_11_05).unwrap();
    assert_eq!(tools.tools[0].annotations, None);
    // The specification has no member `metadata`, only `_meta`. It is passed on anyway.
    let resources = answer::<ListResources>(V2024_11_05, &messages[6]).resources;
    assert_eq!(resources[0].extra["metadata"], json!({ "type": "directory", "size": 4096 }));
    let sum = answer::<CallTool>(V2024_11_05, &messages[9]);
    assert_eq!(sum.content[0].as_text(), Some("3375468"));
    assert_eq!(sum.extra["metadata"]["executionTime"], json!(12.3));
}

/// The note calls `capabilities` and `clientInfo` optional; both are required in all revisions that
/// have `initialize`.
#[test]
fn note_002_omits_required_members() {
    let rejected = |text: &str| {
        request::<Initialize>(&format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{text}}}"#
        ))
        .unwrap_err()
    };
    let text = r#"{"protocolVersion":"2024-11-05","capabilities":{}}"#;
    assert_eq!(rejected(text), "initialize: params.clientInfo is missing");
    let text = r#"{"protocolVersion":"2024-11-05","clientInfo":{"name":"Cline"}}"#;
    assert_eq!(rejected(text), "initialize: params.capabilities is missing");
}

/// All methods that the note lists exist. It calls `sampling/createMessage` a notification, but it
/// is a request to the client.
#[test]
fn note_002_lists_methods() {
    let Some(path) = path("seeds/002_2f5a6bbcf26e48d2.txt") else { return };
    let text = std::fs::read_to_string(path).unwrap();
    let names: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("- `")?.split_once("`:"))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names.len(), 23);
    for name in names {
        let row = find(name, V2024_11_05).unwrap_or_else(|| panic!("{name} is not a method"));
        let notifies = name.starts_with("notifications/");
        assert_eq!(row.kind == MethodKind::Notification, notifies, "{name}");
    }
}

#[test]
fn note_003_good_practice() {
    let Some(messages) = check(
        "003_329b3fe1a75ec2fb",
        &[
            Other("a diagram"),
            Says(Some(1), request::<Initialize>),
            Says(Some(1), |text| response_in::<Initialize>(V2024_11_05, text)),
            Says(None, notification::<Initialized>),
            Other("the type of server capabilities, see `note_003_prints_a_type`"),
            Says(Some(2), request::<ListTools>),
            Says(Some(2), |text| response_in::<ListTools>(V2024_11_05, text)),
            Other("code that calls `tools/list`"),
            Says(None, notification::<ToolListChanged>),
            Other("code that handles the notification"),
            Other("code that mistakes capabilities for a list of tools"),
            Other("code that does not"),
            Other("code that mistakes the result of `initialize` for a list of tools"),
            Other("code that does not"),
            Other("code that mistakes `listChanged` for a tool"),
            Other("code for the whole handshake"),
        ],
    ) else {
        return;
    };
    // `tools` is a capability of servers. In a client it means nothing, and is kept in case the
    // message is passed on.
    let opening = params::<Initialize>(&messages[0]);
    assert_eq!(opening.capabilities.extra, *json!({ "tools": {} }).as_object().unwrap());
    let opened = answer::<Initialize>(V2024_11_05, &messages[1]);
    assert_eq!(opened.server_info.name, "coeiro-operator");
    assert_eq!(opened.capabilities.tools.unwrap().list_changed, Some(true));
    let tools = answer::<ListTools>(V2024_11_05, &messages[4]).tools;
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["operator_status", "operator_available"]);
}

/// Every member of the type in the note is a member of ours.
#[test]
fn note_003_prints_a_type() {
    let all = json!({
        "tools": { "listChanged": true },
        "prompts": { "listChanged": true },
        "resources": { "subscribe": true, "listChanged": true },
        "logging": {},
    });
    let capabilities: ServerCapabilities = serde_json::from_value(all.clone()).unwrap();
    assert!(capabilities.extra.is_empty());
    assert_eq!(serde_json::to_value(capabilities).unwrap(), all);
}

#[test]
fn note_004_an_analysis() {
    let Some(messages) = check(
        "004_ad30df5f46f563da",
        &[
            Other("the shape of a request, see `note_004_prints_shapes`"),
            Other("the shape of a response"),
            Other("the shape of a notification"),
            Other("types of the Python SDK"),
            Other("types of the specification"),
            Says(Some(1), request::<Initialize>),
            Says(Some(1), |text| response_in::<Initialize>(V2024_11_05, text)),
            Says(None, notification::<Initialized>),
            Other("a type of the Python SDK"),
            Other("what the author wishes it looked like"),
        ],
    ) else {
        return;
    };
    let opening = params::<Initialize>(&messages[0]);
    assert_eq!(opening.capabilities.roots.unwrap().list_changed, Some(true));
    assert!(opening.capabilities.sampling.is_some());
    let opened = answer::<Initialize>(V2024_11_05, &messages[1]);
    assert_eq!(opened.capabilities.resources.unwrap().subscribe, Some(true));
    assert!(opened.capabilities.logging.is_some());
    assert!(opened.instructions.unwrap().starts_with("Optional"));
}

/// The shapes in the note, and its statements about them: an id is a string or a number, a response
/// has a result or an error but not both, a notification has no id. Batches, which it expects to
/// disappear, have their own entry point.
#[test]
fn note_004_prints_shapes() {
    let parse = |text: &'static str| Message::parse(text.as_bytes());
    for (text, id) in [
        (r#"{"jsonrpc":"2.0","id":"1","method":"ping"}"#, Id::from("1")),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}"#, Id::from(1_i64)),
    ] {
        assert!(matches!(parse(text), Ok(Message::Request(request)) if request.id == id));
    }
    let text = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"a":1}}"#;
    assert!(matches!(parse(text), Ok(Message::Notification(_))));
    let text = r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m","data":[]}}"#;
    assert!(matches!(parse(text), Ok(Message::Response(Response { outcome: Err(_), .. }))));
    let both = r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}"#;
    assert_eq!(parse(both).unwrap_err().to_string(), "both a result and an error");
    assert!(parse(r#"{"jsonrpc":"2.0","id":1}"#).is_err());
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#;
    assert!(parse(batch).is_err());
    assert_eq!(parse_batch(batch.as_bytes(), 1).unwrap().len(), 1);
}
