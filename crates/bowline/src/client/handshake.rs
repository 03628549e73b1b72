//! Finds out which revision a server speaks: [`Connect`] decides, this module acts.

use std::sync::Arc;
use std::time::Duration;

use bowline_proto::decode::decode_result;
use bowline_proto::json::{Extra, Json};
use bowline_proto::method::{Discover, Initialize, Initialized, Method, Notice};
use bowline_proto::model::{
    DiscoverResult, EmptyParams, InitializeParams, InitializeResult, Meta, RequestMeta,
    task_extension,
};
use bowline_proto::revision::{Adapt, Revision};
use bowline_proto::session::{Action, Connect, ConnectError, Event, Question, Timeout};
use bowline_proto::wire::encode_notification;

use super::exchange::ExchangeError;
use super::exchange::Sending;
use super::limits::ClientLimit;
use super::outgoing::{Claim, Outgoing, Round};
use super::shared::{Hears, Link, Live, Shared};
use super::state::Peer;

/// Why the search stopped without a connection.
pub(super) enum Stop {
    /// Restart the process, and continue with a handshake for this revision.
    Respawn(Revision),
    /// Give up.
    Failed {
        error: ConnectError,
        /// The authorization error, if that was the cause.
        #[cfg_attr(not(feature = "client-http"), expect(dead_code, reason = "only HTTP asks"))]
        unauthorized: Option<(u16, String)>,
    },
}

/// One search on one link.
pub(super) struct Search<'a> {
    pub(super) shared: &'a Arc<Shared>,
    pub(super) link: &'a Link,
    pub(super) connect: &'a mut Connect,
    /// What the server said about itself.
    found: Option<Peer>,
    unauthorized: Option<(u16, String)>,
}

impl<'a> Search<'a> {
    pub(super) fn new(shared: &'a Arc<Shared>, link: &'a Link, connect: &'a mut Connect) -> Self {
        Self { shared, link, connect, found: None, unauthorized: None }
    }

    /// Acts until there is a connection, or there can be none.
    pub(super) async fn run(mut self, mut action: Action) -> Result<Live, Stop> {
        loop {
            action = match action {
                Action::Discover { revision, timeout } => self.discover(revision, timeout).await,
                Action::Initialize(revision) => self.initialize(revision).await,
                Action::OpenSse => self.open_sse().await,
                Action::Respawn(revision) => return Err(Stop::Respawn(revision)),
                Action::Done(revision) => match self.finish(revision).await {
                    Ok(live) => return Ok(live),
                    Err(action) => action,
                },
                Action::Failed(error) => {
                    return Err(Stop::Failed { error, unauthorized: self.unauthorized });
                }
                // Every action above causes exactly one event.
                Action::Wait => {
                    let error = ConnectError::Malformed;
                    return Err(Stop::Failed { error, unauthorized: self.unauthorized });
                }
            };
        }
    }

    async fn discover(&mut self, revision: Revision, timeout: Option<Duration>) -> Action {
        let outcome = self.ask_discover(revision, timeout).await;
        match outcome {
            Ok(discovered) => {
                let action = self.connect.handle_event(Event::Discovered(&discovered.listed));
                self.found = Some(discovered);
                action
            }
            Err(error) => self.failed(Question::Discover, error),
        }
    }

    async fn ask_discover(
        &self,
        revision: Revision,
        timeout: Option<Duration>,
    ) -> Result<Peer, ExchangeError> {
        let outgoing = Outgoing::typed::<Discover>(EmptyParams::default(), revision)
            .expect("discovery has no parameters");
        let result = self.ask(&outgoing, revision, timeout).await?;
        let result: DiscoverResult =
            decode_result(Discover::NAME, result.as_raw()).map_err(ExchangeError::Malformed)?;
        Ok(Peer {
            revision,
            info: result.meta.as_ref().and_then(Meta::server_info),
            capabilities: result.capabilities,
            instructions: result.instructions,
            listed: result.supported_versions,
        })
    }

    async fn initialize(&mut self, revision: Revision) -> Action {
        match self.ask_initialize(revision).await {
            Ok(result) => {
                let action =
                    self.connect.handle_event(Event::Initialized(&result.protocol_version));
                self.found = Some(Peer {
                    revision,
                    info: Some(result.server_info),
                    capabilities: result.capabilities,
                    instructions: result.instructions,
                    listed: Vec::new(),
                });
                action
            }
            Err(error) => self.failed(Question::Initialize, error),
        }
    }

    async fn ask_initialize(&self, revision: Revision) -> Result<InitializeResult, ExchangeError> {
        let mut capabilities = self.shared.handlers.capabilities();
        let mut client_info = self.shared.profile.info.clone();
        // Neither can fail: what a revision lacks is dropped.
        let _ = capabilities.adapt(revision);
        let _ = client_info.adapt(revision);
        let protocol_version = revision.as_str().to_owned();
        let meta = RequestMeta::default();
        let params = InitializeParams { protocol_version, capabilities, client_info, meta };
        let outgoing = Outgoing::typed::<Initialize>(params, revision)
            .expect("a name, a version and capabilities have a JSON form");
        let result = self.ask(&outgoing, revision, None).await?;
        decode_result(Initialize::NAME, result.as_raw()).map_err(ExchangeError::Malformed)
    }

    async fn ask(
        &self,
        outgoing: &Outgoing<'_>,
        revision: Revision,
        timeout: Option<Duration>,
    ) -> Result<Json, ExchangeError> {
        let claim = self.claim(revision);
        let timeout = timeout.unwrap_or(self.shared.profile.timeouts.connect);
        let sending = Sending {
            outgoing,
            round: &Round::default(),
            claim: &claim,
            timeout: Timeout::fixed(timeout),
            hears: Hears::Nothing,
            // A handshake must not be cancelled, and an old server would not understand it.
            is_cancellable: false,
        };
        let result = self.shared.exchange(self.link, &sending).await?;
        let most = self.shared.profile.limits.peer_bytes;
        match result.as_str().len() > most {
            true => Err(ExchangeError::TooMuch(ClientLimit::PeerBytes, most)),
            false => Ok(result),
        }
    }

    /// How long a server that was modern last time may take to answer. On a stream, a server that
    /// is legacy now may stay silent.
    fn patience(&self) -> Option<Duration> {
        match self.link {
            Link::Stream(_) => Some(self.shared.profile.timeouts.probe.saturating_mul(5)),
            #[cfg(feature = "client-http")]
            Link::Http(_) => None,
        }
    }

    fn claim(&self, revision: Revision) -> Claim {
        let mut capabilities = self.shared.handlers.capabilities();
        // Only the modern era has the extension; its ids mean something else before.
        if self.shared.profile.has_tasks && revision.is_modern() {
            let extensions = capabilities.extensions.get_or_insert_default();
            extensions.insert(task_extension::ID, Extra::new());
        }
        Claim::new(revision, &self.shared.profile.info, &capabilities)
    }

    fn failed(&mut self, question: Question, error: ExchangeError) -> Action {
        #[cfg(feature = "client-http")]
        if let ExchangeError::Unauthorized { status, problem } = &error {
            self.unauthorized = Some((*status, problem.clone()));
        }
        self.connect.handle_event(error.into_event(question))
    }

    async fn open_sse(&mut self) -> Action {
        match self.link {
            #[cfg(feature = "client-http")]
            Link::Http(http) => match http.open_sse(self.shared).await {
                Ok(()) => self.connect.handle_event(Event::EndpointFound),
                Err(error) => self.failed(Question::Endpoint, error),
            },
            Link::Stream(_) => self.connect.handle_event(Event::Malformed(Question::Endpoint)),
        }
    }

    /// The revision is agreed on: collects what is known about the server, and ends a handshake.
    async fn finish(&mut self, revision: Revision) -> Result<Live, Action> {
        let found = match self.found.take() {
            Some(found) => found,
            // The server was modern last time: asking what it can do shows whether it still is.
            None => match self.ask_discover(revision, self.patience()).await {
                Ok(found) => found,
                // Whatever the failure, starting over tells it from a change of era.
                Err(_) => return Err(self.connect.handle_event(Event::Contradicted)),
            },
        };
        let peer = Arc::new(Peer { revision, ..found });
        let claim = Arc::new(self.claim(revision));
        let live = Live { link: self.link.clone(), peer, claim };
        if !revision.is_modern() {
            live.initialized().await;
        }
        Ok(live)
    }
}

impl Live {
    /// Tells the server that the handshake is over.
    async fn initialized(&self) {
        let sent = match &self.link {
            Link::Stream(outbox) => {
                let write = |out: &mut Vec<u8>| {
                    encode_notification::<()>(out, Initialized::NAME, None)
                        .expect("a name has a JSON form");
                };
                outbox.push(write).is_ok()
            }
            #[cfg(feature = "client-http")]
            Link::Http(http) => http.initialized(self.peer.revision).await,
        };
        if !sent {
            tracing::debug!("the server ended right after the handshake");
        }
    }
}
