//! A server that does everything, a client that answers everything, and the ways to both.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::client::{Client, ClientBuilder, FormAnswer, Preference, Target, UrlAnswer};
use bowline::model::{CreateMessageParams, CreateMessageResult, LoggingLevel};
use bowline::{
    Context, Elicited, ErrorCode, ErrorObject, HandlerError, Registry, Resource, Revision,
    Revisions, Server, TaskMode, Tool, testing,
};
use bowline_gateway::bridge::{Bridge, ToolRules};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// A guard against hanging; nothing else depends on time.
pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(120), what).await.expect("it never happens")
}

/// How messages travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Stdio,
    Http,
    Sse,
}

/// One side of the bridge.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Side {
    pub(crate) way: Way,
    pub(crate) revision: Revision,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {:?}", self.revision, self.way)
    }
}

/// Everything that one side can be.
pub(crate) fn sides() -> Vec<Side> {
    let mut sides = Vec::new();
    for revision in Revision::ALL {
        sides.push(Side { way: Way::Stdio, revision });
        let way = if revision == Revision::V2024_11_05 { Way::Sse } else { Way::Http };
        sides.push(Side { way, revision });
    }
    sides
}

/// What is allowed and not usual: the first revision over the transport of the later ones, and a
/// later one over that of the first.
pub(crate) fn rare_sides() -> [Side; 2] {
    [
        Side { way: Way::Http, revision: Revision::V2024_11_05 },
        Side { way: Way::Sse, revision: Revision::V2025_11_25 },
    ]
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Any {}

#[derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
struct Who {
    name: String,
}

/// What handlers of the server tell the test.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) started: Notify,
    pub(crate) dropped: Notify,
    pub(crate) calls: AtomicUsize,
}

struct Running(Arc<Counts>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.dropped.notify_one();
    }
}

async fn sampled(context: &Context) -> Result<String, HandlerError> {
    Ok(context.sample(CreateMessageParams::default()).await?.model)
}

/// A server that does everything.
pub(crate) fn server(counts: &Arc<Counts>) -> Server {
    let (sleeping, counting) = (Arc::clone(counts), Arc::clone(counts));
    Server::new("far", "1.2.3")
        .instructions("Be kind.")
        .with(Tool::new("plain", move |_: Context, _: Any| {
            counting.calls.fetch_add(1, Ordering::SeqCst);
            async { "done" }
        }))
        .with(Tool::new("fail", |_: Context, _: Any| async {
            Err::<String, _>("it is broken".to_owned())
        }))
        .with(Tool::new("refuse", |_: Context, _: Any| async {
            let error = ErrorObject::new(ErrorCode(-31_999), "not today");
            Err::<String, _>(error.with_data(json!({ "until": "monday" }).into()))
        }))
        .with(Tool::new("report", |context: Context, _: Any| async move {
            context.log(LoggingLevel::Warning, "careful").await;
            for step in 1..=3 {
                context.progress(f64::from(step), 3.0, "counting");
            }
            "reported"
        }))
        .with(Tool::new("sleep", move |_: Context, _: Any| {
            let running = Running(Arc::clone(&sleeping));
            sleeping.started.notify_one();
            async move {
                let _running = running;
                std::future::pending::<String>().await
            }
        }))
        .with(asking())
        .with(Tool::new("must", || async { "done" }).task(TaskMode::Required))
        .with(
            Tool::new("may", |context: Context, _: Any| async move { sampled(&context).await })
                .task(TaskMode::Optional),
        )
        .with(Resource::text("note:a", "a", "A note."))
}

/// Tools that ask.
fn asking() -> Vec<Tool> {
    vec![
        Tool::new("form", |context: Context, _: Any| async move {
            Ok::<_, HandlerError>(match context.elicit::<Who>("Who?").await? {
                Elicited::Accepted(who) => who.name,
                _ => "nobody".to_owned(),
            })
        }),
        Tool::new("url", |context: Context, _: Any| async move {
            let seen = context.elicit_url("Look", "https://example.com/x").await?;
            Ok::<_, HandlerError>(seen.accepted().is_some().to_string())
        }),
        Tool::new("sample", |context: Context, _: Any| async move { sampled(&context).await }),
        Tool::new("roots", |context: Context, _: Any| async move {
            Ok::<_, HandlerError>(context.roots().await?[0].uri.clone())
        }),
        Tool::new("two", |context: Context, _: Any| async move {
            let (model, roots) = tokio::join!(sampled(&context), context.roots());
            Ok::<_, HandlerError>(format!("{} {}", model?, roots?[0].uri))
        }),
        Tool::new("rounds", |context: Context, _: Any| async move {
            let mut said = Vec::new();
            for _ in 0..3 {
                said.push(sampled(&context).await?);
            }
            Ok::<_, HandlerError>(said.join(" "))
        }),
    ]
}

/// A client that answers everything.
pub(crate) fn answering(revision: Revision) -> ClientBuilder {
    testing::builder(revision)
        .on_form(|_| async { Ok(FormAnswer::accept(&json!({ "name": "Ada" }))) })
        .on_url(|_| async { Ok(UrlAnswer::Accept) })
        .on_sampling(|_| async {
            let content = json!({ "type": "text", "text": "hi" });
            let result = json!({ "role": "assistant", "content": content, "model": "parrot" });
            Ok(serde_json::from_value::<CreateMessageResult>(result).unwrap())
        })
        .roots(["file:///home"])
}

/// Ends a task with the value that owns it.
pub(crate) struct Ends<T>(JoinHandle<T>);

impl<T> Ends<T> {
    async fn end(&mut self) {
        self.0.abort();
        // It has ended once this says that it was aborted.
        let _ = (&mut self.0).await;
    }
}

impl<T> Drop for Ends<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A socket on a port that stays ours, also while nothing serves there.
fn socket() -> std::net::TcpListener {
    let socket = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}

/// Serves over HTTP until the value is dropped.
fn over_http(server: Server, socket: &std::net::TcpListener) -> Ends<()> {
    let listener = TcpListener::from_std(socket.try_clone().unwrap()).unwrap();
    let serving = server.http().serve_until(listener, std::future::pending());
    Ends(tokio::spawn(async move { drop(serving.await) }))
}

fn url(way: Way, socket: &std::net::TcpListener) -> String {
    let address = socket.local_addr().unwrap();
    let path = if way == Way::Sse { "sse" } else { "mcp" };
    format!("http://{address}/{path}")
}

/// A client, a bridge, a server.
pub(crate) struct World {
    pub(crate) near: Side,
    pub(crate) far: Side,
    pub(crate) client: Client,
    pub(crate) counts: Arc<Counts>,
    /// The lists of the server.
    pub(crate) registry: Registry,
    upstream: Upstream,
    _bridge: Ends<()>,
}

/// What serves the server.
enum Upstream {
    /// A stream, which does not come back.
    Stream(Ends<()>),
    Socket(std::net::TcpListener, Ends<()>),
    Stopped,
}

impl World {
    pub(crate) async fn new(near: Side, far: Side) -> Self {
        let counts = Arc::new(Counts::default());
        let server = server(&counts).revisions(Revisions::only(far.revision));
        let registry = server.registry();
        let (upstream, target): (_, Arc<dyn Fn() -> Target + Send + Sync>) = match far.way {
            Way::Stdio => {
                let (ours, theirs) = tokio::io::duplex(64 << 10);
                let serving = tokio::spawn(async move { drop(server.serve(theirs).await) });
                let once = Mutex::new(Some(Target::stream(ours)));
                let target = Arc::new(move || once.lock().unwrap().take().expect("once"));
                (Upstream::Stream(Ends(serving)), target)
            }
            way => {
                let socket = socket();
                let (serving, at) = (over_http(server, &socket), url(way, &socket));
                (Upstream::Socket(socket, serving), Arc::new(move || at.as_str().into()))
            }
        };
        let preference = Preference::Pin(far.revision);
        let offer = Revisions::only(near.revision);
        let bridge =
            Bridge { target, preference, offer, ..bridge_to(Target::stream(tokio::io::empty())) };
        let client = answering(near.revision);
        let (client, bridge) = connect_as(client, near, bridge).await;
        Self { near, far, client, counts, registry, upstream, _bridge: bridge }
    }

    /// Stops the server, and starts it again at the same address. Returns whether that is possible.
    pub(crate) async fn restart(&mut self) -> bool {
        let socket = match std::mem::replace(&mut self.upstream, Upstream::Stopped) {
            Upstream::Stream(mut serving) => {
                serving.end().await;
                return false;
            }
            Upstream::Socket(socket, mut serving) => {
                serving.end().await;
                socket
            }
            Upstream::Stopped => return false,
        };
        let server = server(&self.counts).revisions(Revisions::only(self.far.revision));
        self.registry = server.registry();
        let serving = over_http(server, &socket);
        self.upstream = Upstream::Socket(socket, serving);
        true
    }
}

/// A bridge to this server, whatever it speaks.
pub(crate) fn bridge_to(target: Target) -> Bridge {
    let once = Mutex::new(Some(target));
    Bridge {
        target: Arc::new(move || once.lock().unwrap().take().expect("connected once")),
        client: Arc::new(|| Client::builder("bridge", "1").without_cache()),
        connections: 16,
        command: None,
        preference: Preference::Auto,
        offer: Revisions::ALL,
        tools: ToolRules::default(),
        roots: Vec::new(),
        longest: 1 << 20,
        connect_timeout: Duration::from_secs(120),
        term_grace: Duration::from_secs(120),
        report: Arc::new(|_: &str| {}),
    }
}

/// Connects a client through a bridge.
pub(crate) async fn connect_as(
    client: ClientBuilder,
    near: Side,
    bridge: Bridge,
) -> (Client, Ends<()>) {
    if near.way == Way::Stdio {
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        let serving = tokio::spawn(async move {
            let (reader, writer) = tokio::io::split(theirs);
            bridge.serve(reader, writer).await.unwrap();
        });
        let client = client.connect(Target::stream(ours));
        return (soon(client).await.unwrap(), Ends(serving));
    }
    let (server, _) = soon(bridge.server()).await.unwrap();
    let socket = socket();
    let serving = over_http(server, &socket);
    let client = client.connect(url(near.way, &socket));
    (soon(client).await.unwrap(), serving)
}
