//! Places: what a location may mean, and which of several is meant.

use bowline::model::ElicitSchema;
use bowline::{AskError, Context, Elicited, HandlerError};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The most places that a user is offered.
const MAX_CHOICES: usize = 8;

/// A place with this many times the population of any other is chosen without asking.
const OUTSHINES: u64 = 10;

/// A place on earth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Place {
    pub(super) name: String,
    pub(super) region: Option<String>,
    pub(super) country: Option<String>,
    pub(super) latitude: f64,
    pub(super) longitude: f64,
    #[serde(default)]
    pub(super) population: u64,
}

impl Place {
    /// The name with region and country.
    pub(super) fn label(&self) -> String {
        let parts = [Some(&self.name), self.region.as_ref(), self.country.as_ref()];
        let mut label: Vec<&str> = Vec::new();
        for part in parts.into_iter().flatten() {
            // Some cities are regions of their own, such as Berlin.
            if label.last() != Some(&part.as_str()) {
                label.push(part);
            }
        }
        label.join(", ")
    }

    /// Parses `latitude,longitude`; `None` if the text is something else.
    ///
    /// # Errors
    /// When there is no such point on earth.
    pub(super) fn from_coordinates(text: &str) -> Option<Result<Self, String>> {
        let (latitude, longitude) = text.split_once(',')?;
        let latitude: f64 = latitude.trim().parse().ok()?;
        let longitude: f64 = longitude.trim().parse().ok()?;
        let (north, east) = (-90.0..=90.0, -180.0..=180.0);
        if !north.contains(&latitude) || !east.contains(&longitude) {
            return Some(Err(format!(
                "{text:?} is not on earth: expected a latitude from -90 to 90 and a longitude from -180 to 180"
            )));
        }
        let name = format!("{latitude}, {longitude}");
        let place = Self { name, region: None, country: None, latitude, longitude, population: 0 };
        Some(Ok(place))
    }

    /// Whether the region or country begins with this text.
    fn is_in(&self, said: &str) -> bool {
        let said = said.to_lowercase();
        let parts = [self.region.as_ref(), self.country.as_ref()];
        parts.into_iter().flatten().any(|part| part.to_lowercase().starts_with(&said))
    }
}

/// Splits `Paris, Texas` into the name and the region or country.
pub(super) fn split(location: &str) -> (&str, Option<&str>) {
    match location.split_once(',') {
        Some((name, rest)) if !rest.trim().is_empty() => (name.trim(), Some(rest.trim())),
        _ => (location.trim_end_matches(',').trim(), None),
    }
}

/// Keeps the best matches: in the given region, and with exactly the given name if there are any.
pub(super) fn fitting(location: &str, places: Vec<Place>) -> Vec<Place> {
    let (name, said) = split(location);
    let within: Vec<Place> = match said {
        Some(said) => places.into_iter().filter(|place| place.is_in(said)).collect(),
        None => places,
    };
    let has_name = |place: &Place| place.name.to_lowercase() == name.to_lowercase();
    if within.iter().any(has_name) {
        return within.into_iter().filter(has_name).collect();
    }
    within
}

/// The place that is meant.
pub(super) struct Chosen {
    pub(super) place: Place,
    /// Other candidates, if the user could not be asked.
    pub(super) also: Vec<String>,
}

/// Chooses a place: the only one, the one that is far larger than the others, or the one that the
/// user picks. Without a user to ask, it is the first, and the others are listed.
pub(super) async fn choose(
    context: Option<&Context>,
    location: &str,
    mut places: Vec<Place>,
) -> Result<Chosen, HandlerError> {
    places.truncate(MAX_CHOICES);
    let labels: Vec<String> = places.iter().map(Place::label).collect();
    let first = |mut places: Vec<Place>, also: &[String]| {
        let place = places.drain(..).next();
        let place = place.ok_or_else(|| HandlerError::failed("no such place"))?;
        Ok(Chosen { place, also: also.to_vec() })
    };
    if outshines(&places) {
        return first(places, &[]);
    }
    let Some(context) = context else { return first(places, &labels[1..]) };
    let message = format!("There are several places called {location}. Which one is meant?");
    match context.ask("place").elicit_form(message, form(&labels)?).await {
        Ok(Elicited::Accepted(filled)) => {
            let picked = filled.get("place").and_then(|place| place.as_str());
            let at = labels.iter().position(|label| Some(label.as_str()) == picked);
            let at =
                at.ok_or_else(|| HandlerError::failed("the user picked none of the places"))?;
            Ok(Chosen { place: places.swap_remove(at), also: Vec::new() })
        }
        Ok(Elicited::Declined | Elicited::Cancelled) => Err(HandlerError::failed(format!(
            "the user did not choose which {location} is meant; name one of: {}",
            labels.join("; ")
        ))),
        Err(AskError::Unsupported { .. } | AskError::Revision(_)) => first(places, &labels[1..]),
        Err(error) => Err(error.into()),
    }
}

fn outshines(places: &[Place]) -> bool {
    match places {
        [] | [_] => true,
        [first, others @ ..] => {
            let next = others.iter().map(|place| place.population).max().unwrap_or(0);
            first.population > 0 && first.population >= next.saturating_mul(OUTSHINES)
        }
    }
}

fn form(labels: &[String]) -> Result<ElicitSchema, HandlerError> {
    let form = json!({
        "type": "object",
        "properties": { "place": { "type": "string", "title": "Place", "enum": labels } },
        "required": ["place"],
    });
    serde_json::from_value(form).map_err(|error| HandlerError::failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str, region: &str, population: u64) -> Place {
        Place {
            name: name.to_owned(),
            region: Some(region.to_owned()),
            country: Some("United States".to_owned()),
            latitude: 0.0,
            longitude: 0.0,
            population,
        }
    }

    #[test]
    fn coordinates_are_distinguished_from_names() {
        let at = |text| Place::from_coordinates(text);
        assert_eq!(at(" 48.86, 2.35").unwrap().unwrap().longitude, 2.35);
        assert!(at("Paris, Texas").is_none());
        assert!(at("Paris").is_none());
        assert!(at("91,0").unwrap().unwrap_err().contains("not on earth"));
        assert!(at("NaN,0").unwrap().is_err());
    }

    #[test]
    fn the_region_narrows_the_choice() {
        let places = || {
            vec![
                place("Portland", "Oregon", 2),
                place("Portland", "Maine", 1),
                place("Port", "Oregon", 9),
            ]
        };
        let regions = |location: &str| {
            let fitting = fitting(location, places());
            fitting.into_iter().filter_map(|place| place.region).collect::<Vec<_>>()
        };
        assert_eq!(regions("portland"), ["Oregon", "Maine"]);
        assert_eq!(regions("Portland, maine"), ["Maine"]);
        assert_eq!(regions("Portland, United"), ["Oregon", "Maine"]);
        assert_eq!(regions("Portland, Chile"), [""; 0]);
        assert_eq!(split("Tokyo,"), ("Tokyo", None));
    }

    #[test]
    fn a_big_city_is_chosen_without_asking() {
        assert!(outshines(&[place("a", "x", 1_000), place("a", "y", 100)]));
        assert!(!outshines(&[place("a", "x", 999), place("a", "y", 100)]));
        assert!(!outshines(&[place("a", "x", 0), place("a", "y", 0)]));
        assert!(outshines(&[place("a", "x", 0)]));
    }
}
