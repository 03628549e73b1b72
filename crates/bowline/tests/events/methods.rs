//! The list, polling and streams.

use std::time::Duration;

use bowline::client::{Client, Notifications};
use bowline::events::{EventKind, EventLimits, Events, PublishError};
use bowline::{Server, testing};
use serde_json::{Value, json};

use crate::world::{ERAS, Shop, ask, events, limits, refused};

#[tokio::test]
async fn events_are_declared_and_listed_in_both_eras() {
    let shop = Shop::open(events(limits())).await;
    for revision in ERAS {
        let client = shop.client(None, revision).await;
        let capabilities = client.peer().unwrap().capabilities.clone();
        assert_eq!(capabilities.extra["events"], json!({}));
        assert!(capabilities.has_extension("io.modelcontextprotocol/events"));
        let listed = ask(&client, "events/list", json!({})).await;
        let [paid, sent] = listed["events"].as_array().unwrap().as_slice() else {
            panic!("{listed}")
        };
        assert_eq!((&paid["name"], &sent["name"]), (&json!("paid"), &json!("sent")));
        assert_eq!(paid["delivery"], json!(["poll", "push", "webhook"]));
        assert!(paid["inputSchema"]["properties"]["shop"].is_object(), "{paid}");
        client.close().await;
    }
    shop.close().await;
}

#[tokio::test]
async fn polling_goes_on_where_it_was() {
    let few = EventLimits { kept: 4, ..limits() };
    let shop = Shop::open(events(few)).await;
    for revision in ERAS {
        let client = shop.client(Some("ada"), revision).await;
        shop.pay(0);
        let start = ask(&client, "events/poll", json!({ "name": "paid" })).await;
        assert_eq!(start["events"], json!([]), "without a cursor, from now on");
        for number in 1..=3 {
            shop.pay(number);
        }
        shop.events.publish("sent", json!({ "number": 4 })).unwrap();
        let poll = async |cursor: &Value, most: u64| {
            let params = json!({ "name": "paid", "cursor": cursor, "maxEvents": most });
            let page = ask(&client, "events/poll", params).await;
            let all = page["events"].as_array().unwrap().iter();
            let numbers: Vec<_> = all.map(|it| it["data"]["number"].as_u64().unwrap()).collect();
            (numbers, page)
        };
        let (numbers, page) = poll(&start["cursor"], 2).await;
        assert_eq!(numbers, [1, 2]);
        assert_eq!((&page["hasMore"], &page["truncated"]), (&json!(true), &json!(false)));
        assert_eq!(page["nextPollMs"], 0);
        let (numbers, page) = poll(&page["cursor"], 2).await;
        assert_eq!(numbers, [3]);
        assert_eq!((&page["hasMore"], &page["nextPollMs"]), (&json!(false), &json!(5_000)));
        // Whoever is away for too long is told.
        for number in 5..=10 {
            shop.pay(number);
        }
        let (numbers, page) = poll(&page["cursor"], 9).await;
        assert_eq!(numbers, [7, 8, 9, 10]);
        assert_eq!(page["truncated"], true);
        let (code, _) =
            refused(&client, "events/poll", json!({ "name": "paid", "cursor": "x" })).await;
        assert_eq!(code, -32602);
        client.close().await;
    }
    shop.close().await;
}

/// The next notification about events.
async fn next(told: &mut Notifications, what: &str) -> Value {
    loop {
        let notification = told.next().await.unwrap().unwrap();
        if let Some(method) = notification.method.strip_prefix("notifications/events/") {
            assert_eq!(method, what, "{notification:?}");
            return notification.params.to_value();
        }
    }
}

#[tokio::test]
async fn a_stream_tells_what_happens_and_that_it_lives_until_the_server_stops() {
    for revision in ERAS {
        let lively = EventLimits { heartbeat: Duration::from_millis(50), ..limits() };
        let shop = Shop::open(events(lively)).await;
        let client = shop.client(Some("ada"), revision).await;
        let mut told = client.notifications();
        let streaming = client.call_json("events/stream", json!({ "name": "paid" }));
        let streaming = tokio::spawn(streaming.into_future());
        let active = next(&mut told, "active").await;
        assert_eq!(active["truncated"], false);
        let id = active["_meta"]["io.modelcontextprotocol/subscriptionId"].clone();
        assert!(!id.is_null(), "{active}");
        shop.events.publish("paid", json!({ "only": "bob" })).unwrap();
        shop.events.publish("sent", json!({})).unwrap();
        let event = shop.pay(1);
        let heard = loop {
            let notification = told.next().await.unwrap().unwrap();
            match &*notification.method {
                "notifications/events/heartbeat" => {}
                "notifications/events/event" => break notification.params.to_value(),
                _ => panic!("{notification:?}"),
            }
        };
        assert_eq!(heard["eventId"], event);
        assert_eq!(heard["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
        let alive = next(&mut told, "heartbeat").await;
        assert_eq!(alive["cursor"], heard["cursor"]);
        shop.close().await;
        loop {
            let notification = told.next().await.unwrap().unwrap();
            match &*notification.method {
                "notifications/events/heartbeat" => {}
                "notifications/events/terminated" => break,
                _ => panic!("{notification:?}"),
            }
        }
        assert!(streaming.await.unwrap().is_ok());
    }
}

#[tokio::test]
async fn a_stream_ends_when_the_framework_around_the_server_stops() {
    let events = events(limits());
    let service = Server::new("shop", "1.0.0").with(events.clone()).http().into_service().unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let stopped = service.stop_on(stopped);
    let app = axum::Router::new().nest_service("/mcp", service);
    let serving = tokio::spawn(async move {
        axum::serve(listener, app).with_graceful_shutdown(stopped).await.unwrap();
    });
    let client = Client::connect(url.as_str()).await.unwrap();
    let mut told = client.notifications();
    let streaming = client.call_json("events/stream", json!({ "name": "paid" }));
    let streaming = tokio::spawn(streaming.into_future());
    next(&mut told, "active").await;
    drop(stop);
    next(&mut told, "terminated").await;
    assert!(streaming.await.unwrap().is_ok());
    client.close().await;
    serving.await.unwrap();
}

#[tokio::test]
async fn streams_are_limited_and_end_with_their_client() {
    let one = EventLimits { streams: 1, ..limits() };
    let shop = Shop::open(events(one)).await;
    let (ada, bob) = (shop.ada().await, shop.client(Some("bob"), ERAS[1]).await);
    let params = json!({ "name": "paid" });
    let mut told = ada.notifications();
    let streaming = tokio::spawn(ada.call_json("events/stream", params.clone()).into_future());
    next(&mut told, "active").await;
    let (_, message) = refused(&bob, "events/stream", params.clone()).await;
    assert!(message.contains("too many streams"), "{message}");
    streaming.abort();
    // The place is free as soon as the server has noticed.
    let mut told = bob.notifications();
    let mut streaming = tokio::spawn(bob.call_json("events/stream", params.clone()).into_future());
    loop {
        tokio::select! {
            _ = next(&mut told, "active") => break,
            ended = &mut streaming => {
                assert!(ended.unwrap().is_err());
                streaming = tokio::spawn(bob.call_json("events/stream", params.clone()).into_future());
            }
        }
    }
    streaming.abort();
    shop.close().await;
}

#[tokio::test]
async fn one_client_does_not_take_all_streams() {
    let shop = Shop::open(events(EventLimits { streams_per_owner: 1, ..limits() })).await;
    let params = json!({ "name": "paid" });
    let mut streams = Vec::new();
    // Nobody counts, too: by the address.
    for user in [Some("ada"), Some("bob"), None] {
        let client = shop.client(user, ERAS[1]).await;
        let mut told = client.notifications();
        let stream = tokio::spawn(client.call_json("events/stream", params.clone()).into_future());
        next(&mut told, "active").await;
        let (_, message) = refused(&client, "events/stream", params.clone()).await;
        assert!(message.contains("too many streams"), "{message}");
        streams.push((client, stream));
    }
    for (_, stream) in &streams {
        stream.abort();
    }
    shop.close().await;
}

#[test]
fn what_cannot_be_published_is_an_error() {
    let events = events(EventLimits { payload: 20, ..limits() });
    let error = events.publish("other", json!({})).unwrap_err();
    assert_eq!(error.to_string(), "there is no event \"other\"; help: add it with `Events::with`");
    assert!(events.publish("paid", json!({ "a": "12345678901" })).is_ok());
    let error = events.publish("paid", json!({ "a": "123456789012345" })).unwrap_err();
    assert!(matches!(error, PublishError::TooLong { most: 20, .. }), "{error}");
}

#[tokio::test]
async fn mistakes_are_found_before_the_first_client() {
    let twice = Events::new().with(EventKind::new("a", "A.")).with(EventKind::new("a", "A."));
    let nowhere = Events::new().also_to("not a host");
    for (events, expected) in [
        (twice, "two kinds of events have the name \"a\""),
        (nowhere, "\"not a host\" is not a host with a port"),
    ] {
        let error = testing::connect(Server::new("wrong", "1.0.0").with(events)).await;
        let error = error.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
