//! Sample data: made-up weather, used when the real weather is not available.

use std::sync::OnceLock;

use serde::Deserialize;

use super::place::{self, Place};
use super::report::Conditions;

/// All samples.
pub(super) const JSON: &str = include_str!("sample.json");

/// How near a place must be to a sample, in degrees.
const NEAR: f64 = 1.0;

#[derive(Deserialize)]
struct Sample {
    #[serde(flatten)]
    place: Place,
    current: Conditions,
}

fn samples() -> &'static [Sample] {
    static SAMPLES: OnceLock<Vec<Sample>> = OnceLock::new();
    SAMPLES.get_or_init(|| serde_json::from_str(JSON).expect("the file is part of the program"))
}

/// Places that a location may mean; `None` when there is no sample.
pub(super) fn find(location: &str) -> Option<Vec<Place>> {
    if let Some(Ok(place)) = Place::from_coordinates(location) {
        return nearest(&place).map(|_| vec![place]);
    }
    let (name, _) = place::split(location);
    let has_name = |sample: &&Sample| sample.place.name.to_lowercase() == name.to_lowercase();
    let places = samples().iter().filter(has_name).map(|sample| sample.place.clone());
    let places = place::fitting(location, places.collect());
    (!places.is_empty()).then_some(places)
}

/// The weather at a place.
pub(super) fn conditions(place: &Place) -> Option<Conditions> {
    nearest(place).map(|sample| sample.current.clone())
}

fn nearest(place: &Place) -> Option<&'static Sample> {
    let distance = |sample: &Sample| {
        let (north, east) =
            (sample.place.latitude - place.latitude, sample.place.longitude - place.longitude);
        north.hypot(east)
    };
    let nearest = samples().iter().min_by(|one, two| distance(one).total_cmp(&distance(two)))?;
    (distance(nearest) <= NEAR).then_some(nearest)
}

/// The names of all places with samples.
pub(super) fn names() -> Vec<&'static str> {
    let mut names: Vec<_> = samples().iter().map(|sample| sample.place.name.as_str()).collect();
    names.dedup();
    names
}

/// The error for a place without a sample.
pub(super) fn missing(location: &str) -> String {
    format!("there is no sample for {location:?}; samples exist for {}", names().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_found_by_name_region_and_coordinates() {
        assert_eq!(find("san francisco").unwrap().len(), 1);
        assert_eq!(find("Springfield").unwrap().len(), 3);
        assert_eq!(find("Springfield, Illinois").unwrap().len(), 1);
        assert_eq!(find("37.8,-122.4").unwrap()[0].name, "37.8, -122.4");
        assert!(find("0,0").is_none());
        assert!(find("Atlantis").is_none());
        assert!(missing("Atlantis").contains("Tokyo"));
    }
}
