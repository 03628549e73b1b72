//! Many clients at once: all revisions, equal ids, several principals, and no mix-ups.

use bowline::Revision;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::client::{Session, modern, scaled, send, text};
use super::sse::Sse;
use super::world::World;

/// Calls a tool over the client's transport, and returns its text.
enum Client {
    Modern,
    Session(Session),
    Sse(Sse),
}

impl Client {
    async fn open(world: &World, revision: Revision) -> Self {
        match revision {
            Revision::V2026_07_28 => Self::Modern,
            Revision::V2024_11_05 => Self::Sse(Sse::open(&world.service, "old").await),
            _ => Self::Session(Session::open(&world.service, revision).await),
        }
    }

    async fn call(&mut self, world: &World, id: i64, tool: &str, arguments: Value) -> Value {
        match self {
            Self::Modern => {
                let params = json!({ "name": tool, "arguments": arguments });
                send(&world.service, modern(id, "tools/call", params)).await.json()
            }
            Self::Session(session) => {
                send(&world.service, session.call(id, tool, arguments)).await.json()
            }
            Self::Sse(client) => client.call(id, tool, arguments).await,
        }
    }

    async fn list(&mut self, world: &World) -> Value {
        let request = |id: i64| super::client::request(id, "tools/list", json!({}));
        match self {
            Self::Modern => send(&world.service, modern(1, "tools/list", json!({}))).await.json(),
            Self::Session(session) => send(&world.service, session.post(request(1))).await.json(),
            Self::Sse(client) => {
                client.post(request(9_999)).await;
                client.next().await
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_revision_is_answered_in_its_own_words() {
    let world = std::sync::Arc::new(World::new());
    let mut clients = JoinSet::new();
    for number in 0..scaled(20, 200) {
        let world = std::sync::Arc::clone(&world);
        clients.spawn(async move {
            let revision = Revision::ALL[number % 5];
            let mut client = Client::open(&world, revision).await;
            for id in 0..10 {
                let canary = format!("{number}-{id}");
                let said = client.call(&world, id, "say", json!({ "text": canary })).await;
                assert_eq!((&said["id"], text(&said)), (&json!(id), canary));
                let point = client.call(&world, 100 + id, "point", json!({})).await;
                let has_data = revision >= Revision::V2025_06_18;
                let data = &point["result"]["structuredContent"];
                assert_eq!(data["x"] == 1, has_data, "{revision}: {point}");
                let says_type = point["result"].get("resultType").is_some();
                assert_eq!(says_type, revision.is_modern(), "{revision}: {point}");
            }
            let listed = client.list(&world).await;
            let tools = &listed["result"]["tools"];
            assert_eq!(tools[0]["title"] == "Say", revision >= Revision::V2025_06_18, "{tools}");
            let has_schema = tools[1].get("outputSchema").is_some();
            assert_eq!(has_schema, revision >= Revision::V2025_06_18, "{revision}");
            let has_hints = listed["result"].get("ttlMs").is_some();
            assert_eq!(has_hints, revision.is_modern(), "{revision}");
        });
    }
    while let Some(ended) = clients.join_next().await {
        ended.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn equal_ids_in_one_session_are_neither_crossed_nor_hung() {
    let world = World::new();
    let session = Session::open(&world.service, Revision::V2025_11_25).await;
    let pairs = scaled(500, 10_000);
    for first in (0..pairs).step_by(25) {
        let twins = (first..first + 25).flat_map(|number| [(number, "a"), (number, "b")]);
        let mut calls = JoinSet::new();
        for (number, twin) in twins {
            calls.spawn(say(session.clone(), number, twin));
        }
        while let Some(ended) = calls.join_next().await {
            ended.unwrap();
        }
    }
}

async fn say(session: Session, number: usize, twin: &str) {
    let canary = format!("{number}{twin}");
    // Half of them wait, so that both run at the same time.
    let wait = if number.is_multiple_of(2) { json!(2) } else { Value::Null };
    let arguments = json!({ "text": canary, "milliseconds": wait });
    let answer = send(&session.service, session.call(1, "say", arguments)).await;
    assert_eq!(answer.text(), canary, "{}", answer.body);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn principals_with_equal_ids_never_see_each_other() {
    let world = World::new();
    let mut users = JoinSet::new();
    for number in 0..scaled(16, 64) {
        let service = world.service.clone();
        users.spawn(async move {
            let name = format!("user-{number}");
            let revision = [Revision::V2025_03_26, Revision::V2025_11_25][number % 2];
            let session = Session::open_as(&service, revision, Some(&name)).await;
            let mut sse = Sse::open(&service, &name).await;
            for round in 0..scaled(50, 5_000) {
                let who = modern(1, "tools/call", json!({ "name": "who" })).with("x-user", &name);
                assert_eq!(send(&service, who).await.text(), name);
                assert_eq!(send(&service, session.call(1, "who", json!({}))).await.text(), name);
                let arguments = json!({ "text": name, "milliseconds": round % 2 });
                let said = send(&service, session.call(1, "say", arguments)).await;
                assert_eq!(said.text(), name);
                assert_eq!(text(&sse.call(1, "who", json!({})).await), name);
            }
        });
    }
    while let Some(ended) = users.join_next().await {
        ended.unwrap();
    }
}
