//! Places: what a location may mean, and which of several is meant.

use bowline::model::ElicitSchema;
use bowline::{AskError, Context, Elicited, HandlerError};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// How many places are offered to choose from.
const MAX_CHOICES: usize = 8;

/// One place must have this many times the people of any other to be meant without asking.
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
    /// The name with whatever tells it apart from others of that name.
    pub(super) fn label(&self) -> String {
        let parts = [Some(&self.name), self.region.as_ref(), self.country.as_ref()];
        let mut label: Vec<&str> = Vec::new();
        for part in parts.into_iter().flatten() {
            // Cities that are regions of their own, such as Berlin.
            if label.last() != Some(&part.as_str()) {
                label.push(part);
            }
        }
        label.join(", ")
    }

    /// A place that is given as `latitude,longitude`.
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
                "{text:?} is nowhere: latitudes go from -90 to 90, longitudes from -180 to 180"
            )));
        }
        let name = format!("{latitude}, {longitude}");
        let place = Self { name, region: None, country: None, latitude, longitude, population: 0 };
        Some(Ok(place))
    }

    /// Whether region or country are what was said behind the name.
    fn is_in(&self, said: &str) -> bool {
        let said = said.to_lowercase();
        let parts = [self.region.as_ref(), self.country.as_ref()];
        parts.into_iter().flatten().any(|part| part.to_lowercase().starts_with(&said))
    }
}

/// Takes `Paris, Texas` apart: the name to look for, and what else was said.
pub(super) fn split(location: &str) -> (&str, Option<&str>) {
    match location.split_once(',') {
        Some((name, rest)) if !rest.trim().is_empty() => (name.trim(), Some(rest.trim())),
        _ => (location.trim_end_matches(',').trim(), None),
    }
}

/// Leaves those that fit best: in the region that was said, and of that very name.
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
    /// Others that may have been meant, where nobody could be asked.
    pub(super) also: Vec<String>,
}

/// The one that is meant: the only one, the one that outshines the others, or the one that the user
/// picks. Who cannot be asked gets the first, and is told of the others.
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
            let at = at.ok_or_else(|| HandlerError::failed("none of the places was picked"))?;
            Ok(Chosen { place: places.swap_remove(at), also: Vec::new() })
        }
        Ok(Elicited::Declined | Elicited::Cancelled) => Err(HandlerError::failed(format!(
            "the user did not say which {location} is meant; name one of: {}",
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
    fn coordinates_are_told_from_names() {
        let at = |text| Place::from_coordinates(text);
        assert_eq!(at(" 48.86, 2.35").unwrap().unwrap().longitude, 2.35);
        assert!(at("Paris, Texas").is_none());
        assert!(at("Paris").is_none());
        assert!(at("91,0").unwrap().unwrap_err().contains("nowhere"));
        assert!(at("NaN,0").unwrap().is_err());
    }

    #[test]
    fn what_is_said_behind_a_name_counts() {
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
    fn a_big_city_is_meant_without_asking() {
        assert!(outshines(&[place("a", "x", 1_000), place("a", "y", 100)]));
        assert!(!outshines(&[place("a", "x", 999), place("a", "y", 100)]));
        assert!(!outshines(&[place("a", "x", 0), place("a", "y", 0)]));
        assert!(outshines(&[place("a", "x", 0)]));
    }
}
