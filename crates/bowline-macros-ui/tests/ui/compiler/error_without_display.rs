//! An error that cannot be told.

use bowline::tool;

struct Trouble;

#[tool]
async fn weather() -> Result<String, Trouble> {
    Err(Trouble)
}

fn main() {
    let _ = bowline::Server::new("test", "1.0.0").with(weather);
}
