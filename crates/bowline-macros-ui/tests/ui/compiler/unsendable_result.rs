//! Results that cannot be sent.

use bowline::tool;

struct Weather;

#[tool]
async fn weather() -> Weather {
    Weather
}

#[tool]
async fn forecast() -> Result<Weather, String> {
    Ok(Weather)
}

fn main() {
    let _ = bowline::Server::new("test", "1.0.0").with(weather).with(forecast);
}
