//! An MCP server. `server` has everything that it offers; the rest serves and tests it.

use bowline::{Server, tool};

/// Greet somebody by name.
#[tool]
async fn greet(/** Whom to greet. */ name: String) -> String {
    format!("Hello, {name}!")
}

fn server() -> Server {
    Server::new("NAME", env!("CARGO_PKG_VERSION")).with(greet)
}

#[tokio::main]
async fn main() -> Result<(), bowline::ServeError> {
    server().serve_stdio().await
}

#[cfg(test)]
mod tests {
    use bowline::testing;
    use serde_json::json;

    use super::server;

    #[tokio::test]
    async fn greets_in_every_revision_of_the_protocol() {
        testing::each_revision(async |client| {
            let client = client.connect(server()).await.unwrap();
            let answer = client.call_tool("greet", json!({ "name": "Ada" })).text().await;
            assert_eq!(answer.unwrap(), "Hello, Ada!");
        })
        .await;
    }
}
