//! A server that greets, with Bowline.

use bowline::{Server, tool};

/// Greets someone.
#[tool]
async fn greet(name: String) -> String {
    format!("Hello, {name}!")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), bowline::ServeError> {
    Server::new("hello", "1.0.0").with(greet).serve_stdio().await
}
