//! What a client keeps on a server: in its session, or under its principal.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bowline::http::HttpService;
use bowline::{Context, Limits, Revision, Server, Tool};
use serde_json::json;

use super::client::{Session, call, request, send};
use super::world::{Nothing, identified};

/// Counts its calls, and those that were dropped.
struct Calls(AtomicUsize, Arc<AtomicUsize>);

impl Drop for Calls {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

fn service(dropped: &Arc<AtomicUsize>) -> HttpService {
    let dropped = Arc::clone(dropped);
    let count = move |context: Context, _: Nothing| {
        let calls = context.session_state(|| Calls(AtomicUsize::new(0), Arc::clone(&dropped)));
        let count = calls.map(|calls| calls.0.fetch_add(1, Ordering::SeqCst) + 1);
        let id = context.session_id().unwrap_or("no session").to_owned();
        async move { format!("{} {id}", count.map_or_else(|| "none".to_owned(), |it| it.to_string())) }
    };
    let limits = Limits { principals: 2, ..Limits::default() };
    let server = Server::new("kept", "1.0.0").limits(limits).with(Tool::new("count", count));
    identified(server.http()).into_service().unwrap()
}

#[tokio::test]
async fn a_session_keeps_its_state() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let service = service(&dropped);
    let one = Session::open(&service, Revision::V2025_03_26).await;
    let two = Session::open_as(&service, Revision::V2025_11_25, Some("ada")).await;
    let count =
        async |session: &Session| send(&service, session.call(1, "count", json!({}))).await.text();
    assert_eq!(count(&one).await, format!("1 {}", one.id));
    assert_eq!(count(&two).await, format!("1 {}", two.id));
    let batch = json!([request(1, "tools/call", json!({ "name": "count" }))]);
    let batched = send(&service, one.post(batch)).await;
    assert!(batched.body.contains(&format!("2 {}", one.id)), "{}", batched.body);
    assert_eq!(count(&one).await, format!("3 {}", one.id));
    assert_eq!(send(&service, one.delete()).await.status, 204);
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
    assert_eq!(count(&two).await, format!("2 {}", two.id));
}

#[tokio::test]
async fn a_principal_keeps_its_state_without_a_session() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let service = service(&dropped);
    let count = async |user: Option<&str>| {
        let ask = match user {
            Some(user) => call(1, "count").with("x-user", user),
            None => call(1, "count"),
        };
        send(&service, ask).await.text()
    };
    assert_eq!(count(None).await, "none no session");
    assert_eq!(count(Some("ada")).await, "1 no session");
    assert_eq!(count(Some("bob")).await, "1 no session");
    assert_eq!(count(Some("ada")).await, "2 no session");
    assert_eq!(dropped.load(Ordering::SeqCst), 0);
    // There is room for two.
    assert_eq!(count(Some("eve")).await, "1 no session");
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
    assert_eq!(count(Some("ada")).await, "3 no session");
}
