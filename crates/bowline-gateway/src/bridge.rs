//! The bridge: any client, of any era, on any transport, in front of any server.
//!
//! A client and a server process of the same era are spliced: their frames pass as they are, and
//! are read only to know what is unanswered when the process dies ([`splice`]). Everything else
//! goes through [`bowline::Proxy`], which translates. [`rules`] says what becomes of each part of
//! the protocol, and what cannot be translated.

mod faulty;
mod lines;
mod opening;
pub mod rules;
pub mod splice;
pub(crate) mod tools;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bowline::client::{Client, ClientBuilder, CloseReason, Phase, Target};
use bowline::proxy::{Losses, ProxyBuilder, ProxyError};
use bowline::{Proxy, ServeError, Server, with_causes};
use bowline_proto::error::ErrorObject;
use bowline_proto::revision::{Era, Revisions};
use bowline_proto::session::Preference;
use bowline_proto::wire::encode_error;
use tokio::io::{AsyncRead, AsyncWrite};

pub use self::faulty::faulty;
use self::lines::Lines;
use self::opening::Opening;
use self::splice::{Splice, SpliceError, send};
pub use self::tools::ToolRules;

/// How long the bridge goes on for a client that has closed its side: it may want its answers.
const REST: Duration = Duration::from_secs(5);
/// The same while the server is still starting, which may mean that it is downloaded first.
const OPENING: Duration = Duration::from_secs(15);

/// A server, and how clients reach it.
pub struct Bridge {
    /// Where the server is. Called for every connection.
    pub target: Arc<dyn Fn() -> Target + Send + Sync>,
    /// The client that connects to it. Called for every connection.
    pub client: Arc<dyn Fn() -> ClientBuilder + Send + Sync>,
    /// The most connections to a server that asks its callers; see
    /// [`ProxyBuilder::most_connections`].
    pub connections: usize,
    /// Starts the server, if it is a command.
    pub command: Option<Box<dyn Fn() -> std::process::Command + Send + Sync>>,
    /// Which revisions to speak with the server.
    pub preference: Preference,
    /// Which revisions to speak with clients.
    pub offer: Revisions,
    /// Which tools clients see, and under which names.
    pub tools: ToolRules,
    /// The URIs of the roots that a legacy server gets, whoever calls; none: those of its caller.
    pub roots: Vec<String>,
    /// The most bytes in one message.
    pub longest: usize,
    /// How long a process that speaks the client's era may take to answer its first request.
    pub connect_timeout: Duration,
    /// How long such a process may take to end once it is told to (TERM), before it is killed.
    pub term_grace: Duration,
    /// Told when the server ends or returns, for people.
    pub report: Report,
}

/// A function that is told something for people.
pub type Report = Arc<dyn Fn(&str) + Send + Sync>;

/// Why a bridge ended, or did not begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BridgeError {
    /// The server cannot be reached or listed.
    #[error(transparent)]
    Upstream(#[from] ProxyError),
    /// Clients cannot be served.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The server's process ends again and again.
    #[error(transparent)]
    Process(#[from] SpliceError),
    /// The server is gone for good.
    #[error("the connection to the server ended: {0}")]
    Gone(CloseReason),
    /// The client's stream failed.
    #[error("the client's stream failed")]
    Client(#[from] io::Error),
}

/// Waits until a server is gone for good: its process ends again and again.
pub async fn gone(client: &Client) -> CloseReason {
    let mut watch = client.watch();
    while watch.state().phase != Phase::Closed && watch.changed().await.is_some() {}
    match watch.state().reason.filter(|reason| *reason != CloseReason::Asked) {
        Some(reason) => reason,
        None => std::future::pending().await,
    }
}

impl Bridge {
    /// Connects, and returns a server that passes everything on, for any number of clients, and the
    /// proxy that does so: [close](Proxy::close) it in the end.
    ///
    /// # Errors
    /// When the server cannot be reached or listed.
    pub async fn server(&self) -> Result<(Server, Proxy), ProxyError> {
        let proxy = self.connect(|proxy| proxy).await?;
        Ok((proxy.clone().into_server().revisions(self.offer), proxy))
    }

    async fn connect(
        &self,
        more: impl FnOnce(ProxyBuilder) -> ProxyBuilder,
    ) -> Result<Proxy, ProxyError> {
        let client = (self.client)().preference(self.preference);
        let (again, target, preference) =
            (Arc::clone(&self.client), Arc::clone(&self.target), self.preference);
        let mut builder = Proxy::builder(client)
            .further(move || (again().preference(preference), target()))
            .most_connections(self.connections);
        if !self.roots.is_empty() {
            builder = builder.roots(self.roots.iter().cloned());
        }
        if !self.tools.is_empty() {
            let tools = self.tools.clone();
            builder = builder.name_tools(move |name| tools.name(name));
        }
        let proxy = more(builder).connect((self.target)()).await?;
        if !self.tools.is_empty() {
            let problems = self.tools.problems(&tool_names(&proxy).await);
            problems.iter().for_each(|problem| (self.report)(problem));
        }
        tokio::spawn(follow(proxy.client(), Arc::clone(&self.report)));
        Ok(proxy)
    }

    /// Serves one client on a byte stream until it closes its side.
    ///
    /// # Errors
    /// When the server cannot be reached, or either side fails. The client has been told.
    pub async fn serve(
        &self,
        input: impl AsyncRead + Unpin,
        output: impl AsyncWrite + Unpin,
    ) -> Result<(), BridgeError> {
        self.serve_until(input, output, std::future::pending()).await
    }

    /// The same, or until `stop`: the server's process is then ended in the way that lets it clean
    /// up.
    ///
    /// # Errors
    /// When the server cannot be reached, or either side fails. The client has been told.
    pub async fn serve_until(
        &self,
        input: impl AsyncRead + Unpin,
        output: impl AsyncWrite + Unpin,
        stop: impl Future<Output = ()>,
    ) -> Result<(), BridgeError> {
        let (mut stop, mut output) = (std::pin::pin!(stop), output);
        let mut client = Lines::new(input, self.longest);
        let opening = tokio::select! {
            opening = Opening::read(&mut client, &mut output) => opening?,
            () = &mut stop => None,
        };
        let Some(opening) = opening else { return Ok(()) };
        if let Some(command) = self.command.as_ref().filter(|_| self.may_splice(&opening)) {
            let opened = tokio::select! {
                opened = Splice::open(self, command, &opening) => opened,
                () = client.left(OPENING) => return left(&opening, output).await,
                () = &mut stop => return Ok(()),
            };
            // Otherwise the server is of the other era, or does not start: the client says why.
            if let Ok(Some(splice)) = opened {
                return Ok(splice.run(client, output, stop).await?);
            }
        }
        self.translate(opening, client, output, stop).await
    }

    /// Serves a client whose server is of the other era, or is not a process.
    async fn translate(
        &self,
        opening: Opening,
        mut client: Lines<impl AsyncRead + Unpin>,
        mut output: impl AsyncWrite + Unpin,
        mut stop: impl Future<Output = ()> + Unpin,
    ) -> Result<(), BridgeError> {
        let for_one = |proxy: ProxyBuilder| match opening.capabilities() {
            Some(declared) => proxy.one_caller().declare(declared),
            None => proxy.one_caller(),
        };
        let connected = tokio::select! {
            connected = self.connect(for_one) => connected,
            () = client.left(OPENING) => return left(&opening, output).await,
            () = &mut stop => return Ok(()),
        };
        let proxy = match connected {
            Ok(proxy) => proxy,
            Err(error) => {
                refuse(&opening, &mut output, &with_causes(&error)).await?;
                return Err(error.into());
            }
        };
        let server = proxy.clone().into_server().revisions(self.offer);
        let input = client.into_stream(opening.into_frame());
        let mut end = None;
        // The client hears what became of its calls before the bridge ends.
        let gone = async { end = Some(gone(proxy.client()).await) };
        let served = tokio::select! {
            served = server.serve_until(tokio::io::join(input, output), gone) => served,
            () = stop => Ok(()),
        };
        proxy.close().await;
        self.report_losses(&proxy.losses());
        served?;
        end.map_or(Ok(()), |reason| Err(BridgeError::Gone(reason)))
    }

    /// Reports what could not be translated, if there was anything.
    pub fn report_losses(&self, losses: &Losses) {
        if let Some(text) = rules::sum_up(losses) {
            (self.report)(&text);
        }
    }

    /// Whether frames may pass as they are, if the server is of the client's era.
    fn may_splice(&self, opening: &Opening) -> bool {
        let Some(era) = opening.era() else { return false };
        let is_same = match self.preference {
            Preference::Auto => true,
            Preference::Legacy => era == Era::Legacy,
            Preference::Modern => era == Era::Modern,
            Preference::Pin(_) => false,
        };
        is_same && self.tools.is_empty() && self.roots.is_empty() && self.offer == Revisions::ALL
    }
}

/// Answers a client that has closed its side, if it still reads.
async fn left(opening: &Opening, mut output: impl AsyncWrite + Unpin) -> Result<(), BridgeError> {
    let why = "the client closed its side before the server had answered";
    refuse(opening, &mut output, why).await.or(Ok(()))
}

/// Tells a client why it gets no server.
async fn refuse(
    opening: &Opening,
    output: &mut (impl AsyncWrite + Unpin),
    why: &str,
) -> Result<(), BridgeError> {
    if let Some(id) = opening.id() {
        let mut line = Vec::new();
        let what = format!("the bridge has no server: {why}");
        encode_error(&mut line, id, &ErrorObject::internal(what));
        line.push(b'\n');
        send(output, &line).await?;
    }
    Ok(())
}

/// The server's own names of its tools, as far as it tells.
async fn tool_names(proxy: &Proxy) -> Vec<String> {
    let tools = proxy.client().list_tools().await.unwrap_or_default();
    tools.into_iter().map(|tool| tool.name).collect()
}

/// Reports how the connection to the server fares. Does not keep it open.
fn follow(client: &Client, report: Report) -> impl Future<Output = ()> + Send + use<> {
    let mut watch = client.watch();
    async move {
        let mut generation = watch.state().generation;
        while let Some(state) = watch.changed().await {
            let why = state.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            match state.phase {
                Phase::Ready if state.generation != generation => {
                    generation = state.generation;
                    report("the server is back");
                }
                Phase::Starting if state.reason.is_some() => {
                    report(&format!("the connection to the server ended{why}; opening it again"));
                }
                // Whoever waits for that reports it.
                Phase::Closed => return,
                _ => {}
            }
        }
    }
}
