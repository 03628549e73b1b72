//! Two nodes of one server.

use std::time::Duration;

use bowline::http::HttpLimits;
use bowline::{Context, HandlerError, Principal, Resource, Server, TaskMode, Tool};
use bowline_fleet::{Fleet, FleetBuilder};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::http;
use crate::stores::{Postgres, Redis};

pub const NEWS: &str = "test://news";

/// A node, which ends with the test.
pub struct Node {
    pub port: u16,
    pub fleet: Fleet,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
}

impl Node {
    /// Tells it to stop.
    pub fn stop(&mut self) {
        drop(self.stop.take());
    }

    /// Stops it, and waits until it has.
    pub async fn end(mut self) {
        self.stop();
        tokio::time::timeout(http::PATIENCE, self.serving).await.unwrap().unwrap();
    }
}

/// A node before it starts.
pub struct Plan {
    builder: FleetBuilder,
    pub server: Server,
    pub drain: Duration,
    pub limits: HttpLimits,
    /// The address it listens on.
    pub host: &'static str,
}

impl Plan {
    pub fn new(builder: FleetBuilder, server: Server) -> Self {
        let limits = HttpLimits::default();
        Self { builder, server, drain: Duration::ZERO, limits, host: "127.0.0.1" }
    }

    /// A node with all the tools that tests use.
    pub fn usual(builder: FleetBuilder) -> Self {
        let touch = Tool::new("touch", |context: Context| async move {
            context.registry().resource_updated(NEWS);
            "touched"
        });
        let ask = Tool::new("ask", |context: Context| async move {
            let is_sure = context.confirm("Sure?").await?;
            Ok::<_, HandlerError>(format!("sure: {is_sure}"))
        });
        let wait = Tool::new("wait", || async {
            tokio::time::sleep(Duration::from_secs(3_600)).await;
            "late"
        });
        let news = Resource::new(NEWS, "news", || async { "news" });
        let wait = wait.task(TaskMode::Optional);
        Self::new(builder, Server::new("node", "1").with((touch, ask, wait, news)))
    }

    pub async fn start(self) -> Node {
        let fleet = self.builder.connect().await.unwrap();
        let listener = TcpListener::bind((self.host, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let http = self.server.fleet(fleet.clone()).http().drain(self.drain);
        let http = http.limits(self.limits);
        let http = http
            .identify(|parts| Some(Principal::new(parts.headers.get("x-user")?.to_str().ok()?)));
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(async move {
            let stopped = async move { drop(stopped.await) };
            http.serve_until(listener, stopped).await.unwrap();
        });
        Node { port, fleet, stop: Some(stop), serving }
    }
}

pub async fn node(postgres: &str, redis: Option<&str>) -> Node {
    let mut builder = Fleet::builder(postgres);
    if let Some(redis) = redis {
        builder = builder.redis(redis);
    }
    Plan::usual(builder).start().await
}

/// Two nodes that know each other.
pub async fn two(postgres: &Postgres, redis: Option<&str>) -> [Node; 2] {
    let database = postgres.database();
    let nodes = [node(&database, redis).await, node(&database, redis).await];
    for node in &nodes {
        eventually("the nodes know each other", async || {
            (node.fleet.metrics().others == 1).then_some(())
        })
        .await;
    }
    nodes
}

pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..2_400 {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{what}: not within 2 minutes");
}

pub async fn answer(response: Option<http::Response>) -> Value {
    serde_json::from_str(&response.unwrap().text().await.unwrap()).unwrap()
}

pub fn request(id: u64, method: &str, params: impl Into<Value>) -> Value {
    let params: Value = params.into();
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

pub async fn open(port: u16) -> String {
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} },
        "clientInfo": { "name": "test", "version": "1" } });
    let opened = http::legacy(port, "ada", None, request(0, "initialize", params)).await.unwrap();
    opened.session.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_known_and_cancelled_anywhere() {
    let postgres = Postgres::start();
    let [one, two] = two(&postgres, None).await;
    let call = json!({ "name": "wait" });
    let created = answer(http::modern(one.port, "ada", "tools/call", call).await).await;
    let id = created["result"]["taskId"].as_str().unwrap().to_owned();
    let task = || json!({ "taskId": id });
    let seen = answer(http::modern(two.port, "ada", "tasks/get", task()).await).await;
    assert_eq!(seen["result"]["status"], "working", "{seen}");
    let seen = answer(http::modern(two.port, "bob", "tasks/get", task()).await).await;
    assert!(seen["error"].is_object(), "{seen}");
    answer(http::modern(two.port, "ada", "tasks/cancel", task()).await).await;
    let seen = answer(http::modern(one.port, "ada", "tasks/get", task()).await).await;
    assert_eq!(seen["result"]["status"], "cancelled", "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_of_both_eras_are_answered_anywhere_while_keys_rotate() {
    let postgres = Postgres::start();
    let [one, two] = two(&postgres, None).await;
    // Modern: the state of the request is sealed by one node and opened by the other.
    let asked = answer(http::asking(one.port, "ada", json!({ "name": "ask" })).await).await;
    let state = asked["result"]["requestState"].as_str().unwrap().to_owned();
    let key = asked["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    two.fleet.rotate_keys().await.unwrap();
    let answers = json!({ key: { "action": "accept", "content": { "confirmed": true } } });
    let again = json!({ "name": "ask", "requestState": state, "inputResponses": answers });
    let done = answer(http::asking(two.port, "ada", again).await).await;
    assert!(done["result"]["content"][0]["text"].is_string(), "{done}");
    // Legacy: asked on one, answered on the other.
    let session = open(two.port).await;
    let call = request(7, "tools/call", json!({ "name": "ask" }));
    let mut asked = http::legacy(one.port, "ada", Some(&session), call).await.unwrap();
    let mut rest = String::new();
    let question = asked.event(&mut rest).await.unwrap();
    let content = json!({ "action": "accept", "content": { "confirmed": true } });
    let given = json!({ "jsonrpc": "2.0", "id": question["id"], "result": content });
    let accepted = http::legacy(two.port, "ada", Some(&session), given).await.unwrap();
    assert_eq!(accepted.status, 202);
    let done = asked.event(&mut rest).await.unwrap();
    assert_eq!(done["id"], 7, "{done}");
    assert_eq!(two.fleet.metrics().letters, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_the_same_everywhere_and_end_everywhere() {
    let postgres = Postgres::start();
    let [one, two] = two(&postgres, None).await;
    let session = open(one.port).await;
    let ping = async |port: u16, user: &str| {
        let ping = request(1, "ping", json!({}));
        http::legacy(port, user, Some(&session), ping).await.unwrap().status
    };
    for port in [one.port, two.port] {
        assert_eq!(ping(port, "ada").await, 200);
        assert_eq!(ping(port, "bob").await, 404, "a session belongs to whoever opened it");
    }
    // The stream on one node hears what was subscribed to on the other.
    let mut stream = http::listen(one.port, "ada", &session, None).await.unwrap();
    let first = String::from_utf8(stream.chunk().await.unwrap()).unwrap();
    let first = first.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned();
    let subscribe = request(2, "resources/subscribe", json!({ "uri": NEWS }));
    let subscribed = http::legacy(two.port, "ada", Some(&session), subscribe).await.unwrap();
    assert_eq!(subscribed.status, 200);
    let heard = tokio::spawn(async move {
        let mut rest = String::new();
        (stream.event(&mut rest).await, stream, rest)
    });
    eventually("the change is heard", async || {
        let call = json!({ "name": "touch" });
        http::modern(two.port, "ada", "tools/call", call).await?;
        heard.is_finished().then_some(())
    })
    .await;
    let (told, mut stream, mut rest) = heard.await.unwrap();
    assert_eq!(told.unwrap()["method"], "notifications/resources/updated");
    // Events are kept by the node of their stream, and any node passes them on.
    let mut resumed = http::listen(two.port, "ada", &session, Some(&first)).await.unwrap();
    assert_eq!(resumed.status, 200);
    let mut again = String::new();
    let told = resumed.event(&mut again).await.unwrap();
    assert_eq!(told["method"], "notifications/resources/updated");
    drop(resumed);
    let other = http::listen(two.port, "ada", &session, Some("1-1")).await.unwrap();
    assert_eq!(other.status, 400, "events of a node that is gone are refused");
    assert_eq!(http::delete(two.port, "ada", &session).await.unwrap().status, 204);
    for port in [one.port, two.port] {
        assert_eq!(ping(port, "ada").await, 404);
        assert_eq!(http::delete(port, "ada", &session).await.unwrap().status, 404);
    }
    // The stream ends, too.
    let ended = async { while stream.event(&mut rest).await.is_some() {} };
    tokio::time::timeout(http::PATIENCE, ended).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn without_redis_nothing_fails() {
    let (postgres, mut redis) = (Postgres::start(), Redis::start());
    let [one, two] = two(&postgres, Some(&redis.url())).await;
    for round in 0..2 {
        let filter = json!({ "notifications": { "resourceSubscriptions": [NEWS] } });
        let listening = http::modern(one.port, "ada", "subscriptions/listen", filter).await;
        let (mut stream, mut rest) = (listening.unwrap(), String::new());
        stream.event(&mut rest).await.unwrap();
        let call = json!({ "name": "touch" });
        let touched = http::modern(two.port, "ada", "tools/call", call).await.unwrap();
        assert_eq!(touched.status, 200);
        let told = tokio::time::timeout(http::PATIENCE, stream.event(&mut rest)).await;
        assert!(told.unwrap().is_some(), "round {round}");
        redis.kill();
    }
    assert!(two.fleet.metrics().redis_failures > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_its_store_is_not_ready_and_comes_back() {
    let mut postgres = Postgres::start();
    let [one, _two] = two(&postgres, None).await;
    assert_eq!(http::get(one.port, "/ready").await, Some(200));
    postgres.stop();
    eventually("not ready", async || {
        (http::get(one.port, "/ready").await == Some(503)).then_some(())
    })
    .await;
    assert_eq!(http::get(one.port, "/health").await, Some(200), "the process itself is well");
    postgres.run();
    eventually("ready", async || (http::get(one.port, "/ready").await == Some(200)).then_some(()))
        .await;
    // A node that cannot read the keys would go on sealing with one that is about to be removed.
    let rename = |from, to| format!("ALTER TABLE bowline.{from} RENAME TO {to}");
    postgres.sql("test0", &rename("keys", "gone")).unwrap();
    eventually("not ready", async || {
        (http::get(one.port, "/ready").await == Some(503)).then_some(())
    })
    .await;
    postgres.sql("test0", &rename("gone", "keys")).unwrap();
    eventually("ready", async || (http::get(one.port, "/ready").await == Some(200)).then_some(()))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_are_synchronous_whatever_the_database_does_by_default() {
    let postgres = Postgres::start_with(&[("synchronous_commit", "off".to_owned())]);
    let database = postgres.database();
    let _node = node(&database, None).await;
    let look = "CREATE TABLE seen (setting text);
        CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            INSERT INTO seen VALUES (current_setting('synchronous_commit'));
            RETURN NEW;
        END $$;
        CREATE TRIGGER look AFTER UPDATE ON bowline.nodes FOR EACH ROW EXECUTE FUNCTION look();";
    postgres.sql("test0", look).unwrap();
    let seen = eventually("a heartbeat", async || {
        let seen = postgres.sql("test0", "SELECT DISTINCT setting FROM seen").unwrap();
        (!seen.is_empty()).then_some(seen)
    })
    .await;
    assert_eq!(seen, "on");
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_of_strangers_are_refused() {
    let postgres = Postgres::start();
    let [one, _two] = two(&postgres, None).await;
    let head = format!("POST {} HTTP/1.1\r\n", bowline::fleet::PATH);
    for letter in ["", "{}", "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"] {
        assert_eq!(http::send(one.port, &head, letter).await.unwrap().status, 403);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_arrive_within_another_framework() {
    let postgres = Postgres::start();
    let fleet = Fleet::connect(&postgres.database()).await.unwrap();
    let service = Server::new("node", "1").fleet(fleet).http().into_service().unwrap();
    assert!(service.paths().contains(&bowline::fleet::PATH.to_owned()));
    for prefix in ["", "/api"] {
        let path = format!("{prefix}{}", bowline::fleet::PATH);
        let letter = ::http::Request::post(path).body(String::new()).unwrap();
        assert_eq!(service.handle(letter).await.status(), 403, "it is read, and has no seal");
    }
}
