//! The shortest server.

use bowline::{Server, tool};

/// Greet somebody.
#[tool]
async fn greet(
    /** Whom to greet. */
    name: String,
) -> String {
    format!("Hello, {name}!")
}

#[tokio::main]
async fn main() -> Result<(), bowline::ServeError> {
    Server::new("hello", "1.0.0").with(greet).serve_stdio().await
}
