//! B, C, E: what one server does to the others, and what crosses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bowline::client::{Client, FormAnswer, Preference, Target};
use bowline::{Context, ServeError, Server, Tool};
use bowline_gateway::gateway::Health;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::world::{call, connect, dead, names, plan, serve, server, simple, soon, start, until};

#[tokio::test]
async fn c25_a_dead_server_among_good_ones_harms_nobody() {
    let servers = vec![simple("one", &["a"]), dead("two"), simple("three", &["b"])];
    let (gateway, client) = connect(plan(servers)).await;
    assert_eq!(names(&client).await, ["one__a", "three__b"]);
    assert_eq!(call(&client, "three__b").await.unwrap(), "three b");
    let status = gateway.status();
    assert_eq!(status.servers[1].health, Health::Down("it is broken".to_owned()));
    assert!(gateway.is_ready());
}

#[tokio::test]
async fn c28_no_list_is_an_error_that_names_the_causes_and_never_an_empty_success() {
    let (gateway, client) = connect(plan(vec![dead("one"), dead("two")])).await;
    let told = soon(client.list_tools().without_cache()).await.unwrap_err().to_string();
    let told = format!("{told} {:?}", client.list_tools().without_cache().await);
    assert!(told.contains("one: it is broken; two: it is broken"), "{told}");
    assert!(!gateway.is_ready());
}

#[tokio::test]
async fn c28_commands_say_nothing_about_prompts_and_resources() {
    let mut with_commands = plan(vec![dead("one")]);
    with_commands.commands = vec![crate::names::say()];
    let (gateway, client) = connect(with_commands.clone()).await;
    assert_eq!(names(&client).await, ["tools__say"]);
    let told = [
        format!("{:?}", soon(client.list_prompts().without_cache()).await.map(|_| ())),
        format!("{:?}", soon(client.list_resources().without_cache()).await.map(|_| ())),
        format!("{:?}", soon(client.list_resource_templates().without_cache()).await.map(|_| ())),
    ];
    for told in told {
        assert!(told.contains("one: it is broken"), "{told}");
    }
    // Nothing is missing where there is no server.
    with_commands.servers.clear();
    soon(gateway.reload(with_commands)).await.unwrap();
    assert!(soon(client.list_prompts().without_cache()).await.unwrap().is_empty());
}

#[tokio::test]
async fn c28_the_endpoint_of_a_dead_server_lists_an_error_too() {
    let (gateway, server) = start(plan(vec![simple("one", &["a"]), dead("two")])).await;
    let url = serve(&gateway, server).await;
    let list = async |key: &str| {
        let client = Client::connect(url.replace("/mcp", &format!("/servers/{key}/mcp")));
        soon(client.await.unwrap().list_tools().without_cache()).await
    };
    assert_eq!(list("one").await.unwrap().len(), 1);
    let told = format!("{:?}", list("two").await.unwrap_err());
    assert!(told.contains("two: it is broken"), "{told}");
}

#[tokio::test]
async fn servers_that_hang_keep_nobody_waiting() {
    let hanging = |key: String| {
        server(&key, || {
            let never = |_: bowline::Incoming, _: bowline::Next| std::future::pending();
            Ok(Server::new("hanging", "1").middleware(never))
        })
    };
    let mut servers: Vec<_> = (0..4).map(|at| hanging(format!("h{at}"))).collect();
    servers.push(simple("good", &["a"]));
    let mut slow = plan(servers);
    slow.start = Duration::from_secs(3600);
    let (gateway, client) = connect(slow).await;
    // Nobody knows yet what there is; then it is this.
    until(async || client.list_tools().without_cache().await.is_ok()).await;
    assert_eq!(names(&client).await, ["good__a"]);
    assert_eq!(gateway.status().servers[0].health, Health::Starting);
}

#[tokio::test]
async fn the_end_is_announced() {
    let (gateway, server) = start(plan(vec![simple("one", &["a"])])).await;
    let url = serve(&gateway, server).await;
    let own = Client::connect(url.replace("/mcp", "/servers/one/mcp")).await.unwrap();
    assert_eq!(names(&own).await, ["a"]);
    gateway.drain();
    let Some(bowline::http::Mounted::Json(status, _)) = gateway.mounted("/ready") else { panic!() };
    assert_eq!(status, 503);
    let told = format!("{:?}", call(&own, "a").await);
    assert!(told.contains("503") || told.contains("shutting down"), "{told}");
}

#[tokio::test]
async fn people_are_told_once() {
    let told = Arc::new(std::sync::Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let mut plan = plan(vec![simple("one", &["a"]), dead("two")]);
    plan.servers[0].alias = Some("a-very-long-alias-that-makes-names-of-tools-too-long".to_owned());
    plan.report = Arc::new(move |line: &str| heard.lock().unwrap().push(line.to_owned()));
    let (gateway, _client) = connect(plan.clone()).await;
    for _ in 0..3 {
        gateway.reload(plan.clone()).await.unwrap();
    }
    let lines = told.lock().unwrap().clone();
    let of = |what: &str| lines.iter().filter(|it| it.contains(what)).count();
    assert_eq!(of("one: is up"), 1, "{lines:?}");
    assert_eq!(of("two: is down: it is broken"), 1, "{lines:?}");
    assert_eq!(of("is longer than"), 1, "{lines:?}");
}

#[tokio::test]
async fn c29_a_server_that_recovers_comes_back_by_itself() {
    let works = Arc::new(AtomicBool::new(false));
    let known = Arc::clone(&works);
    let late = server("late", move || match known.load(Ordering::SeqCst) {
        true => Ok(Server::new("late", "1").with(Tool::new("a", || async { "a" }))),
        false => Err("not yet".to_owned()),
    });
    let (_gateway, client) = connect(plan(vec![simple("one", &["x"]), late])).await;
    assert_eq!(names(&client).await, ["one__x"]);
    works.store(true, Ordering::SeqCst);
    until(async || names(&client).await == ["one__x", "late__a"]).await;
}

/// A server over HTTP, at a socket that others cannot take when it ends.
fn far(socket: &std::net::TcpListener) -> JoinHandle<Result<(), ServeError>> {
    let listener = TcpListener::from_std(socket.try_clone().unwrap()).unwrap();
    let http = Server::new("far", "1").with(Tool::new("a", || async { "a" })).http();
    tokio::spawn(http.serve_until(listener, std::future::pending()))
}

#[tokio::test]
async fn a4_a_server_over_http_that_restarts_is_used_again() {
    for preference in [Preference::Legacy, Preference::Modern] {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let mut running = far(&socket);
        let url = format!("http://{}/mcp", socket.local_addr().unwrap());
        let mut far_away = dead("far");
        far_away.target = Arc::new(move || Ok(Target::from(url.as_str())));
        far_away.preference = preference;
        let (_gateway, client) = connect(plan(vec![far_away])).await;
        assert_eq!(call(&client, "far__a").await.unwrap(), "a");
        for _ in 0..2 {
            running.abort();
            assert!(running.await.unwrap_err().is_cancelled());
            running = far(&socket);
            // Its sessions are gone, and the next call is not.
            until(async || call(&client, "far__a").await == Ok("a".to_owned())).await;
            assert_eq!(names(&client).await, ["far__a"]);
        }
    }
}

#[tokio::test]
async fn b31_at_most_four_servers_start_at_once() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    struct Starting(Arc<AtomicUsize>);
    impl Drop for Starting {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let servers = (0..22).map(|at| {
        let (now, most) = (Arc::clone(&now), Arc::clone(&most));
        server(&format!("s{at}"), move || {
            let count = now.fetch_add(1, Ordering::SeqCst) + 1;
            most.fetch_max(count, Ordering::SeqCst);
            let starting = Arc::new(std::sync::Mutex::new(Some(Starting(Arc::clone(&now)))));
            // Listing is the last thing that a start does.
            let done = move |incoming: bowline::Incoming, next: bowline::Next| {
                let is_last = incoming.method == "tools/list";
                drop(is_last.then(|| starting.lock().unwrap().take()));
                next.run(incoming)
            };
            Ok(Server::new("s", "1").middleware(done).with(Tool::new("a", || async { "a" })))
        })
    });
    let (_gateway, client) = connect(plan(servers.collect())).await;
    until(async || names(&client).await.len() == 22).await;
    assert!(most.load(Ordering::SeqCst) <= 4, "{most:?}");
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Empty {}

fn agreed() -> FormAnswer {
    FormAnswer::Accept(serde_json::Map::from_iter([("confirm".to_owned(), json!(true))]))
}

fn asking() -> Server {
    Server::new("asking", "1")
        .with(Tool::new("ask", |context: Context, _: Empty| async move {
            match context.confirm("Really?").await {
                Ok(true) => Ok("agreed"),
                Ok(false) => Ok("declined"),
                Err(error) => Err(error.to_string()),
            }
        }))
        .with(Tool::new("report", |context: Context, _: Empty| async move {
            for step in 1..=3 {
                context.progress(f64::from(step), 3.0, "counting");
            }
            "reported"
        }))
}

#[tokio::test]
async fn e42_e44_questions_and_progress_cross() {
    let (_gateway, server) = start(plan(vec![server("far", || Ok(asking()))])).await;
    let client = Client::builder("test", "1").on_form(|_| async { Ok(agreed()) });
    let client = client.connect(server).await.unwrap();
    assert_eq!(call(&client, "far__ask").await.unwrap(), "agreed");
    let seen = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&seen);
    let reported = client.call_tool("far__report", json!({})).on_progress(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
    });
    assert_eq!(soon(reported.text()).await.unwrap(), "reported");
    assert_eq!(seen.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn e41_changes_of_lists_reach_clients_and_only_real_ones() {
    let far = Server::new("far", "1").with(Tool::new("a", || async { "a" }));
    let registry = far.registry();
    let once = std::sync::Mutex::new(Some(far));
    let far = server("far", move || once.lock().unwrap().take().ok_or_else(|| "gone".to_owned()));
    let (gateway, client) = connect(plan(vec![far.clone(), dead("dead")])).await;
    let mut changes = client.changes(bowline::client::Wanted::new().tools()).await.unwrap();
    registry.add(Tool::new("b", || async { "b" })).unwrap();
    soon(changes.next()).await.unwrap().unwrap();
    until(async || names(&client).await == ["far__a", "far__b"]).await;
    // A reload that changes nothing, and a server that stays dead, are not news.
    gateway.reload(plan(vec![far, dead("dead")])).await.unwrap();
    let quiet = tokio::time::timeout(Duration::from_millis(300), changes.next()).await;
    assert!(quiet.is_err(), "{quiet:?}");
}
