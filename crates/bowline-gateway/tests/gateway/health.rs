//! B, C: servers that hang, end, come back, or say what callers must not hear.
//!
//! The clock stands still unless everything waits, so minutes pass at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bowline::client::{Client, FormAnswer, Preference};
use bowline::{ErrorCode, ErrorObject, Incoming, Next, Server, Tool};
use bowline_gateway::gateway::{Gateway, Health, ServerPlan};
use serde_json::json;

use crate::world::{connect, dead, names, plan, server, simple, start};

/// Waits, an hour at most, until something is the case.
async fn in_time(mut is_so: impl AsyncFnMut() -> bool) {
    for _ in 0..3600 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("it never happens");
}

async fn call(client: &Client, tool: &str) -> Result<String, String> {
    const HOURS: Duration = Duration::from_secs(10 * 3600);
    let called = client.call_tool(tool, json!({})).timeout(HOURS).idle_timeout(HOURS);
    called.text().await.map_err(|error| error.to_string())
}

fn starts(gateway: &Gateway) -> u64 {
    gateway.status().servers[0].starts
}

#[tokio::test(start_paused = true)]
async fn b_a_server_that_hangs_is_started_again_and_fails_calls_at_once() {
    let (hangs, made) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let (hanging, counted) = (Arc::clone(&hangs), Arc::clone(&made));
    let one = server("one", move || {
        // Only the first one ever hangs.
        let is_first = counted.fetch_add(1, Ordering::SeqCst) == 0;
        let hanging = Arc::clone(&hanging);
        let hang = move |incoming: Incoming, next: Next| {
            let hangs = is_first && hanging.load(Ordering::SeqCst);
            async move {
                match hangs {
                    true => std::future::pending().await,
                    false => next.run(incoming).await,
                }
            }
        };
        Ok(Server::new("one", "1").middleware(hang).with(Tool::new("a", || async { "a" })))
    });
    let (gateway, client) = connect(plan(vec![one])).await;
    assert_eq!(call(&client, "one__a").await.unwrap(), "a");
    hangs.store(true, Ordering::SeqCst);
    in_time(async || matches!(gateway.status().servers[0].health, Health::Down(_))).await;
    // It is still connected, and nothing waits for it.
    assert_eq!(starts(&gateway), 1);
    let told = loop {
        let told = call(&client, "one__a").await.unwrap_err();
        if told.contains("ping") {
            break told;
        }
    };
    assert!(told.contains("one: it does not answer a ping"), "{told}");
    assert_eq!(names_of(&client).await, ["one__a"]);
    in_time(async || call(&client, "one__a").await.is_ok()).await;
    assert_eq!((starts(&gateway), made.load(Ordering::SeqCst)), (2, 2));
}

async fn names_of(client: &Client) -> Vec<String> {
    let tools = client.list_tools().without_cache().await.unwrap();
    tools.into_iter().map(|it| it.name).collect()
}

/// A server that does not answer pings, with a call that takes 1,500 seconds.
fn deaf() -> ServerPlan {
    let mut one = server("one", || {
        // As one that does one thing at a time.
        let deaf = |incoming: Incoming, next: Next| async move {
            match &*incoming.method {
                "ping" => std::future::pending().await,
                _ => next.run(incoming).await,
            }
        };
        let long = Tool::new("long", || async {
            tokio::time::sleep(Duration::from_secs(1500)).await;
            "done"
        });
        let limits = bowline::Limits { deadline: Duration::from_secs(7200), ..Default::default() };
        Ok(Server::new("one", "1").limits(limits).middleware(deaf).with(long))
    });
    one.preference = Preference::Legacy;
    one
}

#[tokio::test(start_paused = true)]
async fn b_a_server_that_is_busy_with_one_long_call_is_left_alone() {
    let mut patient = plan(vec![deaf()]);
    patient.servers[0].timeout = Some(Duration::from_secs(1800));
    for is_reloaded in [false, true] {
        let first = if is_reloaded { plan(vec![deaf()]) } else { patient.clone() };
        let (gateway, client) = connect(first).await;
        gateway.reload(patient.clone()).await.unwrap();
        assert_eq!(call(&client, "one__long").await.unwrap(), "done");
        assert_eq!(starts(&gateway), 1);
        assert_eq!(gateway.status().servers[0].health, Health::Up);
    }
}

#[tokio::test(start_paused = true)]
async fn d_calls_may_take_as_long_as_the_limit_says() {
    let long = || {
        Tool::new("long", || async {
            tokio::time::sleep(Duration::from_secs(5000)).await;
            "done"
        })
    };
    let limits =
        || bowline::Limits { deadline: Duration::from_secs(9000), ..bowline::Limits::default() };
    let of = |key: &'static str| {
        server(key, move || Ok(Server::new(key, "1").limits(limits()).with(long())))
    };
    let mut plan = plan(vec![of("one"), of("two")]);
    plan.servers[0].timeout = Some(Duration::from_secs(6000));
    let (_gateway, client) = connect(plan).await;
    assert_eq!(call(&client, "one__long").await.unwrap(), "done");
    let told = call(&client, "two__long").await.unwrap_err();
    assert!(told.contains("no answer within 3600s"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn c29_lists_stay_for_the_grace_time_after_the_end_and_no_longer() {
    let works = Arc::new(AtomicBool::new(true));
    let known = Arc::clone(&works);
    let one = server("one", move || match known.load(Ordering::SeqCst) {
        true => Ok(Server::new("one", "1").with(Tool::new("a", || async { "a" }))),
        false => Err("it is broken".to_owned()),
    });
    let mut plan = plan(vec![one, simple("two", &["b"])]);
    plan.grace = Duration::from_secs(300);
    let (gateway, client) = connect(plan.clone()).await;
    // It was well for long, and then other settings do not work.
    tokio::time::sleep(Duration::from_secs(1000)).await;
    works.store(false, Ordering::SeqCst);
    plan.servers[0].fingerprint = "2".to_owned();
    gateway.reload(plan).await.unwrap();
    assert_eq!(names_of(&client).await, ["one__a", "two__b"]);
    let told = call(&client, "one__a").await.unwrap_err();
    assert!(told.contains("one: it is broken"), "{told}");
    tokio::time::sleep(Duration::from_secs(250)).await;
    assert_eq!(names_of(&client).await, ["one__a", "two__b"]);
    in_time(async || names_of(&client).await == ["two__b"]).await;
    works.store(true, Ordering::SeqCst);
    in_time(async || call(&client, "one__a").await == Ok("a".to_owned())).await;
}

/// A server whose lists change without a word, and that fails the next so many of them.
fn silent(failures: &Arc<AtomicUsize>) -> (ServerPlan, Registries) {
    let (keep, registries) = std::sync::mpsc::channel();
    let failures = Arc::clone(failures);
    let mut one = server("one", move || {
        let failures = Arc::clone(&failures);
        let silent = move |incoming: Incoming, next: Next| {
            let code = match &*incoming.method {
                "subscriptions/listen" => Some(ErrorCode::METHOD_NOT_FOUND),
                "tools/list" => {
                    let less = |it: usize| it.checked_sub(1);
                    let failed = failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
                    failed.ok().map(|_| ErrorCode::INTERNAL_ERROR)
                }
                _ => None,
            };
            async move {
                match code {
                    Some(code) => Err(ErrorObject::new(code, "not now").into()),
                    None => next.run(incoming).await,
                }
            }
        };
        let server = Server::new("one", "1").middleware(silent);
        let server = server.with(Tool::new("a", || async { "a" }));
        keep.send(server.registry()).unwrap();
        Ok(server)
    });
    one.preference = Preference::Modern;
    (one, registries)
}

type Registries = std::sync::mpsc::Receiver<bowline::Registry>;

#[tokio::test(start_paused = true)]
async fn c_lists_that_change_without_a_word_are_read_again_until_that_works() {
    let failures = Arc::new(AtomicUsize::new(0));
    let (one, registries) = silent(&failures);
    let (_gateway, client) = connect(plan(vec![one])).await;
    registries.recv().unwrap().add(Tool::new("b", || async { "b" })).unwrap();
    failures.store(3, Ordering::SeqCst);
    in_time(async || names_of(&client).await == ["one__a", "one__b"]).await;
    assert_eq!(failures.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn e26_a_server_whose_lists_never_rest_is_read_less_and_less_often() {
    let (lists, (keep, registries)) = (Arc::new(AtomicUsize::new(0)), std::sync::mpsc::channel());
    let counted = Arc::clone(&lists);
    let one = server("one", move || {
        let counted = Arc::clone(&counted);
        let count = move |incoming: Incoming, next: Next| {
            counted.fetch_add(usize::from(incoming.method == "tools/list"), Ordering::SeqCst);
            next.run(incoming)
        };
        let server = Server::new("one", "1").middleware(count);
        keep.send(server.registry()).unwrap();
        Ok(server.with(Tool::new("a", || async { "a" })))
    });
    let (_gateway, client) = connect(plan(vec![one])).await;
    let registry = registries.recv().unwrap();
    for at in 0..300 {
        registry.add(Tool::new(format!("t{at}"), || async { "" })).unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    in_time(async || names_of(&client).await.len() == 301).await;
    let lists = lists.load(Ordering::SeqCst);
    assert!(lists < 30, "{lists}");
}

#[tokio::test]
async fn the_one_caller_of_a_gateway_on_stdio_meets_one_process() {
    let made = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&made);
    let mut one = server("one", move || {
        counted.fetch_add(1, Ordering::SeqCst);
        let ask = Tool::new("ask", |context: bowline::Context, _: Empty| async move {
            context.confirm("Really?").await.map(|it| it.to_string()).map_err(|it| it.to_string())
        });
        Ok(Server::new("one", "1").with(ask))
    });
    one.preference = Preference::Legacy;
    let mut plan = plan(vec![one]);
    plan.has_one_caller = true;
    let (_gateway, server) = start(plan).await;
    let client = Client::builder("test", "1").preference(Preference::Modern).on_form(|_| {
        let agreed = serde_json::Map::from_iter([("confirm".to_owned(), json!(true))]);
        std::future::ready(Ok(FormAnswer::Accept(agreed)))
    });
    let client = client.connect(server).await.unwrap();
    assert_eq!(crate::world::call(&client, "one__ask").await.unwrap(), "true");
    let ask = || crate::world::call(&client, "one__ask");
    let (one, two, three) = tokio::join!(ask(), ask(), ask());
    for told in [one, two, three] {
        assert_eq!(told.unwrap(), "true");
    }
    assert_eq!(made.load(Ordering::SeqCst), 1);
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Empty {}

#[cfg(unix)]
#[tokio::test]
async fn g_callers_hear_neither_standard_error_nor_secrets() {
    use bowline::client::{Command, Target};
    use bowline_gateway::redact::Redactor;
    let mut ending = dead("ending");
    ending.target = Arc::new(|| {
        let script = "echo sekrit-4711 >&2; exit 3";
        Ok(Target::from(Command::new("sh").args(["-c", script])))
    });
    let mut unspawnable = dead("unspawnable");
    unspawnable.target =
        Arc::new(|| Ok(Target::from(Command::new("/nonexistent/program-hunter2"))));
    let mut plan = plan(vec![ending, unspawnable]);
    let secrets = ["sekrit-4711", "hunter2"].map(str::to_owned);
    plan.redactor = Arc::new(Redactor::new(secrets));
    let (gateway, client) = connect(plan).await;
    let is_down = |at: usize| matches!(gateway.status().servers[at].health, Health::Down(_));
    crate::world::until(async || is_down(0) && is_down(1)).await;
    let mut told = String::new();
    crate::world::until(async || {
        let listed = client.list_tools().without_cache().await;
        told = format!("{:?}", listed.unwrap_err());
        told.contains("exit status: 3") && told.contains("program-[redacted]")
    })
    .await;
    assert!(!told.contains("4711") && !told.contains("standard error"), "{told}");
    let status = serde_json::to_string(&gateway.status()).unwrap();
    assert!(status.contains("standard error: [redacted]"), "{status}");
    assert!(!status.contains("4711") && !status.contains("hunter2"), "{status}");
}

#[tokio::test]
async fn b20_a_program_that_cannot_be_spawned_ends_nothing_for_others() {
    use bowline::client::{Command, Target};
    let mut unspawnable = dead("unspawnable");
    unspawnable.target = Arc::new(|| Ok(Target::from(Command::new("/nonexistent/program"))));
    let (gateway, client) = connect(plan(vec![unspawnable, simple("one", &["a"])])).await;
    assert_eq!(names(&client).await, ["one__a"]);
    assert_eq!(crate::world::call(&client, "one__a").await.unwrap(), "one a");
    let is_down = || matches!(gateway.status().servers[0].health, Health::Down(_));
    crate::world::until(async || is_down()).await;
}
