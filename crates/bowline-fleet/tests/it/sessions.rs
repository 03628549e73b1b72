//! Legacy sessions, when several nodes change them at once.

use std::time::Duration;

use bowline::{ErrorObject, Failure, Incoming, Next};
use bowline_fleet::Fleet;
use serde_json::json;
use tokio::task::JoinSet;

use crate::http;
use crate::nodes::{NEWS, Plan, node, open, request, two};
use crate::stores::Postgres;

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_does_not_outlive_its_session() {
    let postgres = Postgres::start();
    let [one, two] = two(&postgres, None).await;
    for _ in 0..20 {
        let session = open(one.port).await;
        // Both begin at the same time.
        let (opened, ended) = tokio::join!(
            http::listen(one.port, "ada", &session, None),
            http::delete(two.port, "ada", &session)
        );
        assert_eq!(ended.unwrap().status, 204);
        let mut stream = opened.unwrap();
        assert!([200, 404].contains(&stream.status), "{}", stream.status);
        let (mut rest, over) = (String::new(), Duration::from_secs(10));
        let ends = async { while stream.event(&mut rest).await.is_some() {} };
        tokio::time::timeout(over, ends).await.expect("the stream of an ended session ends");
        for port in [one.port, two.port] {
            let ping = request(1, "ping", json!({}));
            assert_eq!(http::legacy(port, "ada", Some(&session), ping).await.unwrap().status, 404);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_subscription_is_lost() {
    let postgres = Postgres::start();
    let [one, two] = two(&postgres, None).await;
    for round in 0..5 {
        let session = open(one.port).await;
        let mut all = JoinSet::new();
        for number in 0..16 {
            let (session, port) = (session.clone(), [one.port, two.port][number % 2]);
            let uri = format!("{NEWS}/{number}");
            let subscribe = request(2, "resources/subscribe", json!({ "uri": uri }));
            all.spawn(async move {
                http::legacy(port, "ada", Some(&session), subscribe).await.unwrap().status
            });
        }
        assert!(all.join_all().await.iter().all(|status| *status == 200), "all are acknowledged");
        let kept = "SELECT string_agg(record, '') FROM bowline.records WHERE kind LIKE 'session%'";
        let kept = postgres.sql("test0", kept).unwrap();
        for number in 0..16 {
            let count = kept.matches(&format!("{NEWS}/{number}\"")).count();
            assert_eq!(count, round + 1, "subscription {number} of round {round} is kept");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_middleware_refuses_is_not_kept() {
    let postgres = Postgres::start();
    let database = postgres.database();
    let mut plan = Plan::usual(Fleet::builder(&database));
    plan.server = plan.server.middleware(|incoming: Incoming, next: Next| async move {
        match &*incoming.method {
            "resources/unsubscribe" | "logging/setLevel" => {
                Err(Failure::from(ErrorObject::internal("not today")))
            }
            _ => next.run(incoming).await,
        }
    });
    let (one, _two) = (plan.start().await, node(&database, None).await);
    let session = open(one.port).await;
    let send = async |method: &str, params| {
        let sent = http::legacy(one.port, "ada", Some(&session), request(2, method, params)).await;
        sent.unwrap().text().await.unwrap()
    };
    let uri = || json!({ "uri": NEWS });
    assert!(send("resources/subscribe", uri()).await.contains("result"));
    assert!(send("resources/unsubscribe", uri()).await.contains("not today"));
    assert!(send("logging/setLevel", json!({ "level": "alert" })).await.contains("not today"));
    let kept = "SELECT record FROM bowline.records WHERE kind LIKE 'session%'";
    let kept = postgres.sql("test0", kept).unwrap();
    assert!(kept.contains(NEWS), "{kept}");
    assert!(!kept.contains("alert"), "{kept}");
}
