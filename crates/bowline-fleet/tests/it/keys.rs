//! Keys that leak, and secrets that are changed.

use bowline_fleet::Fleet;
use serde_json::json;

use crate::http;
use crate::nodes::{answer, eventually, node, open, request, two};
use crate::proxy::Proxy;
use crate::stores::Postgres;

/// How a node answers a ping in a session.
async fn ping(port: u16, session: &str) -> u16 {
    let ping = request(1, "ping", json!({}));
    http::legacy(port, "ada", Some(session), ping).await.unwrap().status
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_key_has_sealed_ends_when_it_is_removed() {
    let postgres = Postgres::start();
    let [one, two] = two(&postgres, None).await;
    for round in 0..2 {
        let session = open(one.port).await;
        for port in [one.port, two.port] {
            // From now on both have the session in memory.
            assert_eq!(ping(port, &session).await, 200);
        }
        if round == 0 {
            postgres.sql("test0", "DELETE FROM bowline.keys").unwrap();
        } else {
            two.fleet.revoke_keys().await.unwrap();
        }
        for port in [one.port, two.port] {
            eventually("the session ends", async || {
                (ping(port, &session).await == 404).then_some(())
            })
            .await;
        }
        // Nodes go on with a key that is new to both.
        eventually("new sessions are known to both", async || {
            let session = open(one.port).await;
            (ping(two.port, &session).await == 200).then_some(())
        })
        .await;
    }
    assert_eq!(http::get(one.port, "/ready").await, Some(200));
}

#[tokio::test]
async fn keys_are_sealed_with_a_secret_that_can_be_changed() {
    let postgres = Postgres::start();
    let database = postgres.database();
    let [old, new, wrong] = ["old", "new", "wrong"].map(|name| name.repeat(16));
    let joins = async |secret: &str, other: Option<&str>| {
        let mut builder = Fleet::builder(&database).secret(secret);
        if let Some(other) = other {
            builder = builder.other_secret(other);
        }
        builder.connect().await
    };
    joins(&old, None).await.unwrap();
    joins(&old, None).await.unwrap();
    let refused = joins(&wrong, None).await.err().unwrap();
    assert!(refused.to_string().contains("sealed with another secret"), "{refused}");
    assert!(Fleet::connect(&database).await.is_err(), "nor without one");
    // First all know the new one, then it seals.
    let first = joins(&old, Some(&new)).await.unwrap();
    let second = joins(&new, Some(&old)).await.unwrap();
    second.reseal_keys().await.unwrap();
    first.rotate_keys().await.unwrap();
    second.reseal_keys().await.unwrap();
    joins(&new, None).await.unwrap();
    joins(&old, Some(&new)).await.unwrap();
    assert!(joins(&old, None).await.is_err(), "the old one opens nothing any more");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_has_not_read_the_keys_ends_no_session() {
    let postgres = Postgres::start();
    let one = node(&postgres.database(), None).await;
    let proxy = Proxy::start(postgres.port).await;
    let two = node(&Postgres::url("test0", proxy.port), None).await;
    proxy.cut(true);
    eventually("not ready", async || {
        (http::get(two.port, "/ready").await == Some(503)).then_some(())
    })
    .await;
    one.fleet.revoke_keys().await.unwrap();
    let session = open(one.port).await;
    assert_eq!(ping(two.port, &session).await, 503);
    assert_eq!(http::delete(two.port, "ada", &session).await.unwrap().status, 503);
    proxy.cut(false);
    eventually("the session is known", async || {
        (ping(two.port, &session).await == 200).then_some(())
    })
    .await;
    assert_eq!(ping(one.port, &session).await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_expire_by_the_clock_of_the_database() {
    let postgres = Postgres::start();
    let node = node(&postgres.database(), None).await;
    let asked = answer(http::asking(node.port, "ada", json!({ "name": "ask" })).await).await;
    let state = &asked["result"]["requestState"];
    let again = json!({ "name": "ask", "requestState": state, "inputResponses": {} });
    let said = async || answer(http::asking(node.port, "ada", again.clone()).await).await;
    assert!(said().await["result"].is_object());
    let beat = "SELECT pg_get_functiondef('bowline.beat'::regproc)";
    let right = postgres.sql("test0", beat).unwrap();
    let hour = right.replace("* 1000)", "* 1000 + 3600000)");
    assert_ne!(right, hour, "heartbeats tell the time");
    postgres.sql("test0", &hour).unwrap();
    eventually("the question has expired", async || {
        said().await.to_string().contains("has expired").then_some(())
    })
    .await;
}
