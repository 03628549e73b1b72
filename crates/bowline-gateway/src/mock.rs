//! A server that says what a recorded one said, to clients of every revision, on every transport.
//!
//! Behind it stands a `peer`, which speaks the recorded revision and nothing else; a
//! [`bowline::Proxy`] in front of it does the rest, as the bridge does for a real server.

mod attribute;
mod peer;
mod script;

use std::sync::Arc;

use bowline::client::{Client, ClientBuilder, Preference, Target};
use bowline::proxy::{ProxyBuilder, ProxyError};
use bowline::{Proxy, Server};
use tokio::io::{AsyncRead, AsyncWrite};

use self::script::Script;
use crate::recording::Recording;

/// What waits between the peer and the proxy.
const BUFFER: usize = 64 << 10;

/// A recorded server. Equal requests get the recorded answers in their order; the last one is
/// repeated.
#[derive(Debug, Clone)]
pub struct Mock {
    script: Arc<Script>,
}

impl Mock {
    /// A server that answers as in a recording; `is_timed` if everything takes as long as it did.
    #[must_use]
    pub fn new(recording: &Recording, is_timed: bool) -> Self {
        Self { script: Arc::new(Script::new(recording, is_timed)) }
    }

    /// A server for any number of clients.
    ///
    /// # Errors
    /// When the recording does not suffice for a session.
    pub async fn server(&self) -> Result<Server, ProxyError> {
        self.connect(|proxy| proxy).await
    }

    /// A server for one client, on standard input and output.
    ///
    /// # Errors
    /// See [`server`](Self::server).
    pub async fn server_for_one(&self) -> Result<Server, ProxyError> {
        self.connect(ProxyBuilder::one_caller).await
    }

    /// Answers on a byte stream in the recorded revision, as the recorded server did.
    pub async fn answer(&self, stream: impl AsyncRead + AsyncWrite) {
        peer::serve(&self.script, stream).await;
    }

    async fn connect(
        &self,
        more: impl FnOnce(ProxyBuilder) -> ProxyBuilder,
    ) -> Result<Server, ProxyError> {
        let again = self.clone();
        let proxy = Proxy::builder(self.client()).further(move || (again.client(), again.target()));
        Ok(more(proxy).connect(self.target()).await?.into_server())
    }

    fn client(&self) -> ClientBuilder {
        let preference = self.script.revision().map_or(Preference::Auto, Preference::Pin);
        let client = Client::builder("bowline", env!("CARGO_PKG_VERSION"));
        client.preference(preference).without_cache()
    }

    /// A new connection to the recorded server.
    fn target(&self) -> Target {
        let (ours, theirs) = tokio::io::duplex(BUFFER);
        let mock = self.clone();
        tokio::spawn(async move { mock.answer(theirs).await });
        Target::stream(ours)
    }
}

#[cfg(test)]
mod tests;
