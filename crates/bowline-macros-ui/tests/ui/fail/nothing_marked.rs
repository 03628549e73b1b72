//! `#[server]` without anything in it.

use bowline::server;

struct Counter;

#[server]
impl Counter {
    async fn add(&self) {}
}

fn main() {
    let _ = bowline::Server::new("test", "1.0.0").with(Counter);
}
