//! The weather as a sentence and as data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::place::Place;

/// The units of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Units {
    // With a doc comment on each variant the schema would be a list of constants, which fewer
    // clients display.
    #[default]
    Metric,
    Imperial,
    Kelvin,
}

impl Units {
    fn temperature(self, celsius: f64) -> (f64, &'static str) {
        match self {
            Self::Metric => (celsius, "°C"),
            Self::Imperial => (celsius * 1.8 + 32.0, "°F"),
            Self::Kelvin => (celsius + 273.15, " K"),
        }
    }

    fn wind(self, kmh: f64) -> (f64, &'static str) {
        match self {
            Self::Metric => (kmh, "km/h"),
            Self::Imperial => (kmh / 1.609_344, "mph"),
            Self::Kelvin => (kmh / 3.6, "m/s"),
        }
    }
}

/// The weather as measured: degrees Celsius, kilometres per hour, and a WMO code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Conditions {
    #[serde(default)]
    pub(super) time: Option<String>,
    #[serde(rename = "temperature_2m")]
    pub(super) temperature: f64,
    #[serde(rename = "relative_humidity_2m")]
    pub(super) humidity: f64,
    pub(super) weather_code: u8,
    #[serde(rename = "wind_speed_10m")]
    pub(super) wind_speed: f64,
    #[serde(rename = "wind_direction_10m")]
    pub(super) wind_direction: f64,
}

/// The weather at a place.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(super) struct Report {
    /// The place, with region and country
    location: String,
    latitude: f64,
    longitude: f64,
    /// In the unit given by `temperature_unit`
    temperature: f64,
    temperature_unit: String,
    /// In words, such as partly cloudy
    condition: String,
    /// Relative, in percent
    humidity: f64,
    /// In the unit given by `wind_unit`
    wind_speed: f64,
    wind_unit: String,
    /// Where the wind comes from
    wind_direction: String,
    /// When it was measured, in UTC
    time: Option<String>,
    /// Where this comes from
    source: String,
    /// Whether this is made up
    is_sample: bool,
    /// Why it is made up, if it is
    sample_reason: Option<String>,
    /// Other places with that name, if the user could not be asked which one is meant
    other_places: Vec<String>,
    #[serde(skip)]
    name: String,
    #[serde(skip)]
    strength: &'static str,
}

impl Report {
    pub(super) fn new(place: Place, now: &Conditions, units: Units) -> Self {
        let (temperature, temperature_unit) = units.temperature(now.temperature);
        let (wind_speed, wind_unit) = units.wind(now.wind_speed);
        Self {
            location: place.label(),
            latitude: place.latitude,
            longitude: place.longitude,
            temperature: tenths(temperature),
            temperature_unit: temperature_unit.trim().to_owned(),
            condition: condition(now.weather_code).to_owned(),
            humidity: now.humidity,
            wind_speed: tenths(wind_speed),
            wind_unit: wind_unit.to_owned(),
            wind_direction: direction(now.wind_direction).to_owned(),
            time: now.time.clone(),
            source: "Open-Meteo.com".to_owned(),
            is_sample: false,
            sample_reason: None,
            other_places: Vec::new(),
            name: place.name,
            strength: strength(now.wind_speed),
        }
    }

    pub(super) fn with_sample(mut self, reason: Option<String>) -> Self {
        self.is_sample = reason.is_some();
        if self.is_sample {
            "sample".clone_into(&mut self.source);
        }
        self.sample_reason = reason;
        self
    }

    pub(super) fn with_others(mut self, places: Vec<String>) -> Self {
        self.other_places = places;
        self
    }

    /// Everything in one text: some clients show only the first block of a result.
    pub(super) fn text(&self) -> String {
        let lines: Vec<String> = [self.sentence()].into_iter().chain(self.remarks()).collect();
        lines.join("\n")
    }

    fn sentence(&self) -> String {
        let Self { name, condition, strength, wind_direction, wind_unit, humidity, .. } = self;
        let unit = if self.temperature_unit == "K" { " K" } else { &self.temperature_unit };
        let (temperature, wind) = (whole(self.temperature), whole(self.wind_speed));
        format!(
            "Current weather in {name}: {temperature}{unit}, {condition} with {strength} winds \
             from the {wind_direction} at {wind} {wind_unit}. Humidity: {humidity:.0}%"
        )
    }

    /// What the reader must know as well: the source, and what was assumed.
    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        let source = match &self.sample_reason {
            Some(reason) => format!(
                "This is sample data for {}, made up and not measured ({reason}). Do not present \
                 it as the actual weather.",
                self.location
            ),
            None => {
                format!("{}, measured at {} UTC. Source: {}", self.location, self.at(), self.source)
            }
        };
        remarks.push(source);
        if !self.other_places.is_empty() {
            let others = self.other_places.join("; ");
            remarks
                .push(format!("Assuming {}. Other places with that name: {others}", self.location));
        }
        remarks
    }

    fn at(&self) -> &str {
        self.time.as_deref().unwrap_or("an unknown time")
    }
}

fn tenths(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

/// Rounds, and never to minus zero.
fn whole(number: f64) -> f64 {
    number.round() + 0.0
}

fn strength(kmh: f64) -> &'static str {
    match kmh {
        speed if speed < 20.0 => "light",
        speed if speed < 39.0 => "moderate",
        speed if speed < 62.0 => "strong",
        _ => "stormy",
    }
}

fn direction(degrees: f64) -> &'static str {
    const POINTS: [(&str, f64); 8] = [
        ("north", 22.5),
        ("northeast", 67.5),
        ("east", 112.5),
        ("southeast", 157.5),
        ("south", 202.5),
        ("southwest", 247.5),
        ("west", 292.5),
        ("northwest", 337.5),
    ];
    let turned = degrees.rem_euclid(360.0);
    POINTS.iter().find(|(_, end)| turned < *end).map_or("north", |(name, _)| name)
}

/// A code of the World Meteorological Organization in words (table 4677, as Open-Meteo uses it).
fn condition(code: u8) -> &'static str {
    match code {
        0 => "clear",
        1 => "mostly clear",
        2 => "partly cloudy",
        3 => "overcast",
        45 | 48 => "foggy",
        51 | 53 | 55 => "drizzle",
        56 | 57 => "freezing drizzle",
        61 => "light rain",
        63 => "rain",
        65 => "heavy rain",
        66 | 67 => "freezing rain",
        71 => "light snow",
        73 => "snow",
        75 => "heavy snow",
        77 => "snow grains",
        80 | 81 => "rain showers",
        82 => "violent rain showers",
        85 | 86 => "snow showers",
        95 => "thunderstorms",
        96 | 99 => "thunderstorms with hail",
        _ => "unknown conditions",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(units: Units) -> Report {
        let place = super::super::sample::find("Reykjavik").unwrap().remove(0);
        let conditions = Conditions {
            time: None,
            temperature: -0.2,
            humidity: 80.4,
            weather_code: 71,
            wind_speed: 36.0,
            wind_direction: 359.0,
        };
        Report::new(place, &conditions, units)
    }

    #[test]
    fn reports_use_the_requested_units() {
        let weather = "light snow with moderate winds from the north at";
        for (units, expected) in [
            (Units::Metric, format!("0°C, {weather} 36 km/h. Humidity: 80%")),
            (Units::Imperial, format!("32°F, {weather} 22 mph. Humidity: 80%")),
            (Units::Kelvin, format!("273 K, {weather} 10 m/s. Humidity: 80%")),
        ] {
            let expected = format!("Current weather in Reykjavik: {expected}");
            assert_eq!(report(units).sentence(), expected);
        }
        assert_eq!(report(Units::Kelvin).temperature, 273.0);
    }

    #[test]
    fn wind_directions() {
        let around =
            [0.0, 45.0, 90.0, 135.0, 180.0, 225.0, 270.0, 315.0, 360.0, -90.0].map(direction);
        assert_eq!(around[..3], ["north", "northeast", "east"]);
        assert_eq!(around[6..], ["west", "northwest", "north", "west"]);
    }
}
