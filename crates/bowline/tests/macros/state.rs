//! State that a function takes as a parameter: found when the server is built, or it is not built.

use std::sync::atomic::{AtomicU64, Ordering};

use bowline::{Context, Server, State, prompt, resource, server, testing, tool};
use serde_json::json;

#[derive(Default)]
struct Hits(AtomicU64);

/// Count a hit.
#[tool]
async fn hit(context: Context, hits: State<Hits>, by: u64) -> String {
    let before = hits.0.fetch_add(by, Ordering::Relaxed);
    format!("{} in {}", before + by, context.caller().revision)
}

/// Count without waiting.
#[tool]
fn count(hits: State<Hits>) -> u64 {
    hits.0.load(Ordering::Relaxed)
}

/// Ask about the hits.
#[prompt]
async fn explain(hits: State<Hits>) -> String {
    format!("Why {} hits?", hits.0.load(Ordering::Relaxed))
}

/// The hits.
#[resource("hits://all")]
async fn all(hits: State<Hits>) -> String {
    hits.0.load(Ordering::Relaxed).to_string()
}

struct Group;

#[server]
impl Group {
    /// Reset the hits.
    #[tool]
    async fn reset(&self, hits: State<Hits>, context: &Context) -> String {
        hits.0.store(0, Ordering::Relaxed);
        context.caller().revision.to_string()
    }
}

fn parts() -> Server {
    Server::new("hits", "1.0.0").with((hit, count, explain, all, Group))
}

#[tokio::test]
async fn parameters_of_type_state_are_what_the_server_was_given() {
    testing::each_revision(async |client| {
        let client = client.connect(parts().state(Hits::default())).await.unwrap();
        let hit = client.call_tool("hit", json!({ "by": 3 })).text().await.unwrap();
        assert!(hit.starts_with("3 in 20"), "{hit}");
        assert_eq!(client.call_tool("count", json!({})).text().await.unwrap(), "3");
        let tools = client.list_tools().await.unwrap();
        let hit = tools.iter().find(|tool| tool.name == "hit").unwrap();
        assert!(!hit.input_schema.as_str().contains("hits"), "{:?}", hit.input_schema);
        let read = client.read_resource("hits://all").await.unwrap();
        assert!(format!("{read:?}").contains("\"3\""), "{read:?}");
        client.call_tool("reset", json!({})).text().await.unwrap();
        let asked = client.get_prompt("explain", &[]).await.unwrap();
        assert!(format!("{asked:?}").contains("Why 0 hits?"), "{asked:?}");
    })
    .await;
}

#[tokio::test]
async fn a_server_without_the_state_that_a_part_takes_is_not_built() {
    let error = testing::connect(parts()).await.unwrap_err();
    let error = bowline::with_causes(&error);
    assert!(error.contains("Hits") && error.contains("hit"), "{error}");
}
