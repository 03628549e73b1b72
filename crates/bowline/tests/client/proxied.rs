//! Proxies whose upstream server is a process or a site.

use std::sync::Arc;
use std::time::Duration;

use bowline::client::{Client, FormAnswer, Preference, Restart, Verdicts};
use bowline::model::LoggingLevel;
use bowline::{Context, Elicited, HandlerError, Proxy, Revision, Server, Tool};
use serde_json::{Value, json};
use tokio::sync::Barrier;

use super::fixture::{Nasty, builder, soon};
use super::world::serve;

#[tokio::test]
async fn a_server_that_is_started_again_is_used_again() {
    let nasty = Nasty::new();
    let restart = Restart::OnExit { attempts: 3, stable: Duration::from_secs(30) };
    let connecting = Proxy::connect_with(builder().restart(restart), nasty.command("legacy"));
    let proxy = soon("a connection", connecting).await.unwrap();
    let connection = proxy.client().clone();
    let front = Server::new("front", "1.0.0").nest("up", proxy);
    let client = Client::connect(front).await.unwrap();
    let echo = || client.call_tool("up_echo", json!({ "text": "hello" })).text();
    assert_eq!(soon("an echo", echo()).await.unwrap(), "hello");
    let _ = soon("an end", connection.call_tool("exit", json!({}))).await.unwrap_err();
    drop(connection);
    assert_eq!(soon("an echo", echo()).await.unwrap(), "hello");
    client.close().await;
    nasty.is_gone().await;
}

#[derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
struct Who {
    name: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Any {}

/// Asks, logs and reports when two calls are there.
fn meeting() -> Server {
    let barrier = Arc::new(Barrier::new(2));
    Server::new("meeting", "1.0.0").with(Tool::new("meet", move |context: Context, _: Any| {
        let barrier = Arc::clone(&barrier);
        async move {
            // In the modern era the handler runs twice.
            context.once("met", async { barrier.wait().await.is_leader() }).await;
            match context.elicit::<Who>("Who?").await? {
                Elicited::Accepted(who) => {
                    context.log(LoggingLevel::Warning, &who.name).await;
                    Ok::<_, HandlerError>(who.name)
                }
                _ => Ok("nobody".to_owned()),
            }
        }
    }))
}

/// Calls the tool through a front of its own; returns its result and what it logged.
async fn meet(proxy: &Proxy, revision: Revision, name: &'static str) -> (String, Vec<Value>) {
    let front = Server::new("front", "1.0.0").with(proxy.clone());
    let client = builder()
        .preference(Preference::Pin(revision))
        .on_form(move |_| async move { Ok(FormAnswer::accept(&json!({ "name": name }))) })
        .connect(front)
        .await
        .unwrap();
    client.set_log_level(Some(LoggingLevel::Info)).await.unwrap();
    let mut notifications = client.notifications();
    let met = client.call_tool("meet", json!({})).text().await.unwrap();
    let mut logged = Vec::new();
    while let Some(Ok(notification)) = notifications.try_next() {
        if &*notification.method == "notifications/message" {
            logged.push(notification.params.to_value()["data"].clone());
        }
    }
    (met, logged)
}

/// Over HTTP, a question belongs to the call in whose stream it arrives.
#[tokio::test]
async fn questions_over_http_go_to_their_own_callers() {
    let eras = [Revision::V2025_11_25, Revision::V2026_07_28];
    for (caller, upstream) in eras.into_iter().flat_map(|one| eras.map(|two| (one, two))) {
        let url = serve(meeting().http()).await;
        let pinned = builder().preference(Preference::Pin(upstream)).verdicts(Verdicts::new());
        let proxy = soon("a connection", Proxy::connect_with(pinned, url)).await.unwrap();
        let both = async { tokio::join!(meet(&proxy, caller, "Ada"), meet(&proxy, caller, "Eve")) };
        let ((ada, ada_log), (eve, eve_log)) = soon("a meeting", both).await;
        assert_eq!((ada.as_str(), eve.as_str()), ("Ada", "Eve"), "{caller} to {upstream}");
        assert_eq!(ada_log, ["Ada"], "{caller} to {upstream}");
        assert_eq!(eve_log, ["Eve"], "{caller} to {upstream}");
    }
}
