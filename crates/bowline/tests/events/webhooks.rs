//! Webhooks: what arrives, what is tried again, and what is never sent.

use std::time::Duration;

use bowline::events::{EventKind, EventLimits, Events};
use serde_json::json;

use crate::receiver::{Does, Receiver};
use crate::store::Store;
use crate::world::{ERAS, Shop, ask, events, limits, refused, wish};

async fn open(limits: EventLimits) -> (Shop, Receiver) {
    let receiver = Receiver::open().await;
    let shop = Shop::open(events(limits).also_to(&receiver.authority)).await;
    (shop, receiver)
}

#[tokio::test]
async fn a_verified_receiver_gets_each_event_once_and_in_order() {
    for revision in ERAS {
        let (shop, mut receiver) = open(limits()).await;
        let client = shop.client(Some("ada"), revision).await;
        shop.pay(0);
        let subscribed = ask(&client, "events/subscribe", wish(&receiver)).await;
        assert_eq!(subscribed["truncated"], false, "{subscribed}");
        assert!(subscribed["refreshBefore"].as_str().unwrap().ends_with('Z'), "{subscribed}");
        let id = subscribed["id"].as_str().unwrap().to_owned();
        let ids: Vec<_> = (1..=5).map(|number| shop.pay(number)).collect();
        receiver.verification().await;
        for (number, id_of_event) in (1..).zip(ids) {
            let message = receiver.next().await;
            assert_eq!(message.subscription, id);
            assert_eq!(message.id, id_of_event);
            assert_eq!(message.body["eventId"], id_of_event);
            assert_eq!(message.body["name"], "paid");
            assert_eq!(message.body["data"], json!({ "number": number }));
            assert!(message.body["timestamp"].as_str().unwrap().ends_with('Z'));
        }
        client.close().await;
        shop.close().await;
    }
}

#[tokio::test]
async fn a_receiver_that_fails_gets_the_same_event_again_until_it_recovers() {
    let (shop, mut receiver) = open(limits()).await;
    let ada = shop.ada().await;
    // The first verification fails as well: by its status, then without an echo.
    receiver.plan(&[Does::Answers(500), Does::Answers(200)]);
    ask(&ada, "events/subscribe", wish(&receiver)).await;
    for _ in 0..3 {
        receiver.verification().await;
    }
    receiver.plan(&[
        Does::Answers(500),
        Does::Answers(302),
        Does::Answers(404),
        Does::Answers(429),
    ]);
    let (first, second) = (shop.pay(1), shop.pay(2));
    for _ in 0..5 {
        assert_eq!(receiver.next().await.id, first);
    }
    assert_eq!(receiver.next().await.id, second);
    // The client sees how it goes when it renews.
    let renewed = ask(&ada, "events/subscribe", wish(&receiver)).await;
    assert_eq!(renewed["truncated"], false, "{renewed}");
    shop.close().await;
}

#[tokio::test]
async fn a_receiver_that_is_gone_or_fails_for_too_long_loses_its_subscription() {
    let impatient = EventLimits { patience: Duration::ZERO, ..limits() };
    for (limits, status) in [(limits(), 410), (impatient, 500)] {
        let (shop, mut receiver) = open(limits).await;
        let ada = shop.ada().await;
        receiver.plan(&[Does::Answers(status)]);
        ask(&ada, "events/subscribe", wish(&receiver)).await;
        receiver.verification().await;
        while shop.events.save().as_str() != "[]" {
            shop.events.changed().await;
        }
        shop.pay(1);
        let (code, message) = refused(&ada, "events/unsubscribe", wish(&receiver)).await;
        assert_eq!(
            (code, message.as_str()),
            (-32602, "events/unsubscribe: there is no such subscription")
        );
        assert!(receiver.is_quiet());
        shop.close().await;
    }
}

#[tokio::test]
async fn a_receiver_that_never_agreed_is_asked_ten_times() {
    let (shop, mut receiver) = open(limits()).await;
    let ada = shop.ada().await;
    receiver.plan(&[Does::Answers(200); 20]);
    ask(&ada, "events/subscribe", wish(&receiver)).await;
    while shop.events.save().as_str() != "[]" {
        shop.events.changed().await;
    }
    for _ in 0..10 {
        receiver.verification().await;
    }
    assert!(receiver.is_quiet());
    shop.close().await;
}

#[tokio::test]
async fn a_subscription_ends_unless_it_is_renewed() {
    let short = EventLimits { ttl: Duration::from_millis(30), ..limits() };
    let (shop, mut receiver) = open(short).await;
    let ada = shop.ada().await;
    ask(&ada, "events/subscribe", wish(&receiver)).await;
    while shop.events.save().as_str() != "[]" {
        shop.events.changed().await;
    }
    // With a wish of its own it lasts longer, and is another one.
    let mut longer = wish(&receiver);
    longer["ttlMs"] = 60_000.into();
    let id = ask(&ada, "events/subscribe", longer).await["id"].clone();
    shop.pay(1);
    let message = loop {
        let message = receiver.next().await;
        if message.body["type"] != "verification" {
            break message;
        }
    };
    assert_eq!(id, message.subscription);
    assert_eq!(message.body["data"]["number"], 1);
    shop.close().await;
}

#[tokio::test]
async fn a_receiver_that_hangs_holds_nobody_up_and_learns_what_it_missed() {
    let few = EventLimits { kept: 2, answer: Duration::from_secs(600), ..limits() };
    let (mut slow, mut quick) = (Receiver::open().await, Receiver::open().await);
    let events = events(few).also_to(&slow.authority).also_to(&quick.authority);
    let shop = Shop::open(events).await;
    let ada = shop.ada().await;
    for receiver in [&mut slow, &mut quick] {
        ask(&ada, "events/subscribe", wish(receiver)).await;
        receiver.verification().await;
    }
    slow.plan(&[Does::Hangs]);
    shop.pay(1);
    assert_eq!((slow.number().await, quick.number().await), (1, 1));
    for number in 2..=6 {
        shop.pay(number);
        assert_eq!(quick.number().await, u64::from(number));
    }
    slow.let_on();
    // Only the latest two are kept.
    assert_eq!((slow.number().await, slow.number().await), (5, 6));
    assert_eq!(ask(&ada, "events/subscribe", wish(&slow)).await["truncated"], true);
    assert_eq!(ask(&ada, "events/subscribe", wish(&quick)).await["truncated"], false);
    shop.close().await;
}

#[tokio::test]
async fn forbidden_addresses_are_never_contacted() {
    let receiver = Receiver::open().await;
    // The exception is for another port.
    let shop = Shop::open(events(limits()).also_to("127.0.0.1:1")).await;
    let ada = shop.ada().await;
    for (url, expected) in [
        (receiver.url.as_str(), "must be https"),
        ("https://127.0.0.1/hook", "not allowed"),
        ("https://[::ffff:10.0.0.1]/hook", "not allowed"),
        ("https://0x7f.1/", "not allowed"),
        ("https://localhost/hook", "not allowed"),
        ("https://printer.local/", "not allowed"),
        ("https://169.254.169.254/latest/meta-data", "not allowed"),
        ("http://example.com/", "must be https"),
        ("ftp://example.com/", "params.delivery.url"),
        ("no url", "params.delivery.url"),
    ] {
        let mut wish = wish(&receiver);
        wish["delivery"]["url"] = url.into();
        let (code, message) = refused(&ada, "events/subscribe", wish).await;
        assert_eq!(code, -32602, "{url}");
        assert!(message.contains(expected), "{url}: {message}");
    }
    assert_eq!(shop.events.save().as_str(), "[]");
    shop.close().await;
}

#[tokio::test]
async fn nothing_is_sent_after_unsubscribing_even_in_the_middle_of_a_delivery() {
    let (shop, mut receiver) = open(limits()).await;
    let ada = shop.ada().await;
    ask(&ada, "events/subscribe", wish(&receiver)).await;
    receiver.verification().await;
    receiver.plan(&[Does::Hangs]);
    shop.pay(1);
    shop.pay(2);
    assert_eq!(receiver.number().await, 1);
    // The receiver holds the first event. It belongs to Ada alone.
    let bob = shop.client(Some("bob"), ERAS[1]).await;
    let (code, _) = refused(&bob, "events/unsubscribe", wish(&receiver)).await;
    assert_eq!(code, -32602);
    assert_eq!(ask(&ada, "events/unsubscribe", wish(&receiver)).await["resultType"], "complete");
    assert_eq!(shop.events.save().as_str(), "[]");
    // Another subscription is served meanwhile, and the first one never is.
    ask(&bob, "events/subscribe", wish(&receiver)).await;
    receiver.verification().await;
    shop.pay(3);
    assert_eq!(receiver.number().await, 3);
    assert!(receiver.is_quiet());
    shop.close().await;
}

#[tokio::test]
async fn the_same_wish_is_the_same_subscription() {
    let (shop, mut receiver) = open(limits()).await;
    let ada = shop.ada().await;
    let mut wish = wish(&receiver);
    wish["arguments"] = json!({ "shop": "north" });
    let first = ask(&ada, "events/subscribe", wish.clone()).await;
    receiver.verification().await;
    let again = ask(&ada, "events/subscribe", wish.clone()).await;
    assert_eq!(first["id"], again["id"]);
    wish["arguments"] = json!({ "shop": "south" });
    let other = ask(&ada, "events/subscribe", wish.clone()).await;
    assert_ne!(first["id"], other["id"]);
    receiver.verification().await;
    // Each gets what it asked for, and what belongs to it.
    let publish = |data| shop.events.publish("paid", data).unwrap();
    publish(json!({ "shop": "west", "number": 1 }));
    publish(json!({ "shop": "south", "number": 2, "only": "bob" }));
    publish(json!({ "shop": "south", "number": 3, "only": "ada" }));
    let message = receiver.next().await;
    assert_eq!(message.body["data"]["number"], 3);
    assert_eq!(other["id"], message.subscription);
    shop.close().await;
}

#[tokio::test]
async fn subscriptions_are_limited_and_need_an_identity() {
    let few = EventLimits { subscriptions_per_owner: 1, subscriptions: 2, ..limits() };
    let (shop, receiver) = open(few).await;
    let nobody = shop.client(None, ERAS[1]).await;
    let (code, message) = refused(&nobody, "events/subscribe", wish(&receiver)).await;
    assert_eq!(code, -32600, "{message}");
    let other = |shop: &str| {
        let mut wish = wish(&receiver);
        wish["arguments"] = json!({ "shop": shop });
        wish
    };
    let (ada, bob, eve) = (
        shop.ada().await,
        shop.client(Some("bob"), ERAS[1]).await,
        shop.client(Some("eve"), ERAS[0]).await,
    );
    ask(&ada, "events/subscribe", other("a")).await;
    let (_, message) = refused(&ada, "events/subscribe", other("b")).await;
    assert!(message.contains("this client has too many subscriptions"), "{message}");
    // Renewing is not another one.
    ask(&ada, "events/subscribe", other("a")).await;
    ask(&bob, "events/subscribe", other("a")).await;
    let (_, message) = refused(&eve, "events/subscribe", other("a")).await;
    assert!(message.contains("the server has too many subscriptions"), "{message}");
    ask(&ada, "events/unsubscribe", other("a")).await;
    ask(&eve, "events/subscribe", other("a")).await;
    shop.close().await;
}

#[tokio::test]
async fn what_is_wrong_with_a_wish_is_said() {
    let (shop, receiver) = open(limits()).await;
    let ada = shop.ada().await;
    let check = async |member: &[&str], value: serde_json::Value, expected: &str| {
        let mut wish = wish(&receiver);
        let mut at = &mut wish;
        for name in member {
            at = &mut at[*name];
        }
        *at = value;
        let (code, message) = refused(&ada, "events/subscribe", wish).await;
        assert_eq!(code, -32602, "{message}");
        assert!(message.contains(expected), "{message}");
    };
    check(&["name"], json!("other"), "params.name: there is no event \"other\"").await;
    check(&["arguments"], json!({ "shop": 7 }), "params.arguments.shop").await;
    check(&["arguments"], json!({ "shop": "x".repeat(9_000) }), "8192 bytes are allowed").await;
    check(&["delivery", "mode"], json!("push"), "params.delivery.mode must be").await;
    check(&["delivery", "secret"], json!("whsec_AAAA"), "24 to 64 bytes").await;
    check(&["delivery"], json!(null), "params.delivery is missing").await;
    check(&["cursor"], json!("7"), "params.cursor was not issued by this server").await;
    let long = json!(format!("https://example.com/{}", "x".repeat(3_000)));
    check(&["delivery", "url"], long, "2048 bytes are allowed").await;
    shop.close().await;
}

#[tokio::test]
async fn subscriptions_outlive_the_process_if_they_are_saved() {
    let (shop, mut receiver) = open(limits()).await;
    let ada = shop.ada().await;
    let subscribed = ask(&ada, "events/subscribe", wish(&receiver)).await;
    receiver.verification().await;
    shop.pay(1);
    assert_eq!(receiver.number().await, 1);
    let saved = shop.events.save();
    shop.close().await;

    let events = events(limits()).also_to(&receiver.authority);
    assert_eq!(events.restore(&saved).unwrap(), 1);
    assert!(events.restore(&json!({ "no": "list" }).into()).is_err());
    let shop = Shop::open(events).await;
    shop.pay(2);
    // Without another verification.
    let message = receiver.next().await;
    assert_eq!(message.body["data"]["number"], 2);
    assert_eq!(subscribed["id"], message.subscription);
    // The client learns that it may have missed something.
    let ada = shop.ada().await;
    let renewed = ask(&ada, "events/subscribe", wish(&receiver)).await;
    assert_eq!(renewed["id"], subscribed["id"]);
    assert_eq!(renewed["truncated"], true);
    assert_eq!(ask(&ada, "events/subscribe", wish(&receiver)).await["truncated"], false);
    shop.close().await;
}

#[tokio::test]
async fn subscriptions_in_a_store_outlive_the_process() {
    let (store, mut receiver) = (Store::default(), Receiver::open().await);
    let open = async || {
        let events = events(limits()).also_to(&receiver.authority);
        Shop::open(events.keep_in(store.clone()).await.unwrap()).await
    };
    let wishes = ["north", "south"].map(|shop| {
        let mut wish = wish(&receiver);
        wish["arguments"] = json!({ "shop": shop });
        wish
    });
    let shop = open().await;
    let ada = shop.ada().await;
    let mut ids = Vec::new();
    for wish in &wishes {
        let id = ask(&ada, "events/subscribe", wish.clone()).await["id"].clone();
        ids.push(id.as_str().unwrap().to_owned());
    }
    assert_eq!(store.len(), 2, "they are stored before they are acknowledged");
    ask(&ada, "events/subscribe", wishes[0].clone()).await;
    assert_eq!(store.len(), 2);
    ask(&ada, "events/unsubscribe", wishes[0].clone()).await;
    assert_eq!(store.len(), 1);
    drop(ada);
    shop.close().await;

    let shop = open().await;
    for place in ["north", "south"] {
        shop.events.publish("paid", json!({ "shop": place, "number": 7 })).unwrap();
    }
    let message = loop {
        let message = receiver.next().await;
        // Whether the first process had come so far depends.
        if message.body["type"] != "verification" {
            break message;
        }
    };
    assert_eq!(message.subscription, ids[1]);
    assert_eq!(message.body["data"]["shop"], "south");
    let ada = shop.ada().await;
    let renewed = ask(&ada, "events/subscribe", wishes[1].clone()).await;
    assert_eq!(
        (renewed["id"].as_str().unwrap(), &renewed["truncated"]),
        (ids[1].as_str(), &json!(true))
    );
    ask(&ada, "events/unsubscribe", wishes[1].clone()).await;
    assert_eq!(store.len(), 0);
    shop.close().await;
}

#[tokio::test]
async fn a_store_that_fails_is_an_error_and_leaves_nothing_behind() {
    let (store, mut receiver) = (Store::default(), Receiver::open().await);
    let events = events(limits()).also_to(&receiver.authority);
    let shop = Shop::open(events.keep_in(store.clone()).await.unwrap()).await;
    let ada = shop.ada().await;
    store.set_broken(true);
    let (code, message) = refused(&ada, "events/subscribe", wish(&receiver)).await;
    assert_eq!(
        (code, message.as_str()),
        (-32603, "events/subscribe: the store of subscriptions failed; try again later")
    );
    assert_eq!(shop.events.save().as_str(), "[]");
    store.set_broken(false);
    ask(&ada, "events/subscribe", wish(&receiver)).await;
    assert_eq!(store.len(), 1);
    // A receiver that is gone is gone from the store, too.
    while receiver.next().await.body["type"] != "verification" {}
    receiver.plan(&[Does::Answers(410), Does::Answers(410)]);
    shop.pay(1);
    while store.len() > 0 {
        shop.events.changed().await;
    }
    shop.close().await;
}

#[tokio::test]
async fn a_store_that_fails_ends_no_subscription_that_there_was() {
    let (store, mut receiver) = (Store::default(), Receiver::open().await);
    let events = events(limits()).also_to(&receiver.authority);
    let shop = Shop::open(events.keep_in(store.clone()).await.unwrap()).await;
    let ada = shop.ada().await;
    ask(&ada, "events/subscribe", wish(&receiver)).await;
    receiver.verification().await;
    shop.pay(1);
    assert_eq!(receiver.number().await, 1);
    store.set_broken(true);
    let mut other = wish(&receiver);
    other["delivery"]["secret"] = json!(format!("whsec_{}", "A".repeat(32)));
    for (method, params) in [("events/subscribe", other), ("events/unsubscribe", wish(&receiver))] {
        let (code, message) = refused(&ada, method, params).await;
        assert_eq!(code, -32603, "{message}");
        assert!(message.contains("the store of subscriptions failed"), "{message}");
        // It goes on as it was, with the secret that it had.
        shop.pay(2);
        assert_eq!(receiver.number().await, 2, "after {method}");
    }
    store.set_broken(false);
    ask(&ada, "events/unsubscribe", wish(&receiver)).await;
    assert_eq!(store.len(), 0);
    shop.close().await;
}

#[tokio::test]
async fn a_store_of_something_else_is_left_alone() {
    use bowline::{Client, Server, TaskLimits, TaskMode, Tasks, Tool};
    let store = Store::default();
    let hang = Tool::new("hang", || async {
        std::future::pending::<()>().await;
        "never"
    });
    let server = Server::new("tasks", "1.0.0")
        .with(hang.task(TaskMode::Required))
        .tasks(Tasks::in_store(store.clone(), TaskLimits::default()));
    let client = Client::builder("test", "1.0.0").connect(server).await.unwrap();
    client.call_tool("hang", json!({})).start().await.unwrap();
    assert_eq!(store.len(), 1);
    let _events = events(limits()).keep_in(store.clone()).await.unwrap();
    assert_eq!(store.len(), 1, "a task is not a subscription that has expired");
    client.close().await;
}

#[tokio::test]
async fn a_filter_that_panics_leaves_its_event_out() {
    let mut receiver = Receiver::open().await;
    let picky = EventKind::new("paid", "An order was paid.").filter(|event| {
        assert_ne!(event.data["number"], 1, "on purpose");
        true
    });
    let events = Events::with_limits(limits()).with(picky).also_to(&receiver.authority);
    let shop = Shop::open(events).await;
    let ada = shop.ada().await;
    ask(&ada, "events/subscribe", wish(&receiver)).await;
    receiver.verification().await;
    for number in [1, 2] {
        shop.pay(number);
    }
    assert_eq!(receiver.number().await, 2);
    shop.close().await;
}
