//! Dropping a call at every poll leaves no waiter and no half frame, and takes back what was sent.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use bowline::client::{CallError, Client, ClientLimits, Wanted};
use serde_json::{Value, json};

use super::fixture::{builder, limits, soon};
use super::wire::{Wire, text};

/// Counts how often it was woken.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Lets everything else run until it waits for something.
async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

/// Polls a future so often, with everything else running in between, and drops it. Says what
/// became of it.
async fn poll_and_drop<T>(work: impl Future<Output = T>, polls: usize) -> Option<T> {
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(wakes);
    let mut work = pin!(work);
    for _ in 0..polls {
        if let Poll::Ready(done) = work.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(done);
        }
        settle().await;
    }
    None
}

/// The messages that the client wrote since, which must be whole lines.
fn messages(bytes: &[u8]) -> Vec<Value> {
    assert!(bytes.is_empty() || bytes.ends_with(b"\n"), "half a frame is left");
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

/// Exactly those of the calls that were sent are taken back, each once and after it was sent.
fn all_taken_back(messages: &[Value], method: &str) -> usize {
    let sent: Vec<&Value> =
        messages.iter().filter(|it| it["method"] == method).map(|it| &it["id"]).collect();
    let taken_back: Vec<&Value> = messages
        .iter()
        .filter(|it| it["method"] == "notifications/cancelled")
        .map(|it| &it["params"]["requestId"])
        .collect();
    assert_eq!(sent, taken_back, "{messages:?}");
    sent.len()
}

/// How far the client may write when the call is made.
#[derive(Debug, Clone, Copy)]
enum Room {
    /// As far as it likes.
    Free,
    /// So many bytes, which is in the middle of the frame.
    Partial(usize),
    /// Nothing, and the outbox is full.
    Full,
}

async fn check(is_modern: bool, room: Room, polls: usize) {
    let wire = Wire::new();
    let connecting = builder().limits(ClientLimits { outbox: 256, ..limits() });
    let client = wire.connect(is_modern, connecting).await;
    let start = wire.written().len();
    let filler = match room {
        Room::Free => None,
        Room::Partial(bytes) => {
            wire.allow(Some(bytes));
            None
        }
        Room::Full => {
            wire.allow(Some(0));
            // The first is taken by the writer, the second fills the outbox.
            let long = json!({ "x": "x".repeat(300) });
            let call = |client: &Client| {
                let (client, long) = (client.clone(), long.clone());
                tokio::spawn(async move { client.call_json("filler", long).await })
            };
            let first = call(&client);
            settle().await;
            let second = call(&client);
            settle().await;
            Some((first, second))
        }
    };
    let call = client.call_tool("t", json!({})).into_future();
    let done = poll_and_drop(call, polls).await;
    assert!(done.is_none());
    let waiting: Vec<_> = client.pending().into_iter().map(|it| it.method).collect();
    assert!(!waiting.contains(&"tools/call".to_owned()), "{room:?} {polls}: {waiting:?}");
    wire.allow(None);
    settle().await;
    let said = messages(&wire.written()[start..]);
    let sent = all_taken_back(&said, "tools/call");
    let is_sent = polls > 0 && !matches!(room, Room::Full);
    assert_eq!(sent, usize::from(is_sent), "{room:?} after {polls} polls");
    // The stream is in good order: the next call works, and a late answer to the dropped one is
    // nobody's.
    if let Some(late) = said.iter().find(|it| it["method"] == "tools/call") {
        wire.answer(late, text("late"));
    }
    if let Some((first, second)) = filler {
        first.abort();
        second.abort();
    }
    settle().await;
    let next = tokio::spawn(client.call_tool("next", json!({})).text());
    settle().await;
    let all = messages(&wire.written()[start..]);
    let question = all.iter().rfind(|it| it["method"] == "tools/call").unwrap();
    assert_eq!(question["params"]["name"], "next");
    wire.answer(question, text("in order"));
    assert_eq!(soon("an answer", next).await.unwrap().unwrap(), "in order");
    assert!(client.pending().is_empty());
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_at_any_poll_leaves_nothing() {
    for is_modern in [false, true] {
        for polls in 0..5 {
            check(is_modern, Room::Free, polls).await;
            check(is_modern, Room::Full, polls).await;
            for bytes in [0, 1, 2, 17, 40, 100] {
                check(is_modern, Room::Partial(bytes), polls).await;
            }
        }
    }
}

/// Answers so many questions in the background.
fn serve(
    wire: &Wire,
    method: &'static str,
    count: u32,
    answer: impl Fn(u32) -> Value + Send + 'static,
) -> tokio::task::JoinHandle<()> {
    let wire = wire.clone();
    tokio::spawn(async move {
        for number in 0..count {
            let question = wire.asked(method).await;
            wire.answer(&question, answer(number));
        }
    })
}

/// A call that asks again while the server asks back: dropped between any two rounds.
#[tokio::test(start_paused = true)]
async fn a_call_of_many_rounds_dropped_at_any_poll_leaves_nothing() {
    for polls in 0..8 {
        let wire = Wire::new();
        let client = wire.connect(true, builder().roots(["file:///a"])).await;
        let start = wire.written().len();
        let server = serve(&wire, "tools/call", 3, |round| {
            json!({
                "resultType": "input_required", "requestState": format!("state {round}"),
                "inputRequests": { "r": { "method": "roots/list", "params": {} } },
            })
        });
        let call = client.call_tool("t", json!({})).into_future();
        assert!(poll_and_drop(call, polls).await.is_none(), "after {polls} polls");
        settle().await;
        assert!(client.pending().is_empty());
        server.abort();
        let said = messages(&wire.written()[start..]);
        let sent = said.iter().filter(|it| it["method"] == "tools/call").count();
        let taken_back = said.iter().filter(|it| it["method"] == "notifications/cancelled").count();
        // All but the last were answered.
        let is_open = polls > 3;
        assert_eq!((sent, taken_back), (polls.min(4), usize::from(is_open)), "{said:?}");
        client.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_not_taken_is_not_taken_back() {
    let wire = Wire::new();
    let client = wire.connect(false, builder()).await;
    let start = wire.written().len();
    {
        let mut call = pin!(client.call_tool("t", json!({})).into_future());
        let waker = Waker::from(Arc::new(Wakes::default()));
        assert!(call.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        let question = wire.asked("tools/call").await;
        wire.answer(&question, text("here"));
        settle().await;
        // Dropped with its answer in hand.
    }
    settle().await;
    let said = messages(&wire.written()[start..]);
    assert_eq!(said.len(), 1, "{said:?}");
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_dropped_between_pages_leaves_nothing() {
    for polls in 0..6 {
        let wire = Wire::new();
        let client = wire.connect(false, builder()).await;
        let start = wire.written().len();
        let page = |page: u32| json!({ "tools": [], "nextCursor": page.to_string() });
        let server = serve(&wire, "tools/list", 2, page);
        assert!(poll_and_drop(client.list_tools().into_future(), polls).await.is_none());
        settle().await;
        assert!(client.pending().is_empty());
        server.abort();
        let said = messages(&wire.written()[start..]);
        let cancelled = said.iter().filter(|it| it["method"] == "notifications/cancelled").count();
        assert_eq!(cancelled, usize::from(polls > 2), "{polls}: {said:?}");
        client.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn changes_dropped_at_any_poll_leave_nothing() {
    for polls in 0..4 {
        let wire = Wire::new();
        let client = wire.connect(true, builder()).await;
        let start = wire.written().len();
        let wanted = Wanted::all_lists();
        assert!(poll_and_drop(client.changes(wanted), polls).await.is_none());
        settle().await;
        assert!(client.pending().is_empty(), "after {polls} polls");
        let said = messages(&wire.written()[start..]);
        all_taken_back(&said, "subscriptions/listen");
        client.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn changes_that_are_never_acknowledged_are_an_error() {
    let wire = Wire::new();
    let client = wire.connect(true, builder()).await;
    let begun = tokio::time::Instant::now();
    // Longer than the patience that is looked at; the clock stands still otherwise.
    let changes = client.changes(Wanted::all_lists()).await;
    let Err(error) = changes else { panic!("nobody acknowledged") };
    assert!(matches!(error, CallError::TimedOut { .. }), "{error}");
    assert!(begun.elapsed() <= Duration::from_secs(61));
    settle().await;
    assert!(client.pending().is_empty());
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_read_makes_calls_time_out() {
    let wire = Wire::new();
    let connecting = builder().limits(ClientLimits { outbox: 16, ..limits() });
    let client = wire.connect(false, connecting).await;
    wire.allow(Some(0));
    for _ in 0..3 {
        let call = client.call_tool("t", json!({})).timeout(Duration::from_secs(5));
        let call = call.idle_timeout(Duration::from_secs(5));
        assert!(matches!(call.await, Err(CallError::TimedOut { .. })));
    }
    assert!(client.pending().is_empty());
    let begun = tokio::time::Instant::now();
    client.close().await;
    assert!(begun.elapsed() < Duration::from_secs(5));
}
