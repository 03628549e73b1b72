//! A receiver of webhooks that verifies what it is sent, and fails on demand.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use ring::hmac;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};

/// 24 bytes.
pub(crate) const SECRET: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3";
const KEY: &[u8] = b"0123456789abcdef01234567";

/// What the receiver does with the next message.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Does {
    /// Answers with a status, without an echo.
    Answers(u16),
    /// Waits until it is let on.
    Hangs,
}

/// A message that was verified.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) id: String,
    pub(crate) subscription: String,
    pub(crate) body: Value,
}

pub(crate) struct Receiver {
    pub(crate) url: String,
    pub(crate) authority: String,
    shared: Arc<Shared>,
    messages: mpsc::UnboundedReceiver<Message>,
}

struct Shared {
    /// What it does with the next messages; without a plan, it takes them.
    plan: Mutex<VecDeque<Does>>,
    told: mpsc::UnboundedSender<Message>,
    gate: Semaphore,
}

impl Receiver {
    pub(crate) async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let authority = listener.local_addr().unwrap().to_string();
        let (told, messages) = mpsc::unbounded_channel();
        let gate = Semaphore::new(0);
        let shared = Arc::new(Shared { plan: Mutex::default(), told, gate });
        let app = axum::Router::new()
            .route("/hook", axum::routing::post(take))
            .with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { url: format!("http://{authority}/hook"), authority, shared, messages }
    }

    pub(crate) fn plan(&self, does: &[Does]) {
        self.shared.plan.lock().unwrap().extend(does);
    }

    pub(crate) async fn next(&mut self) -> Message {
        self.messages.recv().await.unwrap()
    }

    /// Lets one message on that hangs.
    pub(crate) fn let_on(&self) {
        self.shared.gate.add_permits(1);
    }

    /// The next message, which is a verification.
    pub(crate) async fn verification(&mut self) {
        let message = self.next().await;
        assert_eq!(message.body["type"], "verification", "{message:?}");
    }

    /// The number in the next message, which is an event.
    pub(crate) async fn number(&mut self) -> u64 {
        let message = self.next().await;
        message.body["data"]["number"].as_u64().unwrap_or_else(|| panic!("{message:?}"))
    }

    /// Whether no message has come that was not looked at.
    pub(crate) fn is_quiet(&mut self) -> bool {
        self.messages.is_empty()
    }
}

async fn take(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, String) {
    let header = |name: &str| headers[name].to_str().unwrap().to_owned();
    verify(
        &header("webhook-id"),
        &header("webhook-timestamp"),
        &header("webhook-signature"),
        &body,
    );
    let secret = bowline::events::WebhookSecret::parse(SECRET).unwrap();
    assert!(secret.verify(&headers, &body));
    assert_eq!(header("content-type"), "application/json");
    let body: Value = serde_json::from_slice(&body).unwrap();
    let echo = body.get("challenge").map(|it| serde_json::json!({ "challenge": it }).to_string());
    let (id, subscription) = (header("webhook-id"), header("x-mcp-subscription-id"));
    let does = shared.plan.lock().unwrap().pop_front();
    shared.told.send(Message { id, subscription, body }).unwrap();
    match does {
        Some(Does::Answers(status)) => (StatusCode::from_u16(status).unwrap(), String::new()),
        Some(Does::Hangs) => {
            shared.gate.acquire().await.unwrap().forget();
            (StatusCode::OK, String::new())
        }
        None => (StatusCode::OK, echo.unwrap_or_default()),
    }
}

/// By hand, as Standard Webhooks says. Whether the time is right is left to the secret's own check.
fn verify(id: &str, time: &str, signature: &str, body: &[u8]) {
    let key = hmac::Key::new(hmac::HMAC_SHA256, KEY);
    let signed = [id.as_bytes(), b".", time.as_bytes(), b".", body].concat();
    let tag = signature.strip_prefix("v1,").unwrap();
    let tag = bowline::base64::STANDARD.decode(tag).unwrap();
    hmac::verify(&key, &signed, &tag).unwrap();
}
