//! The connection of a session: opened, watched, ended, opened again.

use std::sync::Arc;

use bowline::Client;
use tokio::sync::mpsc;

use super::event::{Event, Teller};
use super::journal::From;
use super::question;
use crate::failure::Failure;
use crate::screen::Screen;
use crate::session::{Session, Settings, Tap, Tapped};
use crate::target::Resolved;

/// The connection of a session.
pub(crate) struct Link {
    resolved: Resolved,
    settings: Settings,
    /// Whether questions of the server go to the prompt.
    asks: bool,
    session: Option<Session>,
    opened: u64,
    events: mpsc::Sender<Event>,
    teller: Teller,
}

impl Link {
    /// A connection that is not open yet.
    pub(crate) fn new(
        resolved: Resolved,
        mut settings: Settings,
        asks: bool,
        (events, teller): (mpsc::Sender<Event>, Teller),
    ) -> Self {
        let heard = teller.clone();
        settings.tap = Some(Tap(Arc::new(move |what: Tapped<'_>| {
            let event = match what {
                Tapped::Sent(text) => Event::Said(From::Us, text.to_owned()),
                Tapped::Received(text) => Event::Said(From::Server, text.to_owned()),
                Tapped::Stderr(text) => Event::Said(From::Stderr, text.to_owned()),
                Tapped::Notification(notification) => Event::Notified(notification.clone()),
            };
            heard.tell(event);
        })));
        Self { resolved, settings, asks, session: None, opened: 0, events, teller }
    }

    /// Opens it, after ending what was open.
    ///
    /// # Errors
    /// When there is no connection.
    ///
    /// # Cancel safety
    /// What was started is ended.
    pub(crate) async fn open(&mut self, roots: &[String]) -> Result<Client, Failure> {
        self.close().await;
        self.settings.is_again = self.opened > 0;
        self.opened += 1;
        let session = Session::open_with(&self.resolved, &self.settings, |builder| {
            let builder = builder.roots(roots.iter().cloned());
            if self.asks { question::listen(builder, &self.events) } else { builder }
        });
        let session = session.await?;
        let client = session.client().clone();
        tokio::spawn(watch(client.watch(), self.opened, self.events.clone()));
        self.session = Some(session);
        Ok(client)
    }

    /// Ends it, and leaves nothing behind.
    pub(crate) async fn close(&mut self) {
        if let Some(session) = self.session.take() {
            session.close().await;
        }
    }

    /// The client, if it was opened.
    pub(crate) fn client(&self) -> Option<&Client> {
        self.session.as_ref().map(Session::client)
    }

    /// How much happened that there was no room for, in words.
    pub(crate) fn missed(&self) -> Option<String> {
        match self.teller.missed() {
            0 => None,
            count => Some(format!("{count} lines came too fast to be shown")),
        }
    }

    /// How often it was opened.
    pub(crate) fn opened(&self) -> u64 {
        self.opened
    }

    /// What it connects to, for people.
    pub(crate) fn target(&self) -> &str {
        &self.resolved.name
    }

    /// How it is led.
    pub(crate) fn settings(&mut self) -> &mut Settings {
        &mut self.settings
    }

    /// Where output goes.
    pub(crate) fn screen(&self) -> &Arc<Screen> {
        &self.settings.screen
    }

    /// Shows every message on the wire, or no longer.
    pub(crate) fn set_verbose(&mut self, is_verbose: bool) {
        self.settings.is_verbose = is_verbose;
        if let Some(session) = &self.session {
            session.journal().set_verbose(is_verbose);
        }
    }
}

/// Tells of every state until the last.
async fn watch(mut states: bowline::client::StateWatch, opened: u64, events: mpsc::Sender<Event>) {
    while let Some(state) = states.changed().await {
        let is_last = state.phase == bowline::client::Phase::Closed;
        if events.send(Event::State(opened, state)).await.is_err() || is_last {
            return;
        }
    }
}
