//! `#[server]`: the methods of a type.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bowline::{Completing, Context, server};
use serde_json::json;

use crate::client_of;

#[derive(Default)]
struct Counter {
    count: AtomicU64,
}

#[server]
impl Counter {
    /// Not marked.
    fn value(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Count on.
    #[tool(idempotent = false)]
    async fn add(
        &self,
        /// By how much.
        #[arg(default = 1)]
        amount: u64,
        _context: &Context,
    ) -> u64 {
        self.count.fetch_add(amount, Ordering::Relaxed) + amount
    }

    #[bowline::tool(name = "get")]
    fn current(&self) -> u64 {
        self.value()
    }

    #[tool]
    async fn owned(self: Arc<Self>) -> u64 {
        self.value()
    }

    #[tool]
    #[cfg(any())]
    async fn never(&self) -> Missing {}

    #[prompt(complete(word = Self::words))]
    async fn say(&self, word: String) -> String {
        format!("{word} {}", self.value())
    }

    async fn words(typed: Completing) -> Vec<String> {
        typed.matching(&["yes", "no"])
    }

    #[resource("counter://{name}")]
    async fn read(&self, name: String) -> Result<String, String> {
        Ok(format!("{name} {}", self.value()))
    }

    #[tool]
    async fn version() -> &'static str {
        "1"
    }
}

#[tokio::test]
async fn methods_share_one_value() {
    let counter = Arc::new(Counter::default());
    let client = client_of(Arc::clone(&counter)).await;
    assert_eq!(client.call_tool("add", json!({})).text().await.unwrap(), "1");
    assert_eq!(client.call_tool("add", json!({ "amount": 2 })).text().await.unwrap(), "3");
    assert_eq!(client.call_tool("get", json!({})).text().await.unwrap(), "3");
    assert_eq!(client.call_tool("owned", json!({})).text().await.unwrap(), "3");
    assert_eq!(client.call_tool("version", json!({})).text().await.unwrap(), "1");
    let got = client.get_prompt("say", &[("word", "yes")]).await.unwrap();
    assert_eq!(json!(got.messages)[0]["content"]["text"], "yes 3");
    let found = client.complete_prompt("say", ("word", "n"), &[]).await.unwrap();
    assert_eq!(found.completion.values, ["no"]);
    let read = client.read_resource("counter://it").await.unwrap();
    assert_eq!(json!(read.contents)[0]["text"], "it 3");
    // The value can be shared, and its methods can still be called.
    assert_eq!(counter.current(), 3);
    assert_eq!(Counter::version().await, "1");
}

#[tokio::test]
async fn only_what_is_marked_is_there() {
    let client = client_of(Counter::default()).await;
    let tools = client.list_tools().await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["add", "get", "owned", "version"]);
    assert_eq!(tools[0].description.as_deref(), Some("Count on."));
}

trait Store: Send + Sync + 'static {
    fn load(&self) -> String;
}

struct Fixed;

impl Store for Fixed {
    fn load(&self) -> String {
        "fixed".to_owned()
    }
}

struct Reader<S> {
    store: S,
}

#[server(crate = bowline)]
impl<S> Reader<S>
where
    S: Store,
{
    #[tool]
    async fn load(&self, twice: Option<bool>) -> String {
        self.store.load().repeat(if twice == Some(true) { 2 } else { 1 })
    }
}

#[tokio::test]
async fn types_may_be_generic() {
    let client = client_of(Reader { store: Fixed }).await;
    assert_eq!(
        client.call_tool("load", json!({ "twice": true })).text().await.unwrap(),
        "fixedfixed"
    );
}
