//! Attributes where they cannot be.

use bowline::{Context, server, tool};

#[tool]
struct Greeter;

#[tool]
async fn generic<T>(value: T) -> T {
    value
}

#[tool]
async fn twice(first: Context, second: &Context) -> bool {
    first.is_cancelled() || second.is_cancelled()
}

struct Counter;

#[server]
impl Counter {
    #[tool]
    async fn add(&mut self) {}

    #[tool]
    async fn name(&self) -> &str {
        "counter"
    }
}

fn main() {
    let _ = bowline::Server::new("test", "1.0.0").with(generic).with(twice).with(Counter);
}
