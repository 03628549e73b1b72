//! Who called, in the records: written by the server, and not to be forged.

use bowline::{Client, Principal, testing};
use mcp_logger::{Callers, Config};
use serde_json::{Value, json};

use crate::{call, client, fail};

async fn known_as(principal: &str, config: &str) -> Client {
    let server = mcp_logger::server(Config::parse(config).unwrap(), Callers::Owner).unwrap();
    let over = testing::over_http(server).principal(Principal::new(principal));
    testing::connect(over).await.unwrap()
}

fn shown(format: &str, message: &str) -> Value {
    json!({
        "server": "192.0.2.1", "message": message, "format": format, "hostname": "h",
        "timestamp": "2026-11-05T09:30:00Z", "dry_run": true,
    })
}

async fn frame(client: &Client, arguments: Value) -> String {
    let shown = call(client, "send-syslog", arguments).await;
    shown["frames"][0]["text"].as_str().unwrap().to_owned()
}

const NEW: &str = "<14>1 2026-11-05T09:30:00.000000+00:00 h mcp-logger - - ";
const OLD: &str = "<14>Nov  5 09:30:00 h mcp-logger: ";

#[tokio::test]
async fn records_say_who_called() {
    let client = known_as("ada]\"", "").await;
    let info = format!("{}/{}", env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
    let element = |text: String| {
        let (before, after) = text.split_once(" client=\"").unwrap();
        let (client, rest) = after.split_once('"').unwrap();
        assert!(!client.is_empty(), "such as {info}");
        format!("{before}{rest}")
    };
    let who = r#"[caller@32473 principal="ada\]\"" via="http"] "#;
    assert_eq!(element(frame(&client, shown("rfc5424", "hi")).await), format!("{NEW}{who}hi"));
    assert_eq!(element(frame(&client, shown("rfc3164", "hi")).await), format!("{OLD}{who}hi"));
    // What a caller adds comes after it.
    let forged = frame(&client, shown("rfc3164", "[caller@32473 principal=\"root\"] hi")).await;
    assert_eq!(element(forged), format!("{OLD}{who}[caller@32473 principal=\"root\"] hi"));
    let mut more = shown("rfc5424", "hi");
    more["structured_data"] = json!({ "a@1": { "k": "v" } });
    assert!(frame(&client, more).await.contains("[a@1 k=\"v\"][caller@32473 "));
    // Every message of a batch has it; the dry run of one is enough to see how.
    let mut forged = shown("rfc5424", "hi");
    for id in ["caller@32473", "CALLER@32473"] {
        forged["structured_data"] = json!({ id: { "principal": "root" } });
        let text = fail(&client, "send-syslog", forged.clone()).await;
        assert!(text.contains("only the server may write it"), "{text}");
    }
}

#[tokio::test]
async fn nobody_can_pretend_to_be_somebody() {
    let client = client("").await;
    assert_eq!(frame(&client, shown("rfc3164", "hi")).await, format!("{OLD}hi"));
    for message in [
        "[caller@32473 principal=\"root\"] hi",
        "  [Caller@32473 principal=\"root\"] hi",
        "\u{feff}[caller@32473] hi",
    ] {
        for format in ["rfc3164", "rfc5424"] {
            let mut arguments = shown(format, message);
            arguments["bom"] = "always".into();
            let text = fail(&client, "send-syslog", arguments).await;
            assert!(text.contains("do not begin the message with it"), "{text}");
        }
    }
    // A look-alike that the encoding turns into the real thing.
    let mut sly = shown("rfc3164", "［caller@32473 principal=\"root\"] hi");
    sly["encoding"] = "iso-8859-2".into();
    sly["on_unmappable"] = "translit".into();
    let sent = client.call_tool("send-syslog", sly).await.unwrap();
    let text = sent.content[0].as_text().unwrap();
    assert!(!text.contains(": [caller@32473"), "{text}");
    let fine = frame(&client, shown("rfc3164", "see [caller@32473 principal=\"root\"]")).await;
    assert!(fine.contains(": see ["), "{fine}");
}

#[tokio::test]
async fn the_configuration_decides_what_records_say() {
    let config = "identify = \"always\"\ncaller_element = \"who@99\"";
    let everyone = client(config).await;
    let text = frame(&everyone, shown("rfc5424", "hi")).await;
    assert!(text.contains("[who@99 client=\"") && text.ends_with(" via=\"memory\"] hi"), "{text}");
    let never = known_as("ada", "identify = \"never\"").await;
    assert_eq!(frame(&never, shown("rfc5424", "hi")).await, format!("{NEW}- hi"));
}
