//! Options with a wrong value, or that another attribute has.

use bowline::{Completing, prompt, resource, tool};

#[tool(timeout = "30")]
async fn no_unit() {}

#[tool(timeout = 30)]
async fn number() {}

#[tool(ui = "https://example.com/app")]
async fn not_an_app() {}

#[tool(read_only = 1)]
async fn not_a_switch() {}

#[tool(title)]
async fn no_value() {}

#[tool(meta = "a")]
async fn no_list() {}

#[prompt(timeout = "30s")]
async fn no_timeout() -> String {
    String::new()
}

#[resource("a:b", read_only)]
async fn no_hint() -> String {
    String::new()
}

#[prompt(complete(word = self.words))]
async fn no_self(word: String) -> String {
    word
}

async fn words(typed: Completing) -> Vec<String> {
    typed.matching(&["a"])
}

fn main() {
    let _ = bowline::Server::new("test", "1.0.0").with((no_unit, number, no_self));
    let _ = words;
}
