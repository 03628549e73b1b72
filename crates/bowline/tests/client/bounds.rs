//! What a server can make the client read and keep is bounded in bytes, and the error says whose
//! limit it is.

use std::future::IntoFuture;

use bowline::client::{CallError, Change, ClientLimit, ClientLimits, Missed, Wanted};
use serde_json::{Value, json};

use super::fixture::{builder, limits, soon};
use super::web::Web;
use super::wire::{Wire, initialized, text};

const MIB: usize = 1 << 20;

/// Results of any size, if the client is told to take them.
#[tokio::test]
async fn large_results_are_possible_by_a_setting() {
    let giant = "x".repeat(20 * MIB);
    let roomy = ClientLimits { message_length: 64 * MIB, ..limits() };

    let wire = Wire::new();
    let client = wire.connect(false, builder().limits(roomy.clone())).await;
    let call = tokio::spawn(client.call_tool("t", json!({})).text());
    wire.answer(&wire.asked("tools/call").await, text(&giant));
    assert!(soon("an answer", call).await.unwrap().unwrap() == giant);
    client.close().await;

    let mut web = Web::start().await;
    let client = web.modern(builder().limits(roomy)).await;
    let call = tokio::spawn(client.call_tool("t", json!({})).text());
    web.asked("tools/call").await.answer(text(&giant)).await;
    assert!(soon("an answer", call).await.unwrap().unwrap() == giant);
    let call = tokio::spawn(client.call_tool("t", json!({})).text());
    let asked = web.asked("tools/call").await;
    let answer = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "result": text(&giant) });
    asked.respond(200, "text/event-stream", "", &format!("data: {answer}\n\n")).await;
    assert!(soon("an answer", call).await.unwrap().unwrap() == giant);
    client.close().await;
}

fn assert_ours(error: &CallError, which: ClientLimit, value: u64) {
    let CallError::LimitExceeded { limit, most, .. } = error else { panic!("{error}") };
    assert_eq!((*limit, *most), (which, value));
    assert!(error.to_string().contains("a limit of this client"), "{error}");
    assert!(error.to_string().contains(which.setting()), "{error}");
    assert!(!which.explain(value).contains("Limits"), "{}", which.explain(value));
}

/// The call fails at once, wherever the server writes the id.
#[tokio::test]
async fn an_answer_that_is_too_long_says_whose_limit_it_is() {
    let limit = 64 << 10;
    let tight = ClientLimits { message_length: limit, ..limits() };
    let giant = "x".repeat(limit);
    let wire = Wire::new();
    let client = wire.connect(false, builder().limits(tight.clone())).await;
    for is_id_last in [false, true] {
        let call = tokio::spawn(client.call_tool("t", json!({})).text());
        let id = &wire.asked("tools/call").await["id"];
        let result = format!(r#""result":{}"#, text(&giant));
        let answer = match is_id_last {
            true => format!("{{{result},\"jsonrpc\":\"2.0\",\"id\":{id}}}\n"),
            false => format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{result}}}\n"),
        };
        wire.send(answer.as_bytes());
        let error = soon("an error", call).await.unwrap().unwrap_err();
        assert_ours(&error, ClientLimit::MessageLength, limit as u64);
    }
    // A notification is nobody's answer.
    let call = tokio::spawn(client.call_tool("t", json!({})).text());
    let asked = wire.asked("tools/call").await;
    wire.say(&json!({ "jsonrpc": "2.0", "method": "notifications/x", "params": { "x": giant } }));
    wire.answer(&asked, text("still here"));
    assert_eq!(soon("an answer", call).await.unwrap().unwrap(), "still here");
    client.close().await;

    let mut web = Web::start().await;
    let client = web.modern(builder().limits(tight)).await;
    let call = tokio::spawn(client.call_tool("t", json!({})).text());
    web.asked("tools/call").await.answer(text(&giant)).await;
    let error = soon("an error", call).await.unwrap().unwrap_err();
    assert_ours(&error, ClientLimit::MessageLength, limit as u64);
    client.close().await;
}

/// Lists what a server offers in fat pages for ever: a long description each, or a long cursor.
async fn list_fat_pages(member: &str, is_fat_in_cursor: bool) -> CallError {
    let fat = |number: u64| "x".repeat(300 << 10) + &number.to_string();
    let page = |number: u64| {
        let name = number.to_string();
        let item =
            json!({ "name": name, "uri": name, "description": fat(number), "inputSchema": {} });
        match is_fat_in_cursor {
            true => json!({ member: [], "nextCursor": fat(number) }),
            false => json!({ member: [item], "nextCursor": name }),
        }
    };
    let wire = Wire::new();
    let tight = ClientLimits { list_bytes: MIB, ..limits() };
    let client = wire.connect(false, builder().limits(tight)).await;
    let serve = async {
        for number in 0.. {
            let asked = wire.asked(&format!("{member}/list")).await;
            assert!(number < 4, "asked for page {number}");
            wire.answer(&asked, page(number));
        }
    };
    let list = async {
        match member {
            "tools" => client.list_tools().await.map(drop),
            _ => client.list_resources().await.map(drop),
        }
    };
    let error = tokio::select! {
        listed = soon("the end of a list", list) => listed.unwrap_err(),
        () = serve => unreachable!(),
    };
    client.close().await;
    error
}

/// Over all pages, whatever is in them: cursors count too.
#[tokio::test]
async fn lists_are_bounded_in_bytes() {
    for member in ["tools", "resources"] {
        for is_fat_in_cursor in [false, true] {
            let error = list_fat_pages(member, is_fat_in_cursor).await;
            assert_ours(&error, ClientLimit::ListBytes, MIB as u64);
        }
    }
}

/// A page with too many items is not read at all, since items are larger than their text.
#[tokio::test]
async fn a_page_is_counted_before_it_is_read() {
    let wire = Wire::new();
    let tight = ClientLimits { list_items: 1000, ..limits() };
    let client = wire.connect(false, builder().limits(tight)).await;
    let tool = json!({ "name": "x".repeat(300), "inputSchema": {} });
    for (count, fits) in [(1000, true), (1001, false)] {
        let list = client.list_tools();
        let (listed, ()) = tokio::join!(list.into_future(), async {
            let asked = wire.asked("tools/list").await;
            // Not every member is a list of items.
            let page = json!({ "_meta": { "tools": [1, 2] }, "tools": vec![tool.clone(); count] });
            wire.answer(&asked, page);
        });
        match listed {
            Ok(tools) => assert!(fits && tools.len() == count),
            Err(error) if !fits => assert_ours(&error, ClientLimit::ListItems, 1000),
            Err(error) => panic!("{error}"),
        }
    }
    client.close().await;
}

#[tokio::test]
async fn a_greeting_is_bounded_in_bytes() {
    let wire = Wire::new();
    let tight = ClientLimits { peer_bytes: 4000, ..limits() };
    let stream = bowline::client::Target::stream(wire.clone());
    let connecting = tokio::spawn(builder().limits(tight).connect(stream));
    let probe = wire.asked("server/discover").await;
    wire.refuse(&probe, -32601);
    let hello = wire.asked("initialize").await;
    let mut greeting = initialized();
    greeting["instructions"] = json!("x".repeat(5000));
    wire.answer(&hello, greeting);
    let error = soon("an error", connecting).await.unwrap().unwrap_err().to_string();
    let expected = "what the server says about itself has more than 4000 bytes, a limit of this";
    assert!(error.contains(expected), "{error}");
}

fn note(text: &str) -> Value {
    let params = json!({ "level": "info", "data": text });
    json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params })
}

/// Notifications, progress and requests share one budget; what has been read makes room.
#[tokio::test]
async fn what_nobody_takes_is_bounded_in_bytes() {
    let wire = Wire::new();
    let tight = ClientLimits { queued_bytes: 10_000, ..limits() };
    let waiting = builder().limits(tight).on_sampling(|_| std::future::pending());
    let client = wire.connect(false, waiting).await;
    let mut notes = client.notifications();
    let answered = async || {
        let call = tokio::spawn(client.call_tool("t", json!({})).text());
        wire.answer(&wire.asked("tools/call").await, text("here"));
        soon("an answer", call).await.unwrap().unwrap();
    };
    let fat = "x".repeat(3500);
    for _ in 0..4 {
        wire.say(&note(&fat));
    }
    wire.say(&note("short"));
    answered().await;
    let heard: Vec<_> = std::iter::from_fn(|| notes.try_next()).collect();
    let kinds: Vec<_> = heard.iter().map(|it| it.as_ref().err().copied()).collect();
    assert_eq!(kinds, [None, None, Some(Missed(1)), Some(Missed(1)), None]);
    drop(heard);

    // Progress of a call that nobody reads.
    let (call, mut progress) = client.call_tool("t", json!({})).with_progress();
    let call = tokio::spawn(call.into_future());
    let asked = wire.asked("tools/call").await;
    let token = &asked["params"]["_meta"]["progressToken"];
    for number in 0..4 {
        let params = json!({ "progressToken": token, "progress": number, "message": fat });
        wire.say(
            &json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }),
        );
    }
    drop(notes);
    wire.answer(&asked, text("done"));
    soon("an answer", call).await.unwrap().unwrap();
    let mut reports = 0;
    while progress.next().await.is_some() {
        reports += 1;
    }
    assert_eq!(reports, 2);

    // Requests that are not answered yet.
    for id in 0..4 {
        let params = json!({ "messages": [], "maxTokens": 1, "systemPrompt": fat });
        let method = "sampling/createMessage";
        wire.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
    }
    let refused = [wire.next().await, wire.next().await];
    for (answer, id) in refused.iter().zip([2, 3]) {
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(-32603)));
    }
    client.close().await;
}

/// Beyond the limit, tools are listed and called as ever; only their output is not checked.
#[tokio::test]
async fn remembered_tools_are_bounded_in_bytes() {
    let wire = Wire::new();
    let tight = ClientLimits { tool_bytes: 3000, schema_bytes: 2000, ..limits() };
    let client = wire.connect(false, builder().limits(tight)).await;
    let tool = |name: &str, size: usize| {
        let schema = json!({ "type": "object", "required": ["a"], "title": "x".repeat(size) });
        json!({ "name": name, "inputSchema": { "type": "object" }, "outputSchema": schema })
    };
    let list = client.list_tools();
    let tools = json!({ "tools": [tool("long", 2500), tool("one", 1500), tool("two", 1500)] });
    let (listed, ()) = tokio::join!(list.into_future(), async {
        wire.answer(&wire.asked("tools/list").await, tools);
    });
    assert_eq!(listed.unwrap().len(), 3);
    for (name, is_checked) in [("long", false), ("one", true), ("two", false)] {
        let call = client.call_tool(name, json!({}));
        let (called, ()) = tokio::join!(call.into_future(), async {
            let mut answer = text("x");
            answer["structuredContent"] = json!({});
            wire.answer(&wire.asked("tools/call").await, answer);
        });
        let is_refused = matches!(called, Err(CallError::InvalidOutput { .. }));
        assert_eq!(is_refused, is_checked, "{name}: {called:?}");
    }
    client.close().await;
}

/// Beyond the limit, a change is reported under the URI that was subscribed to.
#[tokio::test]
async fn changed_resources_are_bounded_in_bytes() {
    let wire = Wire::new();
    let tight = ClientLimits { changed_bytes: 1000, ..limits() };
    let client = wire.connect(false, builder().limits(tight)).await;
    let (changes, ()) = tokio::join!(client.changes(Wanted::new().resource("a:")), async {
        wire.answer(&wire.asked("resources/subscribe").await, json!({}));
    });
    let mut changes = changes.unwrap();
    let long = format!("a:{}", "x".repeat(900));
    for uri in ["a:1", &long, "a:2"] {
        let method = "notifications/resources/updated";
        wire.say(&json!({ "jsonrpc": "2.0", "method": method, "params": { "uri": uri } }));
    }
    let call = tokio::spawn(client.call_tool("t", json!({})).text());
    wire.answer(&wire.asked("tools/call").await, text("here"));
    soon("an answer", call).await.unwrap().unwrap();
    for uri in ["a:", "a:1", "a:2"] {
        let change = soon("a change", changes.next()).await.unwrap().unwrap();
        assert_eq!(change, Change::Resource(uri.to_owned()));
    }
    drop(changes);
    client.close().await;
}
