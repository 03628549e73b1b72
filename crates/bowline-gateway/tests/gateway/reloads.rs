//! G: reloads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::client::{Client, Preference};
use bowline::http::Mounted;
use bowline::{ErrorObject, Incoming, Next, Server, Tool};
use bowline_gateway::gateway::{Gateway, Plan, ServerPlan};
use bowline_gateway::redact::Redactor;

use crate::world::{call, connect, names, plan, rule, serve, server, simple, soon, start, until};

#[tokio::test]
async fn g57_a_reload_under_load_fails_no_call_and_keeps_what_did_not_change() {
    let starts = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&starts);
    let kept = server("kept", move || {
        counted.fetch_add(1, Ordering::SeqCst);
        let slow = Tool::new("slow", || async {
            tokio::time::sleep(Duration::from_millis(2)).await;
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

fn hanging(key: &str) -> ServerPlan {
    server(key, || {
        let never = |_: Incoming, _: Next| std::future::pending();
        Ok(Server::new("hanging", "1").middleware(never))
    })
}

#[tokio::test]
async fn what_a_reload_revokes_is_revoked_before_its_servers_have_answered() {
    let allowing = |servers: Vec<ServerPlan>, what: &str| {
        let mut plan = plan(servers);
        plan.policy.rules = vec![rule("r", &[], &[what], &[])];
        plan.start = Duration::from_secs(3600);
        plan
    };
    let one = simple("one", &["a", "b"]);
    let (gateway, client) = connect(allowing(vec![one.clone()], "one/a")).await;
    assert_eq!(call(&client, "one__a").await.unwrap(), "one a");
    let next = allowing(vec![one, hanging("two")], "one/b");
    let reloading = gateway.clone();
    let reload = tokio::spawn(async move { reloading.reload(next).await.unwrap() });
    until(async || call(&client, "one__a").await.is_err()).await;
    // What it allows may be about what is not there yet.
    assert!(call(&client, "one__b").await.is_err());
    assert!(names(&client).await.is_empty() && !reload.is_finished());
    // Nothing has changed if it is given up.
    reload.abort();
    until(async || call(&client, "one__a").await.is_ok()).await;
    assert!(call(&client, "one__b").await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hung_before_keeps_no_reload_waiting() {
    let mut hangs = plan(vec![simple("one", &["a"]), hanging("two")]);
    hangs.start = Duration::from_secs(3600);
    let (gateway, _client) = connect(hangs.clone()).await;
    let started = tokio::time::Instant::now();
    gateway.reload(hangs).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}

/// A plan with a server that tells two secrets, of which this plan knows one; and what people hear.
fn telling(secret: &str) -> (Plan, Arc<Mutex<Vec<String>>>) {
    let one = server("one", || {
        let tell = |incoming: Incoming, next: Next| async move {
            match &*incoming.method {
                "tools/call" => Err(ErrorObject::internal("old-4711 and new-4712").into()),
                _ => next.run(incoming).await,
            }
        };
        Ok(Server::new("one", "1").middleware(tell).with(Tool::new("a", || async { "a" })))
    });
    let mut plan = plan(vec![one]);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&heard);
    plan.redactor = Arc::new(Redactor::new([secret.to_owned()]));
    plan.report = Arc::new(move |line: &str| told.lock().unwrap().push(line.to_owned()));
    (plan, heard)
}

#[tokio::test]
async fn a_secret_that_was_replaced_stays_hidden_while_it_is_in_use() {
    let (first, heard) = telling("old-4711");
    let (gateway, client) = connect(first).await;
    let (mut second, _) = telling("new-4712");
    second.servers.push(server("two", || Err("it has old-4711".to_owned())));
    soon(gateway.reload(second.clone())).await.unwrap();
    let told = call(&client, "one__a").await.unwrap_err();
    assert!(told.contains("[redacted] and [redacted]"), "{told}");
    let lines = heard.lock().unwrap().concat();
    assert!(lines.contains("two: is down: it has [redacted]"), "{lines}");
    // Then nobody has it any more.
    soon(gateway.reload(second)).await.unwrap();
    let told = call(&client, "one__a").await.unwrap_err();
    assert!(told.contains("old-4711 and [redacted]"), "{told}");
}

#[tokio::test]
async fn a_reload_that_fails_has_changed_nothing() {
    let (first, heard) = telling("old-4711");
    let serve = |server: Server, key: &str| {
        let twice = |server: Server| server.with(Tool::new("a", || async { "a" }));
        let is_bad = key == "bad";
        if is_bad {
            twice(twice(server)).http().into_service()
        } else {
            server.http().into_service()
        }
    };
    let (gateway, server) = soon(Gateway::start(first, Box::new(serve))).await.unwrap();
    let client = Client::connect(server).await.unwrap();
    let (mut second, unheard) = telling("new-4712");
    second.servers.push(simple("bad", &["a"]));
    second.policy.is_open = false;
    soon(gateway.reload(second)).await.unwrap_err();
    let told = call(&client, "one__a").await.unwrap_err();
    assert!(told.contains("[redacted] and"), "{told}");
    assert!(heard.lock().unwrap().concat().contains("one: is up"));
    assert!(unheard.lock().unwrap().is_empty());
    assert_eq!(names(&client).await, ["one__a"]);
}
