//! A future that cannot move between threads.

use std::rc::Rc;

use bowline::tool;

async fn rest() {}

#[tool]
async fn count() -> usize {
    let shared = Rc::new(1);
    rest().await;
    *shared
}

fn main() {
    let _ = bowline::Server::new("test", "1.0.0").with(count);
}
