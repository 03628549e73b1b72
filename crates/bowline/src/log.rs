//! Sends [`tracing`] events as log messages to the client whose request is being handled.

use std::fmt;

use bowline_proto::model::LoggingLevel;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context as LayerContext;

use crate::Context;

/// A layer that sends what a handler logs to its client.
///
/// It sends events of handlers only, and only at the levels that the client asked for. It never
/// waits: when the outbox is full, events are dropped. Events of this library are not sent.
///
/// ```no_run
/// use tracing_subscriber::prelude::*;
///
/// tracing_subscriber::registry()
///     .with(bowline::ClientLog::default())
///     .with(tracing_subscriber::fmt::layer().with_writer(std::io::stderr))
///     .init();
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct ClientLog {}

impl<S: Subscriber> Layer<S> for ClientLog {
    fn on_event(&self, event: &Event<'_>, _: LayerContext<'_, S>) {
        let metadata = event.metadata();
        if metadata.target().starts_with("bowline") {
            return;
        }
        let Some(context) = Context::current() else { return };
        let level = level_of(*metadata.level());
        if !context.call.wants_log(level) {
            return;
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        context.logger(metadata.target()).try_log(level, fields.into_data());
    }
}

fn level_of(level: Level) -> LoggingLevel {
    match level {
        Level::ERROR => LoggingLevel::Error,
        Level::WARN => LoggingLevel::Warning,
        Level::INFO => LoggingLevel::Info,
        _ => LoggingLevel::Debug,
    }
}

#[derive(Default)]
struct Fields(Map<String, Value>);

impl Fields {
    /// A message alone is a string; with fields it is an object.
    fn into_data(mut self) -> Value {
        match self.0.remove("message") {
            Some(message) if self.0.is_empty() => message,
            Some(message) => {
                self.0.insert("message".to_owned(), message);
                Value::Object(self.0)
            }
            None => Value::Object(self.0),
        }
    }

    fn set(&mut self, field: &Field, value: Value) {
        self.0.insert(field.name().to_owned(), value);
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, value.into());
    }
}
