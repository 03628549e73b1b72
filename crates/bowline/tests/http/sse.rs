//! HTTP+SSE of 2024-11-05.

use std::time::Duration;

use bowline::http::{Http, HttpLimits, HttpService};
use bowline::{Revision, Server, Tool};
use http::{Method, Request};
use serde_json::{Value, json};

use super::client::{Answer, Ask, Stream, initialize, open, request, send, soon};
use super::world::World;

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
