//! The weather's tool and resources.

mod open_meteo;
mod place;
mod report;
mod sample;

use std::sync::Arc;

use bowline::{Completing, Context, Described, HandlerError, Parts, Resource, Structured, Tool};
use bowline_serve::fetch::FetchError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::open_meteo::OpenMeteo;
use self::place::{Chosen, Place};
use self::report::{Conditions, Report, Units};

/// Where the weather comes from.
#[derive(Debug, Clone, clap::Args)]
pub struct Settings {
    /// Where the weather comes from
    #[arg(long, value_enum, value_name = "SOURCE", default_value_t)]
    pub weather: Source,

    /// Base URL of Open-Meteo's weather API, or of a compatible service
    #[arg(long, value_name = "URL", default_value = open_meteo::WEATHER_URL)]
    pub weather_url: String,

    /// Base URL of Open-Meteo's geocoding API, or of a compatible service
    #[arg(long, value_name = "URL", default_value = open_meteo::GEOCODING_URL)]
    pub geocoding_url: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            weather: Source::default(),
            weather_url: open_meteo::WEATHER_URL.to_owned(),
            geocoding_url: open_meteo::GEOCODING_URL.to_owned(),
        }
    }
}

/// Where the weather comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Source {
    /// Open-Meteo, or sample data when it cannot be reached
    #[default]
    Auto,
    /// Open-Meteo only
    OpenMeteo,
    /// Sample data only, labelled as such; nothing is sent anywhere
    Sample,
}

/// The weather's tools and resources.
pub(crate) fn tools(settings: Settings) -> Parts {
    let weather = Arc::new(Weather::new(settings));
    let read = Arc::clone(&weather);
    let current = Tool::new("weather_current", move |context: Context, wanted: Wanted| {
        let weather = Arc::clone(&weather);
        async move { weather.answer(&context, wanted).await }
    })
    .title("Weather Information")
    .description("Get current weather information for any location worldwide")
    .read_only()
    .open_world(true);
    let now = Resource::new("weather://current/{location}", "current", move |place: Located| {
        let weather = Arc::clone(&read);
        async move { weather.report(None, &place.location, Units::Metric).await.map(Structured) }
    })
    .title("Weather at a place")
    .description("The current weather there, in metric units")
    .mime_type("application/json")
    .complete("location", |typed: Completing| async move { typed.matching(&sample::names()) });
    let samples = Resource::text("weather://samples", "samples", sample::JSON)
        .title("Samples")
        .description("Made-up weather, used when the real weather is not available")
        .mime_type("application/json");
    let mut parts = Parts::default();
    parts.add((current, now, samples));
    parts
}

#[derive(Deserialize, JsonSchema)]
struct Wanted {
    /// City name, address, or coordinates (latitude,longitude)
    location: String,
    /// Temperature units to use in response
    #[serde(default)]
    units: Units,
}

#[derive(Deserialize, JsonSchema)]
struct Located {
    location: String,
}

/// The weather, from the service or from sample data.
struct Weather {
    service: Option<OpenMeteo>,
    has_samples: bool,
}

/// Places that may be meant, and whether their weather is sample data.
#[derive(Serialize, Deserialize)]
struct Found {
    places: Vec<Place>,
    /// Why sample data is used, if it is.
    sample: Option<String>,
}

impl Weather {
    fn new(settings: Settings) -> Self {
        let has_samples = settings.weather != Source::OpenMeteo;
        let service = (settings.weather != Source::Sample)
            .then(|| OpenMeteo::new(settings.weather_url, settings.geocoding_url));
        Self { service, has_samples }
    }

    async fn answer(
        &self,
        context: &Context,
        wanted: Wanted,
    ) -> Result<Described<Report>, HandlerError> {
        let report = self.report(Some(context), &wanted.location, wanted.units).await?;
        let text = report.text();
        Ok(Structured(report).with_text(text))
    }

    /// The weather at a place. Without a context, the user is not asked which place is meant.
    async fn report(
        &self,
        context: Option<&Context>,
        location: &str,
        units: Units,
    ) -> Result<Report, HandlerError> {
        let location = location.trim();
        if location.is_empty() {
            return Err(HandlerError::failed("location is empty: name a place"));
        }
        let found = match context {
            // A question to the user makes a modern client send the call again.
            Some(context) => context.once("places", self.find(location)).await,
            None => self.find(location).await,
        };
        let found = found.map_err(HandlerError::failed)?;
        let Chosen { place, also } = place::choose(context, location, found.places).await?;
        let (conditions, sample) = self.conditions(&place, found.sample).await?;
        Ok(Report::new(place, &conditions, units).with_sample(sample).with_others(also))
    }

    /// The places that may be meant; at least one.
    async fn find(&self, location: &str) -> Result<Found, String> {
        let Some(service) = &self.service else {
            let places = sample::find(location).ok_or_else(|| sample::missing(location))?;
            return Ok(Found {
                places,
                sample: Some("the server was started with --weather sample".to_owned()),
            });
        };
        match service.find(location).await {
            Ok(places) if places.is_empty() => Err(format!(
                "there is no place called {location:?}: try another spelling, add a region or country \
                 as in \"Paris, Texas\", or give coordinates as in \"48.86,2.35\""
            )),
            Ok(places) => Ok(Found { places, sample: None }),
            Err(error) => {
                let reason = self.failing(&error)?;
                let places = sample::find(location)
                    .ok_or_else(|| format!("{reason}; {}", sample::missing(location)))?;
                Ok(Found { places, sample: Some(reason) })
            }
        }
    }

    /// The conditions, and why they are sample data, if they are.
    async fn conditions(
        &self,
        place: &Place,
        sample: Option<String>,
    ) -> Result<(Conditions, Option<String>), HandlerError> {
        let reason = match (&self.service, sample) {
            (Some(service), None) => match service.conditions(place).await {
                Ok(conditions) => return Ok((conditions, None)),
                Err(error) => self.failing(&error).map_err(HandlerError::failed)?,
            },
            (_, reason) => reason.unwrap_or_default(),
        };
        match sample::conditions(place) {
            Some(conditions) => Ok((conditions, Some(reason))),
            None => {
                let missing = sample::missing(&place.label());
                Err(HandlerError::failed(format!("{reason}; {missing}")))
            }
        }
    }

    /// Why sample data is used after the service failed; an error if it may not be.
    fn failing(&self, error: &FetchError) -> Result<String, String> {
        tracing::warn!(%error, "the weather service failed");
        let reason = format!("the weather service failed: {error}");
        if self.has_samples { Ok(reason) } else { Err(reason) }
    }
}
