//! G: reloads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bowline::client::{Client, Preference};
use bowline::http::Mounted;
use bowline::{Server, Tool};

use crate::world::{call, connect, names, plan, serve, server, simple, soon, start};

#[tokio::test]
async fn g57_a_reload_under_load_fails_no_call_and_keeps_what_did_not_change() {
    let starts = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&starts);
    let kept = server("kept", move || {
        counted.fetch_add(1, Ordering::SeqCst);
        let slow = Tool::new("slow", || async {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
            "slow"
        });
        Ok(Server::new("kept", "1").with(slow))
    });
    let mut changing = simple("changing", &["a"]);
    let (gateway, client) = connect(plan(vec![kept.clone(), changing.clone()])).await;
    let (stop, calls) = (AtomicBool::new(false), AtomicUsize::new(0));
    let load = async {
        while !stop.load(Ordering::SeqCst) {
            let (slow, fast) =
                tokio::join!(call(&client, "kept__slow"), call(&client, "changing__a"));
            assert_eq!((slow.unwrap().as_str(), fast.unwrap().as_str()), ("slow", "changing a"));
            calls.fetch_add(2, Ordering::SeqCst);
        }
    };
    let reload = async {
        for at in 0..20 {
            let before = calls.load(Ordering::SeqCst);
            changing.fingerprint = format!("{at}");
            let extra = simple("extra", &["x"]);
            let mut servers = vec![kept.clone(), changing.clone()];
            servers.extend((at % 2 == 0).then_some(extra));
            soon(gateway.reload(plan(servers))).await.unwrap();
            // Calls cross every reload.
            while calls.load(Ordering::SeqCst) == before {
                tokio::task::yield_now().await;
            }
        }
        stop.store(true, Ordering::SeqCst);
    };
    tokio::join!(load, reload);
    assert_eq!(starts.load(Ordering::SeqCst), 1);
    assert_eq!(names(&client).await, ["kept__slow", "changing__a"]);
}

#[tokio::test]
async fn g56_sessions_at_the_endpoint_of_a_server_outlive_its_change() {
    let mut one = simple("one", &["a"]);
    let (gateway, server) = start(plan(vec![one.clone()])).await;
    let url = serve(&gateway, server).await.replace("/mcp", "/servers/one/mcp");
    let client = Client::builder("test", "1").preference(Preference::Legacy);
    let client = client.connect(url).await.unwrap();
    assert_eq!(call(&client, "a").await.unwrap(), "one a");
    let generation = client.watch().state().generation;
    one.fingerprint = "2".to_owned();
    soon(gateway.reload(plan(vec![one]))).await.unwrap();
    assert_eq!(call(&client, "a").await.unwrap(), "one a");
    assert_eq!(client.watch().state().generation, generation);
}

#[tokio::test]
async fn each_server_has_its_own_endpoint_with_its_own_names() {
    let (gateway, _client) =
        connect(plan(vec![simple("one", &["a"]), simple("two", &["b"])])).await;
    let Some(Mounted::Service(_)) = gateway.mounted("/servers/one/mcp") else { panic!() };
    assert!(gateway.mounted("/servers/three/mcp").is_none());
    let Some(Mounted::Json(status, _)) = gateway.mounted("/ready") else { panic!() };
    assert_eq!(status, 200);
    gateway.reload(plan(vec![simple("two", &["b"])])).await.unwrap();
    assert!(gateway.mounted("/servers/one/mcp").is_none());
}
