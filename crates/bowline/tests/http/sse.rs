//! HTTP+SSE of 2024-11-05.

use std::time::Duration;

use bowline::http::{Http, HttpLimits, HttpService};
use bowline::{Limits, Revision, Server, Tool};
use http::{Method, Request};
use serde_json::{Value, json};

use super::client::{Answer, Ask, Stream, initialize, open, request, send, soon};
use super::world::{World, identified};

/// A client of 2024-11-05.
pub(crate) struct Sse {
    pub(crate) service: HttpService,
    pub(crate) stream: Stream,
    pub(crate) endpoint: String,
    user: String,
}

impl Sse {
    pub(crate) async fn open(service: &HttpService, user: &str) -> Self {
        let ask = Ask::new(Method::GET, "/sse").with("x-user", user);
        let mut stream = open(service, ask).await;
        assert_eq!(stream.status, 200);
        let first = stream.next().await.unwrap();
        assert_eq!(first.name.as_deref(), Some("endpoint"));
        let (service, user) = (service.clone(), user.to_owned());
        // A reference that is relative to `/sse`.
        let endpoint = format!("/{}", first.data);
        let mut client = Self { service, stream, endpoint, user };
        client.post(initialize("2024-11-05")).await;
        let answer = client.next().await;
        assert_eq!(answer["result"]["protocolVersion"], "2024-11-05");
        client.post(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        client
    }

    pub(crate) fn ask(&self, message: impl ToString) -> Ask {
        Ask::post(message).path(&self.endpoint).with("x-user", &self.user)
    }

    pub(crate) async fn post(&mut self, message: Value) -> Answer {
        let ask = self.ask(message);
        let answer = send(&self.service, ask).await;
        assert_eq!(answer.status, 202, "{}", answer.body);
        answer
    }

    pub(crate) async fn next(&mut self) -> Value {
        self.stream.next().await.unwrap().json()
    }

    pub(crate) async fn call(&mut self, id: i64, tool: &str, arguments: Value) -> Value {
        self.post(request(id, "tools/call", json!({ "name": tool, "arguments": arguments }))).await;
        loop {
            let message = self.next().await;
            if message["id"] == id {
                return message;
            }
        }
    }
}

#[tokio::test]
async fn the_first_revision_is_served_on_its_two_paths() {
    let world = World::new();
    let mut client = Sse::open(&world.service, "ann").await;
    assert_eq!(super::client::text(&client.call(1, "who", json!({})).await), "ann");
    world.registry.add(Tool::new("late", || async { "late" })).unwrap();
    assert_eq!(client.next().await["method"], "notifications/tools/list_changed");
    let endpoint = client.endpoint.clone();
    drop(client);
    let ask = Ask::post(request(1, "ping", json!({}))).path(&endpoint).with("x-user", "ann");
    assert_eq!(send(&world.service, ask).await.status, 404);
}

#[tokio::test]
async fn an_endpoint_does_not_exist_for_others() {
    let world = World::new();
    let client = Sse::open(&world.service, "ann").await;
    let call = request(1, "tools/call", json!({ "name": "wait" }));
    let stolen = send(&world.service, client.ask(&call).with("x-user", "bob")).await;
    let unknown = client.ask(&call).path("/messages?session=0");
    let unknown = send(&world.service, unknown).await;
    assert_eq!((stolen.status, &stolen.body), (404, &unknown.body));
    let nameless = send(&world.service, client.ask(&call).without("x-user")).await;
    assert_eq!((nameless.status, &nameless.body), (404, &unknown.body));
    assert_eq!(world.seen.counts(), [0, 0, 0]);
}

#[tokio::test]
async fn both_paths_are_gone_when_they_are_not_wanted() {
    let modern_only = Server::new("modern", "1.0.0").revisions(Revision::V2026_07_28.into());
    let modern_only = modern_only.http().into_service().unwrap();
    for service in [World::with(Http::without_sse).service, modern_only] {
        let stream = send(&service, Ask::new(Method::GET, "/sse")).await;
        let post = Ask::post(initialize("2024-11-05")).path("/messages?session=1");
        assert_eq!((stream.status, send(&service, post).await.status), (404, 404));
    }
}

/// A body that sends only a part of what it announces.
struct Half(Option<bytes::Bytes>);

impl http_body::Body for Half {
    type Data = bytes::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<bytes::Bytes>, Self::Error>>> {
        match self.0.take() {
            Some(bytes) => std::task::Poll::Ready(Some(Ok(http_body::Frame::data(bytes)))),
            None => std::task::Poll::Pending,
        }
    }
}

#[tokio::test]
async fn a_client_that_goes_away_while_it_sends_spoils_no_other_message() {
    let world = World::new();
    let mut client = Sse::open(&world.service, "ann").await;
    // Longer than the pipe, which is not read: it is dropped half written.
    let wide = "x".repeat(300_000);
    let echo = |id: i64| {
        let arguments = json!({ "text": wide });
        request(id, "tools/call", json!({ "name": "say", "arguments": arguments }))
    };
    let mut sent = 0;
    for id in 1..100 {
        let post = world.service.handle(client.ask(echo(id)).into_request());
        if tokio::time::timeout(Duration::from_millis(100), post).await.is_err() {
            break;
        }
        sent = id;
    }
    assert!(sent < 99, "the pipe never filled");
    let who = client.ask(request(500, "tools/call", json!({ "name": "who", "arguments": {} })));
    let answer = async {
        loop {
            let message = client.stream.next().await.unwrap().json();
            if message["id"] == 500 {
                return message;
            }
        }
    };
    let (posted, answer) = tokio::join!(send(&world.service, who), soon("the answer", answer));
    assert_eq!(posted.status, 202);
    assert_eq!(super::client::text(&answer), "ann");
}

#[tokio::test]
async fn a_body_that_never_ends_is_given_up() {
    let limits = HttpLimits { body_idle: Duration::from_millis(50), ..HttpLimits::default() };
    let world = World::with(|http| http.limits(limits));
    let client = Sse::open(&world.service, "ann").await;
    for ask in [client.ask(""), Ask::post("")] {
        let half = Half(Some(bytes::Bytes::from_static(b"{\"jsonrpc\"")));
        let (parts, _) = ask.into_request().into_parts();
        let response = soon("408", world.service.handle(Request::from_parts(parts, half))).await;
        assert_eq!(Stream::new(response).rest().await.status, 408);
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Wide {
    text: String,
}

/// A service that lets each party hold a mebibyte.
fn narrow(limits: HttpLimits) -> HttpService {
    let server = Server::new("narrow", "1.0.0")
        .limits(Limits { memory_per_party: 1 << 20, ..Limits::default() })
        .with(Tool::new("wait", |wide: Wide| async move {
            std::future::pending::<()>().await;
            wide.text
        }))
        .with(Tool::new("repeat", |wide: Wide| async move { wide.text.repeat(100) }));
    identified(server.http()).limits(limits).into_service().unwrap()
}

impl Sse {
    /// Returns once everything that was posted has been taken in.
    async fn settle(&mut self) {
        self.post(request(999, "ping", json!({}))).await;
        assert_eq!(self.next().await["id"], 999);
    }

    fn ask_tool(&self, id: i64, tool: &str, length: usize) -> Ask {
        let arguments = json!({ "text": "x".repeat(length) });
        self.ask(request(id, "tools/call", json!({ "name": tool, "arguments": arguments })))
    }
}

#[tokio::test]
async fn calls_that_wait_count_like_those_of_other_clients() {
    let service = narrow(HttpLimits { calls_per_party: 2, ..HttpLimits::default() });
    let mut client = Sse::open(&service, "ann").await;
    for id in 1..=2 {
        assert_eq!(send(&service, client.ask_tool(id, "wait", 1)).await.status, 202);
        client.settle().await;
    }
    let refused = client.call(3, "wait", json!({ "text": "" })).await;
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("this caller has 2 calls open"), "{message}");
    let mut other = Sse::open(&service, "bob").await;
    let answer = other.call(1, "repeat", json!({ "text": "x" })).await;
    assert_eq!(super::client::text(&answer).len(), 100);
    drop(client);
    let mut again = Sse::open(&service, "ann").await;
    let until_free = async {
        while again.call(1, "repeat", json!({ "text": "x" })).await["error"].is_object() {}
    };
    soon("a place", until_free).await;
}

#[tokio::test]
async fn arguments_of_calls_that_wait_are_held() {
    let service = narrow(HttpLimits::default());
    let mut client = Sse::open(&service, "ann").await;
    let mut taken = 0;
    let refused = loop {
        let answer = send(&service, client.ask_tool(taken + 1, "wait", 150_000)).await;
        if answer.status != 202 {
            break answer;
        }
        taken += 1;
        client.settle().await;
    };
    // Three quarters are for what is long.
    assert_eq!((taken, refused.status), (5, 503), "{}", refused.body);
    drop(client);
    let again = Sse::open(&service, "ann").await;
    let until_free = async {
        while send(&service, again.ask_tool(1, "wait", 150_000)).await.status != 202 {
            tokio::task::yield_now().await;
        }
    };
    soon("the memory", until_free).await;
}

#[tokio::test]
async fn a_stream_whose_answers_nobody_reads_is_closed() {
    let service = narrow(HttpLimits::default());
    let client = Sse::open(&service, "ann").await;
    let until_closed = async {
        loop {
            let answer = send(&service, client.ask_tool(1, "repeat", 6_000)).await;
            match answer.status {
                202 => tokio::task::yield_now().await,
                status => return status,
            }
        }
    };
    assert_eq!(soon("the end of the stream", until_closed).await, 404);
}

#[tokio::test]
async fn one_answer_arrives_however_long_it_is() {
    let service = narrow(HttpLimits::default());
    let mut client = Sse::open(&service, "ann").await;
    for id in 1..=3 {
        let answer = client.call(id, "repeat", json!({ "text": "x".repeat(15_000) })).await;
        assert_eq!(super::client::text(&answer).len(), 1_500_000);
    }
}
