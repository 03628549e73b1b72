//! Legacy sessions, when several nodes change them at once.

use std::time::Duration;

use bowline::{ErrorObject, Failure, Incoming, Next};
use bowline_fleet::Fleet;
use serde_json::json;
use tokio::task::JoinSet;

use crate::http;
use crate::nodes::{NEWS, Plan, answer, eventually, node, open, request, two};
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
        let mut rest = String::new();
        let ends = async { while stream.event(&mut rest).await.is_some() {} };
        let ended = tokio::time::timeout(http::PATIENCE, ends).await;
        ended.expect("the stream of an ended session ends");
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

/// How a node answers a ping in a session.
async fn ping(port: u16, session: &str) -> u16 {
    let ping = request(1, "ping", json!({}));
    http::legacy(port, "ada", Some(session), ping).await.unwrap().status
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_was_acknowledged_at_the_second_try_is_not_undone() {
    let postgres = Postgres::start_with(&[("track_functions", "all".to_owned())]);
    let node = node(&postgres.database(), None).await;
    let session = open(node.port).await;
    let fail = "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            RAISE 'not today';
        END $$;
        CREATE TRIGGER fail BEFORE INSERT ON bowline.records
            FOR EACH ROW EXECUTE FUNCTION fail();";
    postgres.sql("test0", fail).unwrap();
    assert_eq!(http::delete(node.port, "ada", &session).await.unwrap().status, 503);
    // Later than the session, so whatever is done about it afterwards is done later as well.
    let call = json!({ "name": "wait" });
    let failed = answer(http::modern(node.port, "ada", "tools/call", call).await).await;
    assert!(failed["result"]["taskId"].is_null(), "{failed}");
    postgres.sql("test0", "DROP TRIGGER fail ON bowline.records").unwrap();
    assert_eq!(http::delete(node.port, "ada", &session).await.unwrap().status, 204);
    let removed = "SELECT count(*) FROM pg_stat_user_functions WHERE funcname = 'remove_record'";
    eventually("the task that was not told is removed", async || {
        (postgres.sql("test0", removed).unwrap() == "1").then_some(())
    })
    .await;
    assert_eq!(ping(node.port, &session).await, 404);
    let kept = "SELECT count(*) FROM bowline.records WHERE kind LIKE 'session%'";
    assert_eq!(postgres.sql("test0", kept).unwrap(), "1", "its end is kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_nobody_uses_make_room() {
    let postgres = Postgres::start();
    let mut plan = Plan::usual(Fleet::builder(postgres.database()));
    (plan.limits.sessions, plan.limits.sessions_per_party) = (3, 2);
    let node = plan.start().await;
    let mut sessions = Vec::new();
    for _ in 0..5 {
        sessions.push(open(node.port).await);
    }
    for session in sessions.iter().chain(&sessions) {
        assert_eq!(ping(node.port, session).await, 200);
    }
    // Those with a stream stay.
    let mut streams = Vec::new();
    for session in &sessions[..2] {
        let stream = http::listen(node.port, "ada", session, None).await.unwrap();
        assert_eq!(stream.status, 200);
        streams.push(stream);
    }
    assert_eq!(ping(node.port, &sessions[2]).await, 503);
    for session in &sessions {
        let ended = http::delete(node.port, "ada", session).await.unwrap();
        assert_eq!(ended.status, 204, "there need not be room for a session that ends");
    }
    for mut stream in streams {
        let mut rest = String::new();
        let ends = async { while stream.event(&mut rest).await.is_some() {} };
        tokio::time::timeout(http::PATIENCE, ends).await.expect("its stream ends");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_later_release_keeps_stays() {
    let postgres = Postgres::start();
    let node = node(&postgres.database(), None).await;
    let session = open(node.port).await;
    let subscribe = async |uri: &str| {
        let subscribe = request(2, "resources/subscribe", json!({ "uri": uri }));
        http::legacy(node.port, "ada", Some(&session), subscribe).await.unwrap().status
    };
    assert_eq!(subscribe(NEWS).await, 200);
    let add = r#"UPDATE bowline.records SET record =
        replace(replace(record, '"resources":', '"novel":1,"resources":'),
            '\"resources\":', '\"novel\":1,\"resources\":')"#;
    postgres.sql("test0", add).unwrap();
    assert_eq!(subscribe("test://more").await, 200);
    let kept = postgres.sql("test0", "SELECT record FROM bowline.records").unwrap();
    assert!(kept.contains("novel") && kept.contains("test://more"), "{kept}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_another_node_that_falls_silent_ends() {
    let postgres = Postgres::start();
    let database = postgres.database();
    let start = async |keep_alive| {
        let mut plan = Plan::usual(Fleet::builder(&database));
        plan.limits.keep_alive = Duration::from_secs(keep_alive);
        plan.start().await
    };
    let (quiet, other) = (start(3_600).await, start(1).await);
    eventually("the nodes know each other", async || {
        (other.fleet.metrics().others == 1).then_some(())
    })
    .await;
    let session = open(quiet.port).await;
    let mut stream = http::listen(quiet.port, "ada", &session, None).await.unwrap();
    let first = String::from_utf8(stream.chunk().await.unwrap()).unwrap();
    let first = first.lines().find_map(|line| line.strip_prefix("id: ")).unwrap();
    let mut resumed = http::listen(other.port, "ada", &session, Some(first)).await.unwrap();
    assert_eq!(resumed.status, 200);
    let mut rest = String::new();
    let ends = async { while resumed.event(&mut rest).await.is_some() {} };
    tokio::time::timeout(http::PATIENCE, ends).await.expect("it ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancellation_is_passed_on_only_if_its_request_runs_elsewhere() {
    let postgres = Postgres::start();
    let [one, two] = two(&postgres, None).await;
    let session = open(one.port).await;
    for (port, letters) in [(one.port, 0), (two.port, 1)] {
        let call = request(7, "tools/call", json!({ "name": "ask" }));
        let mut asked = http::legacy(one.port, "ada", Some(&session), call).await.unwrap();
        let mut rest = String::new();
        asked.event(&mut rest).await.unwrap();
        let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": { "requestId": 7 } });
        let told = http::legacy(port, "ada", Some(&session), cancel).await.unwrap();
        assert_eq!(told.status, 202);
        let ends = async { while asked.event(&mut rest).await.is_some() {} };
        tokio::time::timeout(http::PATIENCE, ends).await.expect("the call ends");
        let sent = one.fleet.metrics().letters + two.fleet.metrics().letters;
        assert_eq!(sent, letters);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_a_batch_reaches_all_nodes() {
    let postgres = Postgres::start();
    let [one, two] = two(&postgres, None).await;
    let params = json!({ "protocolVersion": "2025-03-26", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" } });
    // Clients of that revision do not name it in a header.
    let send = async |port: u16, session: &str, body: serde_json::Value| {
        let head = format!("POST /mcp HTTP/1.1\r\n{}x-user: ada\r\n{session}", http::ACCEPT);
        http::send(port, &head, &body.to_string()).await.unwrap()
    };
    let opened = send(one.port, "", request(0, "initialize", params)).await;
    let session = format!("mcp-session-id: {}\r\n", opened.session.unwrap());
    let subscribe = request(2, "resources/subscribe", json!({ "uri": NEWS }));
    let subscribed = send(two.port, &session, json!([subscribe])).await.text().await.unwrap();
    assert!(subscribed.contains("result"), "{subscribed}");
    let kept = postgres.sql("test0", "SELECT record FROM bowline.records").unwrap();
    assert!(kept.contains(NEWS), "{kept}");
    let mut waits =
        send(one.port, &session, request(7, "tools/call", json!({ "name": "wait" }))).await;
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": { "requestId": 7 } });
    assert_eq!(send(two.port, &session, json!([cancel])).await.status, 202);
    let mut rest = String::new();
    let ends = async { while waits.event(&mut rest).await.is_some() {} };
    tokio::time::timeout(http::PATIENCE, ends).await.expect("the call ends");
}
