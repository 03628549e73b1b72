//! Metrics by OpenTelemetry's names for MCP: in Prometheus' text format, and for OTLP.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use bowline_proto::http::{Access, Fields};
use bowline_web::Host;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Gateway;
use super::admin::PAUSE;
use super::telemetry::{attribute, nanoseconds, wall_clock};
use super::upstream::lock;

/// The limits of the buckets in seconds: those of the conventions, and below them our own.
const BUCKETS: [f64; 17] = [
    0.0001, 0.0005, 0.002, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0,
    300.0,
];

/// How many of the buckets are our own.
const OWN: usize = 3;

/// How many different sets of labels are kept. Names come from servers, not from callers.
const MOST: usize = 10_000;

/// What took so long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timed {
    /// What went on to a server.
    ClientOperation,
    /// The connection to a server.
    ClientSession,
    /// A request of a client.
    ServerOperation,
    /// The session of a client.
    ServerSession,
}

impl Timed {
    const fn name(self) -> &'static str {
        match self {
            Self::ServerOperation => "mcp.server.operation.duration",
            Self::ClientOperation => "mcp.client.operation.duration",
            Self::ServerSession => "mcp.server.session.duration",
            Self::ClientSession => "mcp.client.session.duration",
        }
    }
}

/// What a duration is about. What is empty is unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
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
pub(super) struct Metrics {
    started: SystemTime,
    durations: Mutex<BTreeMap<(Timed, Labels), Histogram>>,
    counts: Mutex<BTreeMap<&'static str, u64>>,
}

impl Default for Metrics {
    fn default() -> Self {
        let started = wall_clock();
        Self { started, durations: Mutex::default(), counts: Mutex::default() }
    }
}

/// A session, measured when it is dropped.
pub(super) struct Session {
    metrics: Arc<Metrics>,
    about: Option<(Timed, Labels)>,
    started: Instant,
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some((timed, labels)) = self.about.take() {
            self.metrics.observe(timed, labels, self.started.elapsed());
        }
    }
}

impl Metrics {
    /// Begins to measure a session.
    pub(super) fn session(self: &Arc<Self>, timed: Timed, labels: Labels) -> Session {
        let (metrics, about) = (Arc::clone(self), Some((timed, labels)));
        Session { metrics, about, started: Instant::now() }
    }

    pub(super) fn observe(&self, timed: Timed, labels: Labels, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let mut all = lock(&self.durations);
        let about = (timed, labels);
        if all.len() >= MOST && !all.contains_key(&about) {
            return;
        }
        let histogram = all.entry(about).or_default();
        histogram.count += 1;
        histogram.sum += seconds;
        if let Some(at) = BUCKETS.iter().position(|limit| seconds <= *limit) {
            histogram.buckets[at] += 1;
        }
    }

    pub(super) fn count(&self, what: &'static str) {
        *lock(&self.counts).entry(what).or_default() += 1;
    }

    /// The durations as metrics of OTLP.
    pub(super) fn to_otlp(&self) -> Vec<Value> {
        let times = [self.started, wall_clock()].map(nanoseconds);
        let mut metrics: BTreeMap<Timed, Vec<Value>> = BTreeMap::new();
        for ((timed, labels), histogram) in lock(&self.durations).iter() {
            metrics.entry(*timed).or_default().push(histogram.to_otlp(labels, &times));
        }
        let metric = |(timed, points): (Timed, Vec<Value>)| {
            // Sums since the start.
            let histogram = json!({ "aggregationTemporality": 2, "dataPoints": points });
            json!({ "name": timed.name(), "unit": "s", "histogram": histogram })
        };
        metrics.into_iter().map(metric).collect()
    }

    /// Everything, with the state of servers.
    pub(super) fn text(&self, servers: &[(String, bool, u64)]) -> String {
        let mut text = String::new();
        let mut last = None;
        for ((timed, labels), histogram) in lock(&self.durations).iter() {
            let name = format!("{}_seconds", timed.name().replace('.', "_"));
            if last.replace(*timed) != Some(*timed) {
                let _ = writeln!(text, "# TYPE {name} histogram");
            }
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
    fn pairs(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let pairs = [
            ("mcp.method.name", self.method.as_str()),
            ("gen_ai.tool.name", &self.tool),
            ("bowline.server", &self.server),
            ("error.type", &self.error),
            ("network.transport", self.transport),
            ("mcp.protocol.version", self.revision),
        ];
        pairs.into_iter().filter(|(_, value)| !value.is_empty())
    }

    fn text(&self) -> String {
        let pair =
            |(name, it): (&str, &str)| format!("{}=\"{}\"", name.replace('.', "_"), escaped(it));
        self.pairs().map(pair).collect::<Vec<_>>().join(",")
    }
}

impl Histogram {
    /// A data point of OTLP, with the buckets of the conventions.
    fn to_otlp(&self, labels: &Labels, times: &[String; 2]) -> Value {
        let own: u64 = self.buckets[..=OWN].iter().sum();
        let beyond = self.count - self.buckets.iter().sum::<u64>();
        let counts = [own].into_iter().chain(self.buckets[OWN + 1..].iter().copied());
        let counts: Vec<_> = counts.chain([beyond]).map(|it| it.to_string()).collect();
        let [started, now] = times;
        json!({
            "attributes": labels.pairs().map(|(key, it)| attribute(key, it)).collect::<Vec<_>>(),
            "startTimeUnixNano": started,
            "timeUnixNano": now,
            "count": self.count.to_string(),
            "sum": self.sum,
            "bucketCounts": counts,
            "explicitBounds": BUCKETS[OWN..],
        })
    }
}

/// How many scrapers are served at a time, and how long each may take.
const SCRAPERS: usize = 16;
const SCRAPE: Duration = Duration::from_secs(30);

/// Serves the metrics for Prometheus on a socket, until the future is dropped. On loopback only
/// requests for a local name are answered: a foreign page cannot make one.
pub async fn serve_metrics(listener: tokio::net::TcpListener, gateway: Gateway) {
    let is_local = listener.local_addr().is_ok_and(|it| Host::Address(it.ip()).is_loopback());
    let access = if is_local { Access::new() } else { Access::new().with_any_host() };
    let access = Arc::new(access);
    let mut tasks = tokio::task::JoinSet::new();
    loop {
        while tasks.len() >= SCRAPERS {
            tasks.join_next().await;
        }
        let Ok((stream, _)) = listener.accept().await else {
            // Too many open files: that passes.
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        while tasks.try_join_next().is_some() {}
        let scraped = scraped(stream, gateway.clone(), Arc::clone(&access));
        tasks.spawn(tokio::time::timeout(SCRAPE, scraped));
    }
}

async fn scraped(mut stream: tokio::net::TcpStream, gateway: Gateway, access: Arc<Access>) {
    use hyper::service::service_fn;
    use tokio::io::AsyncWriteExt as _;
    let service = service_fn(|request: http::Request<hyper::body::Incoming>| {
        let authority = request.uri().authority().map(http::uri::Authority::as_str);
        let fields = Fields::read(request.headers());
        let (status, text) = match access.check(authority, &fields) {
            Ok(()) => (http::StatusCode::OK, gateway.metrics()),
            Err(denied) => (http::StatusCode::FORBIDDEN, format!("{denied}\n")),
        };
        let response = http::Response::builder().status(status);
        let response = response.header(http::header::CONTENT_TYPE, "text/plain; version=0.0.4");
        std::future::ready(response.body(text))
    });
    let io = hyper_util::rt::TokioIo::new(&mut stream);
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(hyper_util::rt::TokioTimer::new()).keep_alive(false);
    // A scraper that leaves is gone.
    let _ = builder.serve_connection(io, service).await;
    let _ = stream.shutdown().await;
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
