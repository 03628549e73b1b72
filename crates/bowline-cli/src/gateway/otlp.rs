//! Where a gateway sends its spans and metrics.

use std::sync::Arc;
use std::time::Duration;

use bowline::with_causes;
use bowline_gateway::gateway::{Destination, Telemetry};
use bowline_web::Url;
use http::{HeaderName, HeaderValue};

use super::read::Read;

/// How long the end of the gateway waits for what is still to be sent.
pub(super) const FLUSH: Duration = Duration::from_secs(3);

/// What sends, and where.
#[derive(Clone)]
pub(super) struct Sending {
    to: Destination,
    telemetry: Arc<Telemetry>,
}

impl Sending {
    pub(super) fn telemetry(&self) -> Arc<Telemetry> {
        Arc::clone(&self.telemetry)
    }
}

/// What sends spans and metrics from now on, if the files say where: what does so already, unless
/// they say something else.
///
/// # Errors
/// When the endpoint or a header is wrong.
pub(super) fn follow(read: &Read, known: Option<Sending>) -> Result<Option<Sending>, String> {
    let Some(to) = destination(read)? else { return Ok(None) };
    if let Some(known) = known.filter(|known| known.to == to) {
        return Ok(Some(known));
    }
    let started = Telemetry::start(to.clone());
    let telemetry = started.map_err(|error| format!("telemetry.otlp: {}", with_causes(&error)))?;
    Ok(Some(Sending { to, telemetry: Arc::new(telemetry) }))
}

/// Where the files want it to go.
///
/// # Errors
/// When the endpoint or a header is wrong.
pub(super) fn destination(read: &Read) -> Result<Option<Destination>, String> {
    let Some(endpoint) = &read.telemetry.otlp else { return Ok(None) };
    let endpoint = Url::parse(endpoint).map_err(|why| {
        let help = "help: such as http://127.0.0.1:4318";
        format!("telemetry.otlp: expected {why}, found {endpoint:?}; {help}")
    })?;
    let mut to = Destination::new(endpoint);
    if let Some(name) = &read.settings.name {
        to.service.clone_from(name);
    }
    for (name, value) in &read.telemetry.otlp_headers {
        let wrong = |what| format!("telemetry.otlp_headers.{name}: {what}");
        let header = name.parse::<HeaderName>().map_err(|_| wrong("not a name of a header"))?;
        let mut value =
            HeaderValue::from_str(value).map_err(|_| wrong("a header cannot have this value"))?;
        value.set_sensitive(true);
        to.headers.push((header, value));
    }
    Ok(Some(to))
}
