//! The connection of a session: opened, watched, closed, opened again.

use std::sync::Arc;

use bowline::Client;
use bowline::client::{ClientBuilder, CloseReason, Phase, State, StateWatch};
use tokio::sync::mpsc;

use super::dialog;
use super::event::{Event, Teller};
use super::log::Channel;
use crate::failure::Failure;
use crate::session::{Session, Settings, Tap, Tapped};
use crate::target::Resolved;

/// The connection of a session.
pub(crate) struct Link {
    pub(crate) resolved: Resolved,
    pub(crate) settings: Settings,
    /// Whether there is a person at the prompt to ask.
    pub(crate) asks: bool,
    session: Option<Session>,
    /// How often it was opened.
    pub(crate) opened: u64,
    pub(crate) events: mpsc::Sender<Event>,
    teller: Teller,
}

impl Link {
    /// A connection that is not open yet.
    pub(crate) fn new(
        resolved: Resolved,
        mut settings: Settings,
        asks: bool,
        events: mpsc::Sender<Event>,
    ) -> Self {
        let teller = Teller::new(events.clone());
        let tap = teller.clone();
        settings.tap = Some(Tap(Arc::new(move |tapped: Tapped<'_>| {
            tap.tell(match tapped {
                Tapped::Sent(text) => Event::Said(Channel::Sent, text.to_owned()),
                Tapped::Received(text) => Event::Said(Channel::Received, text.to_owned()),
                Tapped::Stderr(text) => Event::Said(Channel::Stderr, text.to_owned()),
                Tapped::Notification(notification) => Event::Notified(notification.clone()),
            });
        })));
        Self { resolved, settings, asks, session: None, opened: 0, events, teller }
    }

    /// Sends what would go to standard error as events instead.
    pub(crate) fn divert(&self) {
        let teller = self.teller.clone();
        self.settings.screen.divert(move |text| teller.tell(Event::Say(text.to_owned())));
    }

    /// Opens it, and closes what was open.
    ///
    /// # Errors
    /// When there is no connection.
    ///
    /// # Cancel safety
    /// What was started is ended.
    pub(crate) async fn open(&mut self) -> Result<(), Failure> {
        self.close().await;
        self.settings.is_again = self.opened > 0;
        self.opened += 1;
        let more = |builder: ClientBuilder| {
            // Even without any: they can be set later.
            let builder = builder.roots(self.settings.answers.roots.iter().cloned());
            if self.asks { dialog::listen(builder, &self.events) } else { builder }
        };
        let session = Session::open(&self.resolved, &self.settings, &more).await?;
        tokio::spawn(watch(session.client().watch(), self.opened, self.events.clone()));
        self.session = Some(session);
        Ok(())
    }

    pub(crate) async fn close(&mut self) {
        if let Some(session) = self.session.take() {
            session.close(None).await;
        }
    }

    pub(crate) fn client(&self) -> Option<&Client> {
        self.session.as_ref().map(Session::client)
    }

    /// How many events there was no room for, in words.
    pub(crate) fn missed(&self) -> Option<String> {
        match self.teller.missed() {
            0 => None,
            count => Some(format!("{count} lines came too fast to be shown")),
        }
    }

    /// Why the connection ended, if this state says so and it was not asked to.
    pub(crate) fn ended<'a>(&self, opened: u64, state: &'a State) -> Option<&'a CloseReason> {
        let is_over = opened == self.opened && state.phase == Phase::Closed;
        state.reason.as_ref().filter(|reason| is_over && **reason != CloseReason::Asked)
    }

    /// Shows every message on the wire, or stops.
    pub(crate) fn set_verbose(&mut self, is_verbose: bool) {
        self.settings.is_verbose = is_verbose;
        if let Some(session) = &self.session {
            session.journal().set_verbose(is_verbose);
        }
    }
}

/// Reports every state until the last.
async fn watch(mut states: StateWatch, opened: u64, events: mpsc::Sender<Event>) {
    while let Some(state) = states.changed().await {
        let is_last = state.phase == Phase::Closed;
        if events.send(Event::State(opened, state)).await.is_err() || is_last {
            return;
        }
    }
}
