//! What a server names is not fetched: schemas that are elsewhere, icons, links.

use bowline::client::{Client, Preference, Target, Verdicts};
use bowline::{Revision, Server};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::net::TcpListener;

/// A server that names an address wherever there is room for one.
async fn serve(stream: DuplexStream, address: String) {
    let (reader, mut writer) = tokio::io::split(stream);
    let mut lines = BufReader::new(reader).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let request: Value = serde_json::from_str(&line).unwrap();
        let Some(id) = request.get("id") else { continue };
        let result = answer(request["method"].as_str().unwrap(), &address);
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
        writer.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
    }
}

fn answer(method: &str, address: &str) -> Value {
    let icons = json!([{"src": format!("{address}/icon.png")}]);
    let schema = json!({
        "$schema": format!("{address}/dialect"), "$id": format!("{address}/id"), "type": "object",
        "properties": {"a": {"$ref": format!("{address}/a.json#/b")}},
        "allOf": [{"$dynamicRef": format!("{address}/dynamic")}],
    });
    let plain = json!({"type": "object", "$ref": format!("{address}/plain.json")});
    match method {
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
            "serverInfo": {"name": "n", "version": "1", "icons": icons, "websiteUrl": address},
        }),
        "tools/list" => json!({"tools": [
            {"name": "odd", "inputSchema": schema, "outputSchema": schema, "icons": icons},
            {"name": "plain", "inputSchema": plain, "outputSchema": plain, "icons": icons},
        ]}),
        "tools/call" => json!({
            "content": [{"type": "resource_link", "uri": address, "name": "x", "icons": icons}],
            "structuredContent": {"a": 1},
        }),
        "resources/list" => {
            json!({"resources": [{"uri": address, "name": "r", "icons": icons}]})
        }
        "prompts/list" => json!({"prompts": [{"name": "p", "icons": icons}]}),
        _ => json!({}),
    }
}

#[tokio::test]
async fn nothing_that_a_server_names_is_fetched() {
    let canary = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", canary.local_addr().unwrap());
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let server = tokio::spawn(serve(theirs, address));
    let client = Client::builder("client", "1.0.0")
        .preference(Preference::Pin(Revision::V2025_11_25))
        .verdicts(Verdicts::new())
        .connect(Target::stream(ours))
        .await
        .unwrap();
    assert_eq!(client.list_tools().await.unwrap().len(), 2);
    for tool in ["odd", "plain"] {
        // Whether the output can be checked without its schema is not the question here.
        let _ = client.call_tool(tool, json!({"a": 1})).await;
    }
    assert_eq!(client.list_resources().await.unwrap().len(), 1);
    assert_eq!(client.list_prompts().await.unwrap().len(), 1);
    client.close().await;
    server.await.unwrap();
    assert_nobody_came(canary);
}

/// A server with a schema that is elsewhere is not served, nor is the schema looked for.
#[tokio::test]
async fn a_server_does_not_fetch_its_own_schemas() {
    let canary = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", canary.local_addr().unwrap());
    let schema = json!({"type": "object", "properties": {"a": {"$ref": address}}});
    let tool = bowline::Tool::new("odd", || async { "?" }).input_schema(schema);
    let refused = Client::connect(Server::new("s", "1.0.0").with(tool)).await.unwrap_err();
    assert!(refused.to_string().contains("is not in this document"), "{refused}");
    assert_nobody_came(canary);
}

/// Asks the system, which has taken in whoever came.
fn assert_nobody_came(canary: TcpListener) {
    let outcome = canary.into_std().unwrap().accept();
    assert_eq!(outcome.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}
