//! The spans of requests, as a subscriber of `tracing` sees them: names and fields by
//! OpenTelemetry's conventions for MCP.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use bowline::client::{Client, Preference, TraceContext};
use bowline::{Context, Server, Tool};
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::layer::{Context as Layered, SubscriberExt};
use tracing_subscriber::{Layer, Registry};

type Fields = BTreeMap<String, String>;

/// Keeps the fields of spans called `mcp.server`.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<BTreeMap<u64, Fields>>>);

struct Into<'a>(&'a mut Fields);

impl Visit for Into<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

impl Layer<Registry> for Kept {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, _: Layered<'_, Registry>) {
        if attributes.metadata().name() == "mcp.server" {
            let mut fields = Fields::new();
            attributes.record(&mut Into(&mut fields));
            self.0.lock().unwrap().insert(id.into_u64(), fields);
        }
    }

    fn on_record(&self, id: &Id, record: &Record<'_>, _: Layered<'_, Registry>) {
        if let Some(fields) = self.0.lock().unwrap().get_mut(&id.into_u64()) {
            record.record(&mut Into(fields));
        }
    }

    // Ids are used again: a span that has ended keeps its fields under a number of its own.
    fn on_close(&self, id: Id, _: Layered<'_, Registry>) {
        static ENDED: AtomicU64 = AtomicU64::new(1 << 63);
        let mut all = self.0.lock().unwrap();
        if let Some(fields) = all.remove(&id.into_u64()) {
            all.insert(ENDED.fetch_add(1, Ordering::Relaxed), fields);
        }
    }
}

impl Kept {
    fn find(&self, name: &str) -> Fields {
        let all = self.0.lock().unwrap();
        let named = |it: &&Fields| it.get("otel.name").is_some_and(|it| it == name);
        all.values().find(named).unwrap_or_else(|| panic!("{name}: {all:?}")).clone()
    }
}

/// What hears all spans of this process. With one subscriber for each test, `tracing` would keep
/// the opinion of a thread that has none.
fn kept() -> Kept {
    static KEPT: LazyLock<Kept> = LazyLock::new(|| {
        let kept = Kept::default();
        tracing::subscriber::set_global_default(Registry::default().with(kept.clone())).unwrap();
        kept
    });
    KEPT.clone()
}

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn server() -> Server {
    Server::new("seen", "1")
        .with(Tool::new("add", || async { "3" }))
        .with(Tool::new("fail", || async { Err::<String, _>("broken".to_owned()) }))
        .with(Tool::new("trace", |context: Context| async move {
            let own = context.traceparent().unwrap_or("none").to_owned();
            context.set_traceparent("00-other");
            format!("{own} {}", context.traceparent().unwrap_or("none"))
        }))
}

#[tokio::test]
async fn requests_have_spans_by_the_conventions() {
    let kept = kept();
    for (preference, revision) in
        [(Preference::Modern, "2026-07-28"), (Preference::Legacy, "2025-11-25")]
    {
        kept.0.lock().unwrap().clear();
        let context = || {
            Some(TraceContext { traceparent: TRACE.to_owned(), tracestate: None, baggage: None })
        };
        let client = Client::builder("c", "1").preference(preference).trace_context(context);
        let client = client.connect(server()).await.unwrap();
        client.call_tool("add", json!({})).text().await.unwrap();
        client.call_tool("fail", json!({})).await.unwrap();
        let traced = client.call_tool("trace", json!({})).text().await.unwrap();
        assert_eq!(traced, format!("{TRACE} 00-other"));
        client.call_tool("unknown", json!({})).await.unwrap_err();
        let add = kept.find("tools/call add");
        for (name, value) in [
            ("otel.kind", "server"),
            ("mcp.method.name", "tools/call"),
            ("mcp.protocol.version", revision),
            ("gen_ai.operation.name", "execute_tool"),
            ("gen_ai.tool.name", "add"),
            ("traceparent", TRACE),
        ] {
            assert_eq!(add.get(name).map(String::as_str), Some(value), "{name}: {add:?}");
        }
        assert!(add["jsonrpc.request.id"].parse::<u64>().is_ok(), "{add:?}");
        for absent in ["error.type", "otel.status_code", "mcp.session.id"] {
            assert!(!add.contains_key(absent), "{add:?}");
        }
        let fail = kept.find("tools/call fail");
        assert_eq!(
            (fail["error.type"].as_str(), fail["otel.status_code"].as_str()),
            ("tool_error", "ERROR")
        );
    }
}

#[cfg(feature = "http")]
#[tokio::test]
async fn the_header_counts_where_meta_has_none() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    kept();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(server().http().serve_on(listener));
    let other = TRACE.replace("00f067", "11f067");
    for (meta, expected) in
        [(String::new(), TRACE), (format!(r#","traceparent":"{other}""#), &other)]
    {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"trace","arguments":{{}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}},"io.modelcontextprotocol/clientInfo":{{"name":"c","version":"1"}}{meta}}}}}}}"#
        );
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
             Mcp-Method: tools/call\r\nMcp-Name: trace\r\ntraceparent: {TRACE}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.contains(&format!("{expected} 00-other")), "{answer}");
    }
}
