//! Every revision on every transport in front of every revision on every transport.

use bowline::Revision;

use super::scenes::{NAMES, play};
use super::world::{Side, Way, World, rare_sides, sides, soon};

/// Plays everything with one kind of client, in front of every kind of server.
async fn in_front(near: Side) -> Vec<String> {
    let mut problems = Vec::new();
    let is_rare = rare_sides().contains(&near);
    // What is rare meets what is usual.
    let far = sides().into_iter().filter(|far| !is_rare || is_usual(*far));
    for far in far.chain(rare_sides().into_iter().filter(|_| is_usual(near))) {
        // A task of its own, so that a panic names its cell.
        match tokio::spawn(cell(near, far)).await {
            Ok(found) => problems.extend(found),
            Err(panic) => problems.push(format!("{near} → {far}: {panic}")),
        }
    }
    problems
}

fn is_usual(side: Side) -> bool {
    [(Way::Stdio, Revision::V2025_11_25), (Way::Http, Revision::V2026_07_28)]
        .contains(&(side.way, side.revision))
}

async fn cell(near: Side, far: Side) -> Vec<String> {
    let mut problems = Vec::new();
    let mut world = World::new(near, far).await;
    for name in NAMES {
        if let Err(problem) = play(name, &mut world).await {
            problems.push(format!("{near} → {far}: {name}: {problem}"));
        }
    }
    // On a stream, the server has gone for good.
    let world = if far.way == Way::Stdio { World::new(near, far).await } else { world };
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
    for near in sides().into_iter().chain(rare_sides()) {
        cells.spawn(in_front(near));
    }
    let problems: Vec<_> = cells.join_all().await.into_iter().flatten().collect();
    assert!(problems.is_empty(), "{} problems\n{}", problems.len(), problems.join("\n"));
}
