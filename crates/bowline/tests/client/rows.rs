//! The client's rows of the project's table of faults: endless answers, endless lists, children
//! that will not go, a parent that is killed.
//!
//! `BOWLINE_FULL=1` runs them at full size. What is measured (memory, files) is measured in a
//! process of its own.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use bowline::Revision;
use bowline::client::{
    CallError, ClientBuilder, ClientLimits, ConnectError, OpenError, Phase, Preference, Restart,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::fixture::{
    Nasty, builder, held, is_alone, limits, open_files, path, peak, processes, scaled, soon, until,
};
use super::web::{Request, Web};
use super::wire::{Wire, text};

/// Sends the same bytes until the client has had enough. Says how many it took.
async fn endless(mut request: Request, piece: &[u8]) -> u64 {
    let mut sent = 0;
    let sending = async {
        while request.send(piece).await {
            sent += piece.len() as u64;
        }
    };
    soon("the end of an endless answer", sending).await;
    sent
}

/// Row 13: endless JSON, events, error bodies, and what would unpack to more.
#[test]
fn endless_answers_end_at_the_limit_and_take_no_memory() {
    if !is_alone("rows::endless_answers_end_at_the_limit_and_take_no_memory") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut web = Web::start().await;
        let client = web.modern(builder()).await;
        // Whatever is allocated once is allocated now.
        let warm = tokio::spawn(client.call_tool("t", json!({})).text());
        web.asked("tools/call").await.answer(text("warm")).await;
        soon("an answer", warm).await.unwrap().unwrap();
        let before = held();
        let lines = "data: x\n".repeat(8 << 10);
        let giant = "x".repeat(64 << 10);
        let gzip = "content-encoding: gzip\r\n";
        for (status, kind, headers, start, piece, expected) in [
            (200, "application/json", "", "{\"x\":\"", &giant, "ClientLimits::message_length"),
            (200, "text/event-stream", "", "data: ", &giant, "ClientLimits::message_length"),
            (200, "text/event-stream", "", "", &lines, "ClientLimits::message_length"),
            (200, "text/event-stream", "", "id: ", &giant, "ClientLimits::message_length"),
            (500, "text/plain", "", "", &giant, "HTTP 500"),
            (404, "application/json", "", "{\"x\":\"", &giant, "HTTP 404"),
            (200, "application/json", gzip, "", &giant, "compressed"),
        ] {
            let call = tokio::spawn(client.call_tool("t", json!({})).text());
            let mut answer = web.asked("tools/call").await.begin(status, kind, headers).await;
            answer.send(start.as_bytes()).await;
            let sent = endless(answer, piece.as_bytes()).await;
            let error = soon("an error", call).await.unwrap().unwrap_err();
            assert!(error.to_string().contains(expected), "{kind} {start:?}: {error}");
            // Beyond the limit only what was on its way already.
            assert!(sent <= 32 << 20, "{kind} {start:?}: {sent} bytes were taken");
            assert!(client.pending().is_empty());
        }
        // The first question may be answered without an end as well.
        let client = web.connecting(builder().preference(Preference::Modern));
        let probe = web.asked("server/discover").await;
        endless(probe.begin(200, "application/json", "").await, giant.as_bytes()).await;
        let error = soon("an error", client).await.unwrap().unwrap_err();
        assert!(matches!(error, OpenError::Connect { error: ConnectError::Unreachable(_), .. }));
        assert!(error.to_string().contains("a limit of this client"), "{error}");
        let growth = peak().saturating_sub(before);
        println!("figure: 13 | endless answers: memory grew by {} MiB | 48 MiB", growth >> 10);
        assert!(growth <= 48 << 10, "{growth} KiB more than before");
    });
}

/// Row 13, on a pipe: a line of a gibibyte.
#[test]
fn an_endless_line_takes_no_memory() {
    if !is_alone("rows::an_endless_line_takes_no_memory") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let nasty = Nasty::new();
        let client = nasty.connect("legacy").await;
        let before = held();
        let count = scaled(128_u64 << 20, 1 << 30);
        let call = client.call_tool("long", json!({ "count": count }));
        let error = soon("an error", call).await.unwrap_err();
        assert!(matches!(error, CallError::LimitExceeded { .. }), "{error}");
        let growth = peak().saturating_sub(before);
        println!("figure: 13 | an endless line: memory grew by {} MiB | 48 MiB", growth >> 10);
        assert!(growth <= 48 << 10, "{growth} KiB more than before");
        client.close().await;
        nasty.is_gone().await;
    });
}

/// A server on a wire that gives pages without an end.
async fn lists(limits: ClientLimits, page: impl Fn(u64) -> Value) -> CallError {
    let wire = Wire::new();
    let client = wire.connect(false, builder().limits(limits)).await;
    let serve = async {
        for number in 0.. {
            let question = wire.asked("tools/list").await;
            wire.answer(&question, page(number));
        }
    };
    let list = async {
        // Nobody waits for it all: the server never comes to an end.
        tokio::select! {
            listed = client.list_tools() => listed.unwrap_err(),
            () = serve => unreachable!(),
        }
    };
    let error = soon("the end of an endless list", list).await;
    client.close().await;
    error
}

/// Row 14: cursors that repeat, pages and items without an end.
#[tokio::test]
async fn endless_lists_end_at_the_limit() {
    let error = lists(limits(), |_| json!({ "tools": [], "nextCursor": "again" })).await;
    assert!(matches!(error, CallError::Malformed(_)), "{error}");
    assert!(error.to_string().contains("\"again\" repeats an earlier one"), "{error}");
    // In a circle.
    let circle = |number: u64| json!({ "tools": [], "nextCursor": (number % 7).to_string() });
    let error = lists(limits(), circle).await;
    assert!(error.to_string().contains("repeats an earlier one"), "{error}");
    // Ever new pages, with nothing in them.
    let most = scaled(1_000, 10_000);
    let empty = |number: u64| json!({ "tools": [], "nextCursor": number.to_string() });
    let error = lists(ClientLimits { list_pages: most, ..limits() }, empty).await;
    let expected = format!(
        "tools/list: the list has more than {most} pages, a limit of this client \
         (ClientLimits::list_pages)"
    );
    assert_eq!(error.to_string(), expected);
    // Ten million tools.
    let most = scaled(5_000, 100_000);
    let full = |number: u64| {
        let tools: Vec<Value> = (0..1000)
            .map(|it| {
                let name = format!("{number}-{it}");
                json!({ "name": name, "inputSchema": { "type": "object" } })
            })
            .collect();
        json!({ "tools": tools, "nextCursor": number.to_string() })
    };
    let error = lists(ClientLimits { list_items: most, ..limits() }, full).await;
    let expected = format!(
        "tools/list: the list has more than {most} items, a limit of this client \
         (ClientLimits::list_items)"
    );
    assert_eq!(error.to_string(), expected);
}

/// A list of a server of which everything is as large as a message may be.
async fn fat(manner: &str) -> Result<usize, String> {
    let nasty = Nasty::new();
    let manner = manner.to_owned() + scaled("", "-full");
    let limits = ClientLimits {
        list_bytes: scaled(6 << 20, 32 << 20),
        list_items: scaled(20_000, 100_000),
        queued_bytes: scaled(2 << 20, 8 << 20),
        ..limits()
    };
    let connecting = builder().limits(limits).on_sampling(|_| std::future::pending());
    let client = match nasty.try_connect(&manner, connecting).await {
        Ok(client) => client,
        Err(error) => return Err(error.to_string()),
    };
    let unread = client.notifications();
    let listed = soon("the end of a fat list", client.list_tools()).await;
    drop(unread);
    client.close().await;
    nasty.is_gone().await;
    listed.map(|tools| tools.len()).map_err(|error| error.to_string())
}

/// Fat pages for ever, fat notifications that nobody reads, fat requests that nobody answers, and a
/// fat greeting: the peak of a whole process that meets all of them.
#[test]
fn a_fat_server_takes_no_memory() {
    if !is_alone("rows::a_fat_server_takes_no_memory") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for (manner, expected) in [
        ("fat-text", Err("list_bytes")),
        ("fat-tools", Err("list_items")),
        ("fat-schema", Err("list_bytes")),
        ("fat-notes", Ok(1)),
        ("fat-asks", Ok(1)),
        ("fat-hello", Err("a limit of this client")),
    ] {
        let found = runtime.block_on(fat(manner));
        match expected {
            Ok(count) => assert_eq!(found, Ok(count), "{manner}"),
            Err(part) => assert!(found.as_ref().unwrap_err().contains(part), "{manner}: {found:?}"),
        }
        let peak = peak();
        assert!(peak < scaled(48, 128) << 10, "{manner}: {peak} KiB");
    }
    drop(runtime);
    let (peak, left) = (peak(), held());
    let (most, rest, allowed) = (peak >> 10, left >> 10, scaled(48, 128));
    println!("figure: 38 | a fat server: {most} MiB at its peak, {rest} left | {allowed}, 48 MiB");
    assert!(left < 48 << 10, "{left} KiB are left");
}

/// Row 14: progress that nobody asked for.
#[test]
fn notifications_for_nobody_take_no_memory() {
    if !is_alone("rows::notifications_for_nobody_take_no_memory") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let nasty = Nasty::new();
        let client = nasty.connect("legacy").await;
        let before = held();
        let count = scaled(100_000, 1_000_000);
        let call = client.call_tool("notify", json!({ "count": count })).text();
        assert_eq!(soon("an answer", call).await.unwrap(), "done");
        let growth = peak().saturating_sub(before);
        println!("figure: 14 | progress for nobody: memory grew by {} MiB | 16 MiB", growth >> 10);
        assert!(growth <= 16 << 10, "{growth} KiB more than before");
        client.close().await;
        nasty.is_gone().await;
    });
}

/// Row 18: a child that ignores everything, has descendants that do too, and floods.
#[tokio::test]
async fn nothing_is_alive_after_a_close() {
    let nasty = Nasty::new();
    // With the patience that clients have unless told otherwise: two seconds twice.
    let connecting = builder().limits(ClientLimits::default());
    let client = nasty.try_connect("deaf", connecting).await.unwrap();
    for _ in 0..3 {
        soon("a fork", client.call_tool("fork", json!({}))).await.unwrap();
    }
    until("three descendants", || nasty.processes().len() == 4).await;
    let flood = client.call_tool("stderr", json!({ "count": scaled(100_u64 << 10, 1 << 20) }));
    assert_eq!(soon("an answer", flood.text()).await.unwrap(), "done");
    let echo = client.call_tool("echo", json!({ "text": "unaffected" })).text();
    assert_eq!(soon("an answer", echo).await.unwrap(), "unaffected");
    soon("the end", client.close()).await;
    assert!(nasty.processes().is_empty());
    nasty.is_gone().await;
}

/// Row 18: a crash loop.
#[tokio::test]
async fn restarts_are_at_least_a_second_apart() {
    let nasty = Nasty::new();
    // Every process counts as stable, so that it goes on for ever, and at the shortest pauses.
    let restart = Restart::OnExit { attempts: 3, stable: Duration::ZERO };
    let client = nasty.try_connect("legacy", builder().restart(restart)).await.unwrap();
    let mut pauses = Vec::new();
    for _ in 0..scaled(3, 100) {
        let crashed = Instant::now();
        let error = soon("an end", client.call_tool("exit", json!({}))).await.unwrap_err();
        assert!(error.to_string().contains("exit status: 7"), "{error}");
        client.wait_for(Phase::Ready, Duration::from_secs(60)).await.unwrap();
        pauses.push(crashed.elapsed());
    }
    assert!(pauses.iter().all(|pause| *pause >= Duration::from_secs(1)), "{pauses:?}");
    client.close().await;
    nasty.is_gone().await;
}

/// Row 18: files.
#[test]
fn files_do_not_pile_up() {
    if !is_alone("rows::files_do_not_pile_up") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut before = None;
        for cycle in 0..scaled(20, 1000) {
            let nasty = Nasty::new();
            let client = nasty.connect("modern").await;
            let pid = client.call_tool("pid", json!({})).text();
            soon("an answer", pid).await.unwrap();
            match cycle % 3 {
                0 => client.close().await,
                1 => drop(client),
                _ => {
                    let _ = client.call_tool("exit", json!({})).await;
                    client.close().await;
                }
            }
            nasty.is_gone().await;
            // What is opened once, such as the pipe for signals, is open after the first cycles.
            if cycle == 5 {
                before = Some(open_files());
            }
        }
        let before = before.unwrap();
        until("the end of all files", || open_files() <= before).await;
    });
}

/// Row 19: a client that is killed takes its servers with it.
#[test]
fn a_killed_parent_takes_its_servers_with_it() {
    const MARK: &str = "BOWLINE_TEST_MARK";
    if let Ok(mark) = std::env::var(MARK) {
        return be_killed(&mark);
    }
    let mark = format!("killed-{}", std::process::id());
    let test = "rows::a_killed_parent_takes_its_servers_with_it";
    let mut parent = std::process::Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(MARK, &mark)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(parent.stderr.take().unwrap()).lines();
    let ready = lines.map_while(Result::ok).any(|line| line == "ready");
    let alive = processes(&mark).len();
    parent.kill().unwrap();
    parent.wait().unwrap();
    assert!(ready && alive == 2, "{alive} servers");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(until("the end of its servers", || processes(&mark).is_empty()));
}

/// The process that is killed: a client of two servers, one of which is at work.
fn be_killed(mark: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let command = |manner: &str| bowline::client::Command::new(path()).arg(manner).arg(mark);
        let nice = builder().connect(command("bowline")).await.unwrap();
        let _plain = builder().connect(command("legacy")).await.unwrap();
        let at_work = tokio::spawn(nice.call_tool("never", json!({})).into_future());
        until("a call", || !nice.pending().is_empty()).await;
        std::io::Write::write_all(&mut std::io::stderr(), b"ready\n").unwrap();
        let _ = at_work.await;
    });
}

/// A client whose name tells it from others.
fn named(number: usize) -> ClientBuilder {
    bowline::Client::builder(format!("client-{number}"), "1.0.0")
        .preference(Preference::Pin(Revision::LATEST))
        .limits(limits())
}

/// Row 23: a server that is restarted under many clients, and ends all streams now and then.
#[tokio::test]
async fn many_clients_come_back_each_once() {
    let count = scaled(50, 5000);
    let mut server = super::crowd::Crowd::start().await;
    let mut clients = Vec::new();
    for number in 0..count {
        let client = soon("a connection", named(number).connect(server.url())).await.unwrap();
        let wanted = bowline::client::Wanted::new().tools();
        let changes = soon("changes", client.changes(wanted)).await.unwrap();
        clients.push((client, changes));
    }
    // One may be between two streams, if it took long.
    until("all clients", || server.listening() == count).await;
    let begun = Instant::now();
    let before = server.attempts();
    for _ in 0..3 {
        server.stop().await;
        until("the end of all streams", || server.listening() == 0).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        server.start_again().await;
        until("the return of all", || server.listening() == count).await;
    }
    for _ in 0..scaled(2, 10) {
        server.end_streams();
        until("the return of all", || server.listening() == count).await;
    }
    // Nobody tries more often than once a second, and nobody twice at a time.
    let seconds = usize::try_from(begun.elapsed().as_secs()).unwrap() + 1;
    let attempts = server.attempts() - before;
    assert!(attempts <= count * seconds, "{attempts} attempts in {seconds} seconds");
    assert_eq!(server.doubles(), 0);
    // And every one of them hears of changes.
    for (_, changes) in &mut clients {
        let change = soon("a change", changes.next()).await.unwrap().unwrap();
        assert_eq!(change, bowline::client::Change::Tools);
    }
    for (client, changes) in clients {
        drop(changes);
        client.close().await;
    }
    until("the end of all streams", || server.listening() == 0).await;
}
