//! A shop that reports what is paid, and its clients.

use std::time::Duration;

use bowline::client::http::Endpoint;
use bowline::client::{CallError, Client, Preference};
use bowline::events::{EventKind, EventLimits, Events};
use bowline::{Principal, Revision, Server};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::receiver::{Receiver, SECRET};

pub(crate) const ERAS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

#[derive(bowline::schemars::JsonSchema)]
#[schemars(crate = "bowline::schemars")]
#[expect(dead_code, reason = "only its schema counts")]
struct Wanted {
    /// Only this shop.
    shop: Option<String>,
}

/// Limits that make tests quick.
pub(crate) fn limits() -> EventLimits {
    EventLimits {
        first_pause: Duration::from_millis(1),
        longest_pause: Duration::from_millis(20),
        ..EventLimits::default()
    }
}

pub(crate) fn events(limits: EventLimits) -> Events {
    let paid = EventKind::new("paid", "An order was paid.").arguments::<Wanted>().filter(|event| {
        let shop = &event.arguments["shop"];
        let only = &event.data["only"];
        (shop.is_null() || *shop == event.data["shop"])
            && (only.is_null() || only.as_str() == event.principal)
    });
    Events::with_limits(limits).with(paid).with(EventKind::new("sent", "An order was sent."))
}

/// A server that runs, and its events.
pub(crate) struct Shop {
    pub(crate) events: Events,
    url: String,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
}

impl Shop {
    pub(crate) async fn open(events: Events) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let server = Server::new("shop", "1.0.0")
            .with(events.clone())
            .http()
            .identify(|parts| Some(Principal::new(parts.headers.get("x-user")?.to_str().ok()?)));
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(async move {
            let stopped = async { drop(stopped.await) };
            server.serve_until(listener, stopped).await.unwrap();
        });
        Self { events, url, stop: Some(stop), serving }
    }

    /// A client with a name, in a revision.
    pub(crate) async fn client(&self, user: Option<&str>, revision: Revision) -> Client {
        let mut endpoint = Endpoint::new(&self.url);
        if let Some(user) = user {
            endpoint = endpoint.header("x-user", user);
        }
        let builder = Client::builder("test", "1.0.0").preference(Preference::Pin(revision));
        builder.connect(endpoint).await.unwrap()
    }

    pub(crate) async fn ada(&self) -> Client {
        self.client(Some("ada"), Revision::V2026_07_28).await
    }

    pub(crate) fn pay(&self, number: u32) -> String {
        self.events.publish("paid", json!({ "number": number })).unwrap()
    }

    pub(crate) async fn close(mut self) {
        drop(self.stop.take());
        self.serving.await.unwrap();
    }
}

/// Asks for webhooks.
pub(crate) fn wish(receiver: &Receiver) -> Value {
    let delivery = json!({ "mode": "webhook", "url": receiver.url, "secret": SECRET });
    json!({ "name": "paid", "arguments": {}, "delivery": delivery })
}

pub(crate) async fn ask(client: &Client, method: &str, params: Value) -> Value {
    client.call_json(method, params).await.unwrap().to_value()
}

/// What a refusal says.
pub(crate) async fn refused(client: &Client, method: &str, params: Value) -> (i64, String) {
    match client.call_json(method, params).await {
        Err(CallError::Refused { error, .. }) => (error.code.0, error.message),
        other => panic!("{method} was not refused: {other:?}"),
    }
}
