//! Collects the events of the audit on this thread.
//!
//! There is one subscriber for the whole process. Subscribers of threads come and go while other
//! tests run, and `tracing` may then miss events of those that stay.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use tracing::field::{Field, Visit};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};

/// The events so far, in order.
pub(crate) struct Trail {
    entries: Entries,
}

type Entries = Arc<Mutex<Vec<Entry>>>;

thread_local! {
    /// The trail of the test on this thread.
    static HERE: RefCell<Option<Entries>> = const { RefCell::new(None) };
}

impl Drop for Trail {
    fn drop(&mut self) {
        HERE.set(None);
    }
}

/// The fields of one event. Those that have no value are missing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Entry(BTreeMap<String, String>);

impl Entry {
    pub(crate) fn get(&self, field: &str) -> &str {
        self.0.get(field).map_or("", String::as_str)
    }

    /// The end of a request in one line, or what else it is about.
    pub(crate) fn line(&self) -> String {
        let name = ["gen_ai.tool.name", "gen_ai.prompt.name", "mcp.resource.uri"]
            .into_iter()
            .map(|field| self.get(field))
            .find(|name| !name.is_empty());
        match self.get("message") {
            "a request ended" => {
                let what = format!("{} {}", self.get("mcp.method.name"), name.unwrap_or_default());
                format!("{}: {}", what.trim(), self.get("outcome"))
            }
            message => format!("{message}: {}", self.get("why")),
        }
    }
}

struct Collector;

impl<S: Subscriber> Layer<S> for Collector {
    /// Whether anybody listens differs by thread.
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, event: &Metadata<'_>, _: Context<'_, S>) -> bool {
        event.target() == "bowline::audit" && HERE.with_borrow(Option::is_some)
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut entry = Entry::default();
        event.record(&mut entry);
        HERE.with_borrow(|here| {
            if let Some(entries) = here {
                entries.lock().unwrap().push(entry);
            }
        });
    }
}

impl Visit for Entry {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

impl Trail {
    pub(crate) fn new() -> Self {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            let subscriber = tracing_subscriber::registry().with(Collector);
            tracing::subscriber::set_global_default(subscriber).unwrap();
        });
        let entries = Entries::default();
        HERE.set(Some(Arc::clone(&entries)));
        Self { entries }
    }

    /// Waits until there are as many events as lines, which must be the same. Returns and forgets
    /// them.
    pub(crate) async fn until(&self, wanted: &[&str]) -> Vec<Entry> {
        let is_there = || self.entries.lock().unwrap().len() >= wanted.len();
        let looks = async {
            while !is_there() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        // What is missing is shown below.
        let _ = tokio::time::timeout(Duration::from_secs(120), looks).await;
        let entries = std::mem::take(&mut *self.entries.lock().unwrap());
        assert_eq!(entries.iter().map(Entry::line).collect::<Vec<_>>(), wanted);
        entries
    }
}
