//! Lets `bowline tap --view` see what passes through a bridge on standard input and output.

#[cfg(unix)]
use bowline_gateway::observe::{Channel, Framing, Observing};
use bowline_gateway::observe::{Observer, Watch};
use bowline_gateway::session_file::Way;

#[cfg(unix)]
use crate::redact::Redactor;
use crate::target::Resolved;

/// The socket that viewers find, and what they see. Without a hub there is a bridge, and nothing to
/// view.
pub(super) struct Viewed {
    #[cfg(unix)]
    open: Option<(Observer, bowline_gateway::hub::Door)>,
}

impl Viewed {
    #[cfg(unix)]
    pub(super) fn open(resolved: &Resolved) -> Self {
        use bowline_gateway::hub;
        use bowline_gateway::session_file::{Opening, TapOpening};
        let redactor = Redactor::new(resolved.secrets());
        let mut opening = Opening::now(crate::session::shown(&resolved.location, &redactor));
        let (name, pid) =
            (format!("{} (bridge)", redactor.text(&resolved.name)), std::process::id());
        opening.tap = Some(TapOpening { name, pid, client: crate::tap::client() });
        // Nothing is recorded, so nothing can fail.
        let (recorder, warn) = (None, Box::new(|_: &str| {}));
        let observing = Observing { opening, redactor, recorder, warn };
        let open = Observer::start(observing).ok().and_then(|observer| {
            let door = hub::open(&hub::folder(), &observer).ok()?;
            Some((observer, door))
        });
        Self { open }
    }

    #[cfg(not(unix))]
    pub(super) fn open(_: &Resolved) -> Self {
        Self {}
    }

    /// Watches what goes one way.
    #[cfg(unix)]
    pub(super) fn watch(&self, way: Way) -> Option<Watch> {
        let (observer, _) = self.open.as_ref()?;
        let framing = Framing::Lines;
        Some(observer.watch(Channel { way: Some(way), exchange: 0, framing }))
    }

    #[cfg(not(unix))]
    pub(super) fn watch(&self, _: Way) -> Option<Watch> {
        None
    }

    /// What shows things to viewers.
    #[cfg(unix)]
    pub(super) fn observer(&self) -> Option<Observer> {
        self.open.as_ref().map(|(observer, _)| observer.clone())
    }

    #[cfg(not(unix))]
    pub(super) fn observer(&self) -> Option<Observer> {
        None
    }
}

#[cfg(unix)]
impl Drop for Viewed {
    fn drop(&mut self) {
        if let Some((observer, _)) = &self.open {
            observer.end(None);
        }
    }
}
