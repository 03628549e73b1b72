//! The server that the tests talk to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bowline::http::{Http, HttpService};
use bowline::model::LoggingLevel;
use bowline::{
    Context, Elicited, HandlerError, Limits, Principal, Registry, Resource, Server, Structured,
    Tool,
};
use serde_json::json;

use super::client::{call, send, until};

#[derive(serde::Deserialize, schemars::JsonSchema)]
pub(crate) struct Nothing {}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Say {
    text: String,
    /// How long to wait first.
    milliseconds: Option<u64>,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Point {
    x: i64,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Name {
    name: String,
}

/// What happened to handlers.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) started: AtomicUsize,
    pub(crate) finished: AtomicUsize,
    /// Handlers that were dropped before they were done.
    pub(crate) dropped: AtomicUsize,
    /// Whether the tool `held` may go on.
    is_released: AtomicBool,
}

impl Seen {
    pub(crate) fn counts(&self) -> [usize; 3] {
        [&self.started, &self.finished, &self.dropped].map(|count| count.load(Ordering::SeqCst))
    }

    /// Waits until the counts are these.
    pub(crate) async fn until(&self, expected: [usize; 3]) {
        let what = format!("{expected:?} handlers started, finished, dropped");
        until(&what, || self.counts() == expected).await;
    }

    /// Lets all handlers of the tool `held` end.
    pub(crate) fn release(&self) {
        self.is_released.store(true, Ordering::SeqCst);
    }
}

/// Counts a handler that is dropped before it is done.
pub(crate) struct Guard(Arc<Seen>);

impl Guard {
    pub(crate) fn new(seen: &Arc<Seen>) -> Self {
        seen.started.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(seen))
    }

    fn done(self) {
        self.0.finished.fetch_add(1, Ordering::SeqCst);
        self.0.dropped.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

pub(crate) struct World {
    pub(crate) service: HttpService,
    pub(crate) registry: Registry,
    pub(crate) seen: Arc<Seen>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(|http| http)
    }

    pub(crate) fn with(change: impl FnOnce(Http) -> Http) -> Self {
        let seen = Arc::new(Seen::default());
        let server = server(&seen);
        let registry = server.registry();
        let service = change(identified(server.http())).into_service().unwrap();
        Self { service, registry, seen }
    }

    /// Checks that a regular client is answered.
    pub(crate) async fn service_is_alive(&self) {
        let answer = send(&self.service, call("alive", "who")).await;
        assert_eq!((answer.status, answer.text().as_str()), (200, "nobody"));
    }
}

/// Trusts a header, for tests.
pub(crate) fn identified(http: Http) -> Http {
    http.identify(|parts| {
        let user = parts.headers.get("x-user")?.to_str().ok()?;
        Some(Principal::new(user))
    })
}

/// Longer than a test waits for anything: if the grace time runs out, it has failed.
pub(crate) const GRACE: Duration = Duration::from_secs(600);

pub(crate) fn server(seen: &Arc<Seen>) -> Server {
    let limits = Limits { grace: GRACE, memory_per_party: 64 << 20, ..Limits::default() };
    Server::new("world", "1.0.0")
        .limits(limits)
        .with(Tool::new("say", say).title("Say"))
        .with(Tool::new("point", || async { Structured(Point { x: 1 }) }))
        .with(Tool::new("who", |context: Context, _: Nothing| async move {
            context.caller().principal.as_ref().map_or("nobody", Principal::as_str).to_owned()
        }))
        .with(Tool::new("work", working(seen, Duration::from_millis(300))))
        .with(Tool::new("wait", working(seen, Duration::from_secs(3_600))))
        .with(Tool::new("held", held(seen)))
        .with(Tool::new("talk", talk(seen)))
        .with(Tool::new("chat", |context: Context, _: Nothing| async move {
            context.log(LoggingLevel::Info, "at once").await;
            "chatted"
        }))
        .with(Tool::new("name", |context: Context, _: Nothing| name(context)))
        .with(Tool::new("fails", || async { Err::<String, _>("no luck") }))
        .with(Tool::new("panics", || async {
            if true {
                panic!("secret");
            }
        }))
        .with(Tool::new("routed", say).input_schema(json!({
            "type": "object",
            "properties": { "text": { "type": "string", "x-mcp-header": "Text" } },
            "required": ["text"],
        })))
        .with(Resource::text("world://a", "a", "hello"))
}

async fn say(say: Say) -> String {
    if let Some(milliseconds) = say.milliseconds {
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
    }
    say.text
}

type Working = std::pin::Pin<Box<dyn Future<Output = String> + Send>>;

fn working(seen: &Arc<Seen>, time: Duration) -> impl Fn(Nothing) -> Working + Send + Sync + use<> {
    let seen = Arc::clone(seen);
    move |_: Nothing| {
        let seen = Arc::clone(&seen);
        Box::pin(async move {
            let guard = Guard::new(&seen);
            tokio::time::sleep(time).await;
            guard.done();
            "done".to_owned()
        })
    }
}

/// Works until the test releases it.
fn held(seen: &Arc<Seen>) -> impl Fn(Nothing) -> Working + Send + Sync + use<> {
    let seen = Arc::clone(seen);
    move |_: Nothing| {
        let seen = Arc::clone(&seen);
        Box::pin(async move {
            let guard = Guard::new(&seen);
            while !seen.is_released.load(Ordering::SeqCst) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            guard.done();
            "done".to_owned()
        })
    }
}

/// Sends a message, waits, sends another one, and returns.
fn talk(seen: &Arc<Seen>) -> impl Fn(Context, Nothing) -> Working + Send + Sync + use<> {
    let seen = Arc::clone(seen);
    move |context: Context, _: Nothing| {
        let seen = Arc::clone(&seen);
        Box::pin(async move {
            let guard = Guard::new(&seen);
            context.progress(1.0, 3.0, "one");
            context.log(LoggingLevel::Info, "two").await;
            tokio::time::sleep(Duration::from_millis(200)).await;
            context.progress(3.0, 3.0, "three");
            guard.done();
            "talked".to_owned()
        })
    }
}

async fn name(context: Context) -> Result<String, HandlerError> {
    match context.elicit::<Name>("Your name?").await? {
        Elicited::Accepted(name) => Ok(name.name),
        _ => Ok("nobody".to_owned()),
    }
}
