//! A crate that depends on neither `serde` nor `schemars`.
#![deny(warnings)]

use bowline::schemars::JsonSchema;
use bowline::serde::{Deserialize, Serialize};

/// A place.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(crate = "bowline::serde")]
#[schemars(crate = "bowline::schemars")]
struct Place {
    city: String,
}

/// The same place.
#[bowline::tool]
async fn same(place: Place, context: &bowline::Context) -> Result<Place, String> {
    if context.is_cancelled() { Err("cancelled".to_owned()) } else { Ok(place) }
}

/// The name of a place.
#[bowline::tool]
fn name(#[args] Place { city }: Place) -> String {
    city
}

/// Uses everything.
pub(crate) fn main() {
    let place = Place { city: "Oslo".to_owned() };
    assert_eq!(name().call(place), "Oslo");
    let _ = bowline::Server::new("places", "1.0.0").with((same, name));
}
