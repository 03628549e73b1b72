//! Every revision on every transport in front of every revision on every transport.

use super::scenes::{NAMES, play};
use super::world::{Side, World, sides, soon};

/// Plays everything with one kind of client, in front of every kind of server.
async fn in_front(near: Side) -> Vec<String> {
    let mut problems = Vec::new();
    for far in sides() {
        // A task of its own, so that a panic names its cell.
        match tokio::spawn(cell(near, far)).await {
            Ok(found) => problems.extend(found),
            Err(panic) => problems.push(format!("{near} → {far}: {panic}")),
        }
    }
    problems
}

async fn cell(near: Side, far: Side) -> Vec<String> {
    let mut problems = Vec::new();
    let mut world = World::new(near, far).await;
    for name in NAMES {
        if let Err(problem) = play(name, &mut world).await {
            problems.push(format!("{near} → {far}: {name}: {problem}"));
        }
    }
    gone(world).await;
    problems
}

/// A client that goes takes its running calls with it.
async fn gone(world: World) {
    let call = tokio::spawn(world.client.call_tool("sleep", serde_json::json!({})).into_future());
    soon(world.counts.started.notified()).await;
    let World { client, counts, .. } = &world;
    let dropped = counts.dropped.notified();
    client.clone().close().await;
    soon(dropped).await;
    call.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_client_reaches_every_server() {
    let mut cells = tokio::task::JoinSet::new();
    for near in sides() {
        cells.spawn(in_front(near));
    }
    let problems: Vec<_> = cells.join_all().await.into_iter().flatten().collect();
    assert!(problems.is_empty(), "{} problems\n{}", problems.len(), problems.join("\n"));
}
