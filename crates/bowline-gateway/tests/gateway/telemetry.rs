//! H: spans and metrics by OpenTelemetry's conventions, read back from a small OTLP receiver.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bowline::client::http::Endpoint;
use bowline::client::{Client, Preference, TraceContext};
use bowline::{Context, ErrorCode, ErrorObject, Server, Tool};
use bowline_gateway::gateway::{Audit, Destination, Plan, ServerPlan, Telemetry, serve_metrics};
use serde_json::{Value, json};

use super::web::{self, Site};
use super::world::{get, log, plan, records, serve, server, soon, start};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

/// A server that returns the trace context that it got.
fn far() -> ServerPlan {
    server("far", || {
        let trace = Tool::new("trace", |context: Context| async move {
            context.traceparent().unwrap_or("none").to_owned()
        });
        let fail = Tool::new("fail", || async { Err::<String, _>("broken".to_owned()) });
        Ok(Server::new("far", "1").with(trace).with(fail))
    })
}

async fn observed() -> (Site, Arc<Telemetry>, Plan) {
    let site = Site::start(|_| web::json(&json!({}))).await;
    let mut to = Destination::new(bowline_web::Url::parse(&site.url).unwrap());
    to.headers.push(("x-key".parse().unwrap(), "k".parse().unwrap()));
    let telemetry = Arc::new(Telemetry::start(to).unwrap());
    let plan = Plan { telemetry: Some(Arc::clone(&telemetry)), ..plan(vec![far()]) };
    (site, telemetry, plan)
}

/// Attributes as a map.
fn map(attributes: &Value) -> BTreeMap<String, String> {
    let of = |it: &Value| {
        let value = it["value"].as_object().unwrap().values().next().unwrap();
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        (it["key"].as_str().unwrap().to_owned(), text)
    };
    attributes.as_array().unwrap().iter().map(of).collect()
}

/// The spans and the metrics that have arrived.
async fn arrived(site: &Site, telemetry: &Telemetry) -> (Vec<Value>, Vec<Value>) {
    soon(telemetry.flush(Duration::from_secs(20))).await;
    let (mut spans, mut metrics) = (Vec::new(), Vec::new());
    for seen in site.taken() {
        assert_eq!(seen.method, "POST");
        assert_eq!(seen.header("content-type"), Some("application/json"));
        assert_eq!(seen.header("x-key"), Some("k"));
        let body: Value = serde_json::from_str(seen.text()).unwrap();
        let of = |kind: &str, scope: &str, what: &str| {
            let resource = map(&body[kind][0]["resource"]["attributes"]);
            assert_eq!(resource["service.name"], "bowline-gateway");
            body[kind][0][scope][0][what].as_array().unwrap().clone()
        };
        match seen.target.as_str() {
            "/v1/traces" => spans.extend(of("resourceSpans", "scopeSpans", "spans")),
            "/v1/metrics" => metrics = of("resourceMetrics", "scopeMetrics", "metrics"),
            other => panic!("{other}"),
        }
    }
    (spans, metrics)
}

fn span(spans: &[Value], name: &str, kind: u64) -> Value {
    let is_it = |it: &&Value| it["name"] == name && it["kind"] == kind;
    spans.iter().find(is_it).unwrap_or_else(|| panic!("{name} {kind}: {spans:?}")).clone()
}

async fn client(front: Server, preference: Preference) -> Client {
    let context = || {
        let traceparent = format!("00-{TRACE}-{SPAN}-01");
        Some(TraceContext { traceparent, tracestate: None, baggage: None })
    };
    let client = Client::builder("c", "1").preference(preference).trace_context(context);
    client.connect(front).await.unwrap()
}

#[tokio::test]
async fn h61_spans_of_the_gateway_stand_between_those_of_client_and_server() {
    for (preference, revision) in
        [(Preference::Modern, "2026-07-28"), (Preference::Legacy, "2025-11-25")]
    {
        let (site, telemetry, plan) = observed().await;
        let (_gateway, front) = start(plan).await;
        let client = client(front, preference).await;
        let got = soon(client.call_tool("far__trace", json!({})).text()).await.unwrap();
        soon(client.call_tool("far__fail", json!({}))).await.unwrap();
        soon(client.call_tool("nothing", json!({}))).await.unwrap_err();
        let (spans, _) = arrived(&site, &telemetry).await;
        let (outer, inner) =
            (span(&spans, "tools/call trace", 2), span(&spans, "tools/call trace", 3));
        assert_eq!((&outer["traceId"], &outer["parentSpanId"]), (&json!(TRACE), &json!(SPAN)));
        assert_eq!((&inner["traceId"], &inner["parentSpanId"]), (&json!(TRACE), &outer["spanId"]));
        assert_eq!(got, format!("00-{TRACE}-{}-01", inner["spanId"].as_str().unwrap()));
        let about = map(&outer["attributes"]);
        for (name, value) in [
            ("mcp.method.name", "tools/call"),
            ("mcp.protocol.version", revision),
            ("gen_ai.operation.name", "execute_tool"),
            ("gen_ai.tool.name", "trace"),
            ("bowline.server", "far"),
            ("bowline.decision", "allow"),
        ] {
            assert_eq!(about.get(name).map(String::as_str), Some(value), "{name}: {about:?}");
        }
        assert!(about.contains_key("jsonrpc.request.id"), "{about:?}");
        for absent in ["error.type", "rpc.response.status_code", "mcp.session.id"] {
            assert!(!about.contains_key(absent), "{absent}: {about:?}");
        }
        let about = map(&inner["attributes"]);
        assert_eq!(
            (about["gen_ai.tool.name"].as_str(), about["bowline.server"].as_str()),
            ("trace", "far")
        );
        assert_eq!(inner["status"], Value::Null);
        for kind in [2, 3] {
            let failed = span(&spans, "tools/call fail", kind);
            assert_eq!(map(&failed["attributes"])["error.type"], "tool_error");
            assert_eq!(failed["status"]["code"], 2);
        }
        // The caller's mistake is not an error of the server, and its words are not names.
        let unknown = span(&spans, "tools/call", 2);
        let about = map(&unknown["attributes"]);
        assert_eq!(about["rpc.response.status_code"], "-32602");
        assert!(
            !about.contains_key("gen_ai.tool.name") && unknown["status"].is_null(),
            "{unknown}"
        );
    }
}

#[tokio::test]
async fn h62_the_trace_of_the_http_headers_goes_on_when_meta_has_none() {
    let (site, telemetry, plan) = observed().await;
    let (gateway, front) = start(plan).await;
    let url = serve(&gateway, front).await;
    let target = Endpoint::new(&url).header("traceparent", &format!("00-{TRACE}-{SPAN}-01"));
    let client = Client::builder("c", "1").connect(target).await.unwrap();
    soon(client.call_tool("far__trace", json!({})).text()).await.unwrap();
    let (spans, _) = arrived(&site, &telemetry).await;
    let outer = span(&spans, "tools/call trace", 2);
    assert_eq!((&outer["traceId"], &outer["parentSpanId"]), (&json!(TRACE), &json!(SPAN)));
}

#[tokio::test]
async fn calls_that_time_out_have_spans_and_records_that_say_so() {
    let (site, telemetry, mut plan) = observed().await;
    let hang = || Tool::new("hang", || async { std::future::pending::<&str>().await });
    plan.servers.push(server("slow", move || Ok(Server::new("slow", "1").with(hang()))));
    plan.servers[1].timeout = Some(Duration::from_millis(50));
    let path = log("timeouts");
    plan.audit = Some(Arc::new(Audit::open(&path).unwrap()));
    let (gateway, front) = start(plan).await;
    let client = Client::connect(front).await.unwrap();
    let told = soon(client.call_tool("slow__hang", json!({}))).await.unwrap_err();
    assert!(format!("{told:?}").contains("no answer within 50ms"), "{told:?}");
    let (spans, _) = arrived(&site, &telemetry).await;
    for kind in [2, 3] {
        let span = span(&spans, "tools/call hang", kind);
        assert_eq!(map(&span["attributes"])["error.type"], "timeout");
    }
    let record = &records(&path)[1];
    assert_eq!(record["outcome"], "timed_out (-32603)");
    // The gateway has begun the trace.
    let outer = span(&spans, "tools/call hang", 2);
    let trace = record["trace"].as_str().unwrap();
    assert!(trace.contains(outer["traceId"].as_str().unwrap()), "{record}");
    let measured = "gen_ai_tool_name=\"hang\",bowline_server=\"slow\",error_type=\"timeout\"";
    let metrics = gateway.metrics();
    for side in ["client", "server"] {
        let is_it = |line: &str| line.contains(side) && line.contains(measured);
        assert!(metrics.lines().any(is_it), "{side}: {metrics}");
    }
}

#[tokio::test]
async fn codes_that_a_server_makes_up_are_one_label() {
    let codes = server("codes", || {
        let wrong = |incoming: bowline::Incoming, next: bowline::Next| async move {
            if incoming.method != "tools/call" {
                return next.run(incoming).await;
            }
            static CODE: AtomicI64 = AtomicI64::new(40_000);
            let code = ErrorCode(CODE.fetch_add(1, Ordering::SeqCst));
            Err(ErrorObject::new(code, "made up").into())
        };
        Ok(Server::new("codes", "1").with(Tool::new("a", || async { "a" })).middleware(wrong))
    });
    let (gateway, front) = start(plan(vec![codes])).await;
    let client = Client::connect(front).await.unwrap();
    for _ in 0..3 {
        soon(client.call_tool("codes__a", json!({}))).await.unwrap_err();
    }
    let metrics = gateway.metrics();
    assert!(metrics.contains("error_type=\"_OTHER\""), "{metrics}");
    assert!(!metrics.contains("error_type=\"4"), "{metrics}");
}

#[tokio::test]
async fn metrics_on_loopback_are_not_for_foreign_pages() {
    let (gateway, _front) = start(plan(vec![far()])).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(serve_metrics(listener, gateway));
    for (host, is_answered) in
        [("localhost", true), ("127.0.0.1:9464", true), ("evil.example", false)]
    {
        let told = get(&url, "/metrics", &format!("host: {host}\r\n")).await;
        assert_eq!(told.contains("bowline_gateway_server_up"), is_answered, "{host}: {told}");
    }
}

#[tokio::test]
async fn the_four_histograms_have_the_conventions_names_and_buckets() {
    let (site, telemetry, plan) = observed().await;
    let (gateway, front) = start(plan).await;
    let client = client(front, Preference::Legacy).await;
    soon(client.call_tool("far__trace", json!({})).text()).await.unwrap();
    drop(client);
    drop(gateway);
    let expected = [
        "mcp.client.operation.duration",
        "mcp.client.session.duration",
        "mcp.server.operation.duration",
        "mcp.server.session.duration",
    ];
    let metrics = soon(async {
        loop {
            let (_, metrics) = arrived(&site, &telemetry).await;
            if metrics.len() == expected.len() {
                return metrics;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    let metrics = metrics.await;
    let names: Vec<_> = metrics.iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, expected);
    for metric in &metrics {
        assert_eq!(metric["unit"], "s");
        assert_eq!(metric["histogram"]["aggregationTemporality"], 2);
        for point in metric["histogram"]["dataPoints"].as_array().unwrap() {
            let bounds = json!([
                0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0
            ]);
            assert_eq!(point["explicitBounds"], bounds);
            let counts = point["bucketCounts"].as_array().unwrap();
            let sum: u64 =
                counts.iter().map(|it| it.as_str().unwrap().parse::<u64>().unwrap()).sum();
            assert_eq!(
                (counts.len(), point["count"].as_str()),
                (15, Some(sum.to_string().as_str()))
            );
        }
    }
    let points = metrics[2]["histogram"]["dataPoints"].as_array().unwrap();
    let tool = points.iter().map(|it| map(&it["attributes"]));
    let tool =
        tool.into_iter().find(|it| it.get("gen_ai.tool.name").is_some_and(|it| it == "trace"));
    let tool = tool.unwrap();
    assert_eq!(tool["mcp.method.name"], "tools/call");
    assert!(!tool.contains_key("jsonrpc.request.id"), "{tool:?}");
}

#[tokio::test]
async fn a_receiver_that_fails_costs_spans_and_no_calls() {
    let site = Site::start(|_| web::status(400, "no")).await;
    let telemetry =
        Telemetry::start(Destination::new(bowline_web::Url::parse(&site.url).unwrap())).unwrap();
    let telemetry = Arc::new(telemetry);
    let told = Arc::new(std::sync::Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let plan = Plan {
        telemetry: Some(Arc::clone(&telemetry)),
        report: Arc::new(move |line: &str| heard.lock().unwrap().push(line.to_owned())),
        ..plan(vec![far()])
    };
    let (_gateway, front) = start(plan).await;
    let client = client(front, Preference::Auto).await;
    for _ in 0..20 {
        soon(client.call_tool("far__trace", json!({})).text()).await.unwrap();
    }
    soon(telemetry.flush(Duration::from_secs(20))).await;
    assert!(telemetry.dropped() >= 40, "{}", telemetry.dropped());
    let told = told.lock().unwrap().clone();
    let said = told.iter().filter(|it| it.contains("telemetry does not arrive at http://"));
    assert_eq!(said.count(), 1, "{told:?}");
}
