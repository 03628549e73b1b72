//! Events: what happens on a server, reported to clients that want to know, even while they are
//! not connected. **Experimental**: the extension is a draft, and changes.
//!
//! ```no_run
//! use bowline::Server;
//! use bowline::events::{EventKind, Events};
//! use serde_json::json;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let events = Events::new().with(
//!     EventKind::new("order.paid", "An order was paid.")
//!         .filter(|event| event.principal == event.data["customer"].as_str()),
//! );
//! let server = Server::new("shop", "1.0.0").with(events.clone());
//! // Whenever it happens:
//! events.publish("order.paid", json!({ "customer": "ada", "order": 7 }))?;
//! # Ok(())
//! # }
//! ```
#![doc = include_str!("events/wire.md")]

mod deliver;
mod keep;
mod kind;
mod limits;
mod log;
mod methods;
mod secret;
mod shared;
mod subscription;

use std::sync::{Arc, Mutex, PoisonError};

use bowline_proto::json::Json;
use serde::Serialize;
use serde_json::Value;

pub use self::kind::{Candidate, EventKind};
pub use self::limits::EventLimits;
pub use self::secret::WebhookSecret;
use self::shared::Shared;
use self::subscription::Saved;
use crate::tasks::{StoreError, TaskStore};
use crate::{BuildError, Part, Parts};

/// The events of a server. Cheap to clone. See the [module](self).
#[derive(Clone)]
#[must_use = "events do nothing until they are those of a server"]
pub struct Events(Arc<Owner>);

/// Ends all deliveries when nobody has the events any more.
struct Owner {
    shared: Arc<Shared>,
    problem: Mutex<Option<String>>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.abort_all();
    }
}

/// Why an event was not published.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// There is no such kind.
    #[error("there is no event {0:?}; help: add it with `Events::with`")]
    Unknown(String),
    /// The data cannot be written as JSON.
    #[error("event {name:?}: the data cannot be written as JSON")]
    Json {
        /// Which kind.
        name: String,
        /// Why not.
        #[source]
        source: serde_json::Error,
    },
    /// The data is too long.
    #[error("event {name:?}: the data is {length} bytes long, {most} are allowed")]
    TooLong {
        /// Which kind.
        name: String,
        /// Its bytes.
        length: usize,
        /// [`EventLimits::payload`].
        most: usize,
    },
}

impl Default for Events {
    fn default() -> Self {
        Self::new()
    }
}

impl Events {
    /// No kinds of events yet.
    pub fn new() -> Self {
        Self::with_limits(EventLimits::default())
    }

    /// The same, with other limits.
    pub fn with_limits(limits: EventLimits) -> Self {
        Self(Arc::new(Owner { shared: Arc::new(Shared::new(limits)), problem: Mutex::default() }))
    }

    /// Adds a kind of event.
    pub fn with(self, mut kind: EventKind) -> Self {
        let compiled = kind.compile();
        let is_known = !self.0.shared.add(kind.clone());
        let problem = match compiled {
            Ok(()) => {
                is_known.then(|| format!("two kinds of events have the name {:?}", kind.name))
            }
            Err(problem) => Some(problem),
        };
        if let Some(problem) = problem {
            let mut first = self.0.problem.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert(problem);
        }
        self
    }

    /// Also delivers to this host, as URLs spell it, with its port: although it may not be public,
    /// and by plain `http` if subscribers say so. For receivers on the own network, and for tests.
    pub fn also_to(self, authority: &str) -> Self {
        match authority.parse() {
            Ok(authority) => self.0.shared.allow(authority),
            Err(_) => {
                let mut first = self.0.problem.lock().unwrap_or_else(PoisonError::into_inner);
                first.get_or_insert(format!("{authority:?} is not a host with a port"));
            }
        }
        self
    }

    /// Reports that something has happened. Returns the id of the event.
    ///
    /// # Errors
    /// When there is no such kind of event, or its data is too long.
    pub fn publish(&self, name: &str, data: impl Serialize) -> Result<String, PublishError> {
        let shared = &self.0.shared;
        let unknown = || PublishError::Unknown(name.to_owned());
        let kind = shared.kind(name).ok_or_else(unknown)?;
        let json = |source| PublishError::Json { name: name.to_owned(), source };
        let data: Value = serde_json::to_value(data).map_err(json)?;
        let length = data.to_string().len();
        let most = shared.limits.payload;
        if length > most {
            return Err(PublishError::TooLong { name: name.to_owned(), length, most });
        }
        Ok(shared.log.add(kind.name.as_str().into(), data, length))
    }

    /// Keeps subscriptions in a store, such as `bowline-redb`'s, and brings back those that are
    /// there: after all kinds were added. The store must be one of its own, not that of
    /// [`Tasks`](crate::tasks::Tasks). **Secret:** it contains what webhooks are signed with.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn keep_in(self, store: impl TaskStore) -> Result<Self, StoreError> {
        self.0.shared.keep_in(Arc::new(store)).await?;
        Ok(self)
    }

    /// The subscriptions, for keeping them elsewhere than in a store. **Secret:** it contains what
    /// webhooks are signed with.
    pub fn save(&self) -> Json {
        // Strings and numbers only.
        Json::new(&self.0.shared.save()).unwrap_or_else(|_| Json::empty_object())
    }

    /// Brings back what [`save`](Self::save) has returned. Subscriptions of kinds that no longer
    /// exist and those that have expired are left out. Returns how many there are now.
    ///
    /// # Errors
    /// When it is something else.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub fn restore(&self, saved: &Json) -> Result<usize, serde_json::Error> {
        let saved: Vec<Saved> = saved.parse()?;
        Ok(self.0.shared.restore(saved.into_iter().map(|saved| (saved, None)).collect()))
    }

    /// Waits until a subscription has come, gone, or been renewed since the last call returned. For
    /// one task, which [saves](Self::save) them then.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn changed(&self) {
        self.0.shared.changed.notified().await;
    }
}

impl Part for Events {
    fn add_to(self, parts: &mut Parts) {
        let problem = self.0.problem.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(reason) = problem {
            let error = BuildError::Extension { id: methods::ID.to_owned(), reason };
            parts.problem.get_or_insert(error);
        }
        methods::extension(&self).add_to(parts);
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Events")
    }
}
