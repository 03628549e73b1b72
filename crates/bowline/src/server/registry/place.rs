//! Where a part that changes by itself was added, and what it can do there.

use std::sync::{Arc, PoisonError, Weak};

use super::{Inner, Registry};
use crate::server::nest::Nest;
use crate::server::part::Live;

/// Where a part was added. Does not keep the registry alive.
#[derive(Clone)]
pub(crate) struct Place {
    #[cfg_attr(not(feature = "client"), expect(dead_code, reason = "only proxies are live"))]
    inner: Weak<Inner>,
    #[cfg_attr(not(feature = "client"), expect(dead_code, reason = "only proxies are live"))]
    nest: Nest,
}

impl Registry {
    /// The parts that change by themselves.
    pub(crate) fn live(&self) -> Vec<Live> {
        self.inner.live.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Somebody subscribed to a resource.
    pub(crate) fn subscribed(&self, uri: &str) {
        for live in self.live() {
            live.part.subscribed(uri);
        }
    }

    /// Tells parts that change by themselves where they are.
    pub(super) fn enliven(&self, live: Vec<Live>) {
        if live.is_empty() {
            return;
        }
        let mut all = self.inner.live.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend(live.iter().cloned());
        drop(all);
        for Live { part, nest } in live {
            part.added_to(Place { inner: Arc::downgrade(&self.inner), nest });
        }
    }
}

#[cfg(feature = "client")]
mod renewing {
    use bowline_proto::session::Topic;

    use super::{Place, Registry};
    use crate::server::error::BuildError;
    use crate::server::part::{Entries, Parts};

    impl Place {
        /// Whether the registry is gone.
        pub(crate) fn is_gone(&self) -> bool {
            self.inner.strong_count() == 0
        }

        /// Whether both are in the same registry.
        pub(crate) fn is_same(&self, other: &Self) -> bool {
            self.inner.ptr_eq(&other.inner)
        }

        /// Replaces entries of this part by others, and leaves those of other parts alone. What
        /// cannot be added is left out, with the reason.
        pub(crate) fn renew(&self, old: &Entries, new: &Entries) -> Vec<BuildError> {
            let Some(registry) = self.registry() else { return Vec::new() };
            let [old, new] = [old, new].map(|entries| self.prefixed(entries));
            registry.update(|tables| tables.renew(&old, &new))
        }

        fn prefixed(&self, entries: &Entries) -> Entries {
            let mut parts = Parts { entries: entries.clone(), ..Parts::default() };
            for step in self.nest.steps() {
                parts.take_out(step);
            }
            parts.entries
        }

        /// A resource changed.
        pub(crate) fn resource_updated(&self, uri: &str) {
            if let Some(registry) = self.registry() {
                registry.resource_updated(uri);
            }
        }

        /// Whether anybody listens for changes of a resource.
        pub(crate) fn hears(&self, uri: &str) -> bool {
            let topic = Topic::Resource(uri.into());
            self.registry().is_some_and(|registry| registry.bus().is_heard(&topic))
        }

        /// Whether it is in a fleet.
        pub(crate) fn is_shared(&self) -> bool {
            self.registry().is_some_and(|registry| registry.bus().is_shared())
        }

        fn registry(&self) -> Option<Registry> {
            let inner = self.inner.upgrade()?;
            Some(Registry { inner, nest: self.nest.clone() })
        }
    }
}
