//! Middleware: runs in order, around everything, and can reject requests.

use std::sync::{Arc, Mutex};

use bowline::{ErrorObject, Incoming, Next, Prompt, Resource, Revision, Server, Tool, testing};
use serde_json::json;

type Log = Arc<Mutex<Vec<String>>>;

fn server(log: &Log) -> Server {
    let mut server = Server::new("middleware", "1.0.0")
        .with(Tool::new("tool", || async { "called" }))
        .with(Tool::new("secret", || async { "secret" }))
        .with(Prompt::new("prompt", || async { "p" }))
        .with(Resource::text("it://x", "x", "x"));
    for name in ["outer", "inner"] {
        let log = Arc::clone(log);
        server = server.middleware(move |incoming: Incoming, next: Next| {
            let log = Arc::clone(&log);
            async move {
                let what = incoming.name.clone().unwrap_or_default();
                log.lock().unwrap().push(format!("{name} {} {what}", incoming.method));
                if name == "outer" && what == "secret" {
                    return Err(ErrorObject::invalid_request("not for you").into());
                }
                let outcome = next.run(incoming).await;
                log.lock().unwrap().push(format!("{name} done {}", outcome.is_ok()));
                outcome
            }
        });
    }
    server
}

#[tokio::test]
async fn it_runs_in_order_around_calls_and_lists() {
    for revision in [Revision::V2024_11_05, Revision::V2026_07_28] {
        let log = Log::default();
        let client = testing::connect_in(server(&log), revision).await.unwrap();
        log.lock().unwrap().clear();
        client.call_tool("tool", json!({})).text().await.unwrap();
        client.list_tools().await.unwrap();
        client.get_prompt("prompt", &[]).await.unwrap();
        client.read_resource("it://x").await.unwrap();
        let seen = std::mem::take(&mut *log.lock().unwrap());
        let around = |what: &str| {
            let done = ["inner done true".to_owned(), "outer done true".to_owned()];
            [format!("outer {what}"), format!("inner {what}")].into_iter().chain(done)
        };
        let calls =
            ["tools/call tool", "tools/list ", "prompts/get prompt", "resources/read it://x"];
        assert_eq!(seen, calls.into_iter().flat_map(around).collect::<Vec<_>>(), "{revision}");
    }
}

#[tokio::test]
async fn a_refusal_ends_the_request() {
    let log = Log::default();
    let client = testing::connect(server(&log)).await.unwrap();
    log.lock().unwrap().clear();
    let error = client.call_tool("secret", json!({})).await.unwrap_err().to_string();
    assert!(error.contains("not for you"), "{error}");
    assert_eq!(*log.lock().unwrap(), ["outer tools/call secret"]);
}

#[tokio::test]
async fn a_panic_in_it_is_an_error() {
    let server = server(&Log::default()).middleware(|incoming: Incoming, next: Next| async move {
        assert_ne!(incoming.method, "tools/list", "on purpose");
        next.run(incoming).await
    });
    let client = testing::connect(server).await.unwrap();
    let error = client.list_tools().await.unwrap_err().to_string();
    assert!(error.contains("-32603") && !error.contains("purpose"), "{error}");
    assert_eq!(client.call_tool("tool", json!({})).text().await.unwrap(), "called");
}
