//! A function without an attribute, a type without `#[server]`.

async fn greet(name: String) -> String {
    format!("Hello, {name}!")
}

struct Counter;

fn main() {
    let _ = bowline::Server::new("test", "1.0.0").with(greet);
    let _ = bowline::Server::new("test", "1.0.0").with(std::sync::Arc::new(Counter));
}
