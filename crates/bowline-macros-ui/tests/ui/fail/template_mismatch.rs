//! Parts of a URI that are not the parameters.

use bowline::resource;

#[resource("users://{id}")]
async fn missing() -> String {
    String::new()
}

#[resource("users://{id}")]
async fn extra(id: u64, name: String) -> String {
    format!("{id} {name}")
}

fn main() {
    let _ = bowline::Server::new("test", "1.0.0").with(missing).with(extra);
}
