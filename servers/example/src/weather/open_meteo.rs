//! Open-Meteo: finds places and their weather. It needs no API key.

use std::fmt::Write as _;

use bowline_serve::fetch::{Fetch, FetchError};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::place::{self, Place};
use super::report::Conditions;

pub(super) const WEATHER_URL: &str = "https://api.open-meteo.com";
pub(super) const GEOCODING_URL: &str = "https://geocoding-api.open-meteo.com";

/// The values to ask for, as the service names them.
const CURRENT: &str =
    "temperature_2m,relative_humidity_2m,weather_code,wind_speed_10m,wind_direction_10m";

/// The service.
pub(super) struct OpenMeteo {
    weather: String,
    geocoding: String,
    fetch: Fetch,
}

/// A place, as the service describes it.
#[derive(Deserialize)]
struct Located {
    name: String,
    admin1: Option<String>,
    country: Option<String>,
    latitude: f64,
    longitude: f64,
    #[serde(default)]
    population: u64,
}

impl OpenMeteo {
    pub(super) fn new(weather: String, geocoding: String) -> Self {
        let base = |url: String| url.trim_end_matches('/').to_owned();
        Self { weather: base(weather), geocoding: base(geocoding), fetch: Fetch::default() }
    }

    /// Places that a location may mean, the most likely first.
    pub(super) async fn find(&self, location: &str) -> Result<Vec<Place>, FetchError> {
        if let Some(place) = Place::from_coordinates(location) {
            return place
                .map(|place| vec![place])
                .map_err(|reason| FetchError::Url { url: location.to_owned(), reason });
        }
        let (name, _) = place::split(location);
        let url = format!(
            "{}/v1/search?name={}&count=20&language=en&format=json",
            self.geocoding,
            encoded(name)
        );
        let mut answer = self.fetch.json(&url).await?;
        // The list is missing if nothing was found.
        let results =
            answer.get_mut("results").map_or_else(|| Value::Array(Vec::new()), Value::take);
        let located: Vec<Located> = read(&url, results)?;
        let places = located.into_iter().map(|it| Place {
            name: it.name,
            region: it.admin1,
            country: it.country,
            latitude: it.latitude,
            longitude: it.longitude,
            population: it.population,
        });
        Ok(place::fitting(location, places.collect()))
    }

    /// The weather at a place.
    pub(super) async fn conditions(&self, place: &Place) -> Result<Conditions, FetchError> {
        let Place { latitude, longitude, .. } = place;
        let url = format!(
            "{}/v1/forecast?latitude={latitude}&longitude={longitude}&current={CURRENT}",
            self.weather
        );
        let mut answer = self.fetch.json(&url).await?;
        read(&url, answer.get_mut("current").map_or(Value::Null, Value::take))
    }
}

fn read<T: DeserializeOwned>(url: &str, value: Value) -> Result<T, FetchError> {
    serde_json::from_value(value)
        .map_err(|error| FetchError::Unexpected { url: url.to_owned(), reason: error.to_string() })
}

/// Percent-encodes a word for a URL.
fn encoded(word: &str) -> String {
    let mut text = String::new();
    for byte in word.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(byte.into());
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::encoded;

    #[test]
    fn names_are_percent_encoded() {
        assert_eq!(encoded("San José & co."), "San%20Jos%C3%A9%20%26%20co.");
    }
}
