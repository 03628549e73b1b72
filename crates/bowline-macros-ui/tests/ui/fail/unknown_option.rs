//! Options that do not exist.

use bowline::{prompt, tool};

#[tool(readonly)]
async fn look(#[arg(optional)] at: String) -> String {
    at
}

#[tool]
async fn see(#[arg(optional)] at: String) -> String {
    at
}

#[prompt(complete(language = languages))]
async fn review(code: String) -> String {
    code
}

fn main() {
    let _ = bowline::Server::new("test", "1.0.0").with(look).with(see).with(review);
}
