//! An argument whose type has no schema.

use bowline::tool;

struct Place {
    city: String,
}

#[tool]
async fn weather(place: Place) -> String {
    place.city
}

fn main() {
    let _ = bowline::Server::new("test", "1.0.0").with(weather);
}
