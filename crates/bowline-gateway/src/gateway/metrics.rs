//! Metrics in Prometheus' text format, by OpenTelemetry's names for MCP.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::time::Duration;

use super::Gateway;
use super::admin::PAUSE;
use super::upstream::lock;

/// The limits of the buckets in seconds: those of the conventions, and below them our own.
const BUCKETS: [f64; 17] = [
    0.0001, 0.0005, 0.002, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0,
    300.0,
];

/// How many different sets of labels are kept. Names come from servers, not from callers.
const MOST: usize = 10_000;

/// What a duration is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Labels {
    pub(super) method: String,
    /// The server's own name of a tool, if it is known.
    pub(super) tool: String,
    pub(super) server: String,
    pub(super) error: String,
    pub(super) transport: &'static str,
    pub(super) revision: &'static str,
}

#[derive(Default)]
struct Histogram {
    buckets: [u64; BUCKETS.len()],
    count: u64,
    sum: f64,
}

/// What a gateway counts.
#[derive(Default)]
pub(super) struct Metrics {
    durations: Mutex<BTreeMap<Labels, Histogram>>,
    counts: Mutex<BTreeMap<&'static str, u64>>,
}

impl Metrics {
    pub(super) fn observe(&self, labels: Labels, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let mut all = lock(&self.durations);
        if all.len() >= MOST && !all.contains_key(&labels) {
            return;
        }
        let histogram = all.entry(labels).or_default();
        histogram.count += 1;
        histogram.sum += seconds;
        if let Some(at) = BUCKETS.iter().position(|limit| seconds <= *limit) {
            histogram.buckets[at] += 1;
        }
    }

    pub(super) fn count(&self, what: &'static str) {
        *lock(&self.counts).entry(what).or_default() += 1;
    }

    /// Everything, with the state of servers.
    pub(super) fn text(&self, servers: &[(String, bool, u64)]) -> String {
        let mut text = String::new();
        let name = "mcp_server_operation_duration_seconds";
        let _ = writeln!(text, "# TYPE {name} histogram");
        for (labels, histogram) in lock(&self.durations).iter() {
            let labels = labels.text();
            let mut sum = 0;
            for (limit, count) in BUCKETS.iter().zip(histogram.buckets) {
                sum += count;
                let _ = writeln!(text, "{name}_bucket{{{labels},le=\"{limit}\"}} {sum}");
            }
            let Histogram { count, sum, .. } = histogram;
            let _ = writeln!(text, "{name}_bucket{{{labels},le=\"+Inf\"}} {count}");
            let _ = writeln!(text, "{name}_sum{{{labels}}} {sum}");
            let _ = writeln!(text, "{name}_count{{{labels}}} {count}");
        }
        for (what, count) in lock(&self.counts).iter() {
            let name = format!("bowline_gateway_{what}_total");
            let _ = writeln!(text, "# TYPE {name} counter\n{name} {count}");
        }
        for metric in ["up", "starts"] {
            let kind = if metric == "up" { "gauge" } else { "counter" };
            let name = format!("bowline_gateway_server_{metric}");
            let _ = writeln!(text, "# TYPE {name} {kind}");
            for (server, is_up, starts) in servers {
                let value = if metric == "up" { u64::from(*is_up) } else { *starts };
                let _ = writeln!(text, "{name}{{server=\"{}\"}} {value}", escaped(server));
            }
        }
        text
    }
}

impl Labels {
    fn text(&self) -> String {
        let pairs = [
            ("mcp_method_name", self.method.as_str()),
            ("gen_ai_tool_name", &self.tool),
            ("bowline_server", &self.server),
            ("error_type", &self.error),
            ("network_transport", self.transport),
            ("mcp_protocol_version", self.revision),
        ];
        let pairs = pairs.iter().filter(|(_, value)| !value.is_empty());
        let pairs: Vec<_> = pairs.map(|(name, it)| format!("{name}=\"{}\"", escaped(it))).collect();
        pairs.join(",")
    }
}

/// Serves the metrics for Prometheus on a socket, until the future is dropped.
pub async fn serve_metrics(listener: tokio::net::TcpListener, gateway: Gateway) {
    use hyper::service::service_fn;
    use tokio::io::AsyncWriteExt as _;
    loop {
        let Ok((mut stream, _)) = listener.accept().await else {
            // Too many open files: that passes.
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let gateway = gateway.clone();
        tokio::spawn(async move {
            let service = service_fn(|_| {
                let text = gateway.metrics();
                let kind = "text/plain; version=0.0.4";
                let response =
                    http::Response::builder().header(http::header::CONTENT_TYPE, kind).body(text);
                std::future::ready(response)
            });
            let io = hyper_util::rt::TokioIo::new(&mut stream);
            let mut builder = hyper::server::conn::http1::Builder::new();
            builder.timer(hyper_util::rt::TokioTimer::new());
            // A scraper that leaves is gone.
            let _ = builder.serve_connection(io, service).await;
            let _ = stream.shutdown().await;
        });
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
