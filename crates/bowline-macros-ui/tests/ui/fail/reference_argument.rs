//! Arguments that nobody owns.

use bowline::tool;

#[tool]
async fn greet(name: &str, titles: Option<Vec<&str>>) -> String {
    format!("Hello, {name}! {titles:?}")
}

fn main() {
    let _ = bowline::Server::new("test", "1.0.0").with(greet);
}
