//! What an application says before the first request.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bowline_web::{Host, Url, Web};
use http::uri::Authority;

use super::dpop::Dpop;
use super::error::{AuthError, Reason, Step, quote};
use super::fetch::Fetcher;
use super::flow::Engine;
use super::grant::{AssertionSource, Enterprise, Way};
use super::login::Login;
use super::oauth::OAuth;
use super::registration::Client;
use super::scope::Scopes;
use super::store::{MemoryStore, Store};

/// How far an [`OAuth`] goes before it gives up.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Limits {
    /// How long a person may take to log in: five minutes.
    pub login: Duration,
    /// How many tokens in a row a server may refuse before that is an error: two.
    pub refusals: u32,
    /// How often in a row more scopes are asked for: twice.
    pub step_ups: u32,
    /// How many redirects discovery follows: three.
    pub redirects: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { login: Duration::from_secs(300), refusals: 2, step_ups: 2, redirects: 3 }
    }
}

#[derive(Debug)]
pub(super) struct Settings {
    pub(super) home: Url,
    pub(super) way: Way,
    pub(super) client: Option<Client>,
    pub(super) document: Option<String>,
    pub(super) name: String,
    pub(super) account: Option<String>,
    pub(super) scopes: Scopes,
    pub(super) wants_refresh: bool,
    pub(super) assumes_pkce: bool,
    pub(super) dpop: Dpop,
    pub(super) limits: Limits,
}

/// An [`OAuth`] in the making.
pub struct OAuthBuilder {
    server: String,
    way: Way,
    client: Option<Client>,
    document: Option<String>,
    name: String,
    account: Option<String>,
    scopes: Scopes,
    wants_refresh: bool,
    assumes_pkce: bool,
    dpop: Dpop,
    limits: Limits,
    trusted: Vec<String>,
    store: Arc<dyn Store>,
    web: Option<Web>,
}

impl OAuth {
    /// A person logs in: with a [`Browser`](super::Browser), a terminal ([`Paste`](super::Paste)),
    /// or in the application itself ([`Hook`](super::Hook)).
    pub fn login(server: impl Into<String>, login: impl Login + 'static) -> OAuthBuilder {
        OAuthBuilder::new(server.into(), Way::Login(Arc::new(login)), None)
    }

    /// The application itself is let in (`io.modelcontextprotocol/oauth-client-credentials`).
    pub fn client_credentials(server: impl Into<String>, client: Client) -> OAuthBuilder {
        OAuthBuilder::new(server.into(), Way::ClientCredentials, Some(client))
    }

    /// A person's enterprise lets them in, without asking them. `client` is this application as
    /// the MCP server's authorization server knows it.
    pub fn enterprise(
        server: impl Into<String>,
        client: Client,
        enterprise: Enterprise,
    ) -> OAuthBuilder {
        OAuthBuilder::new(server.into(), Way::Enterprise(enterprise), Some(client))
    }

    /// A workload shows the identity that its platform gave it. What is refused once is not tried
    /// again with the same assertion.
    pub fn workload(
        server: impl Into<String>,
        client: Client,
        assertions: AssertionSource,
    ) -> OAuthBuilder {
        OAuthBuilder::new(server.into(), Way::Workload(assertions), Some(client))
    }
}

impl OAuthBuilder {
    fn new(server: String, way: Way, client: Option<Client>) -> Self {
        Self {
            server,
            way,
            client,
            document: None,
            name: "Bowline".to_owned(),
            account: None,
            scopes: Scopes::default(),
            wants_refresh: true,
            assumes_pkce: false,
            dpop: Dpop::default(),
            limits: Limits::default(),
            trusted: Vec::new(),
            store: Arc::new(MemoryStore::new()),
            web: None,
        }
    }

    /// The name that people see when they are asked: of the application, not of a library.
    #[must_use]
    pub fn client_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// A client that was registered by hand. It goes before all other ways to be known.
    #[must_use]
    pub fn client(mut self, client: Client) -> Self {
        self.client = Some(client);
        self
    }

    /// The `https` address of a document that describes this client. It is the client's id
    /// wherever such documents are read; elsewhere the client registers itself.
    #[must_use]
    pub fn client_id_document(mut self, address: impl Into<String>) -> Self {
        self.document = Some(address.into());
        self
    }

    /// Scopes to ask for in any case, apart from those that the server wants.
    #[must_use]
    pub fn scopes<T: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = T>) -> Self {
        self.scopes = Scopes::of(scopes);
        self
    }

    /// Asks for no refresh token where one has to be asked for (`offline_access`).
    #[must_use]
    pub fn without_offline_access(mut self) -> Self {
        self.wants_refresh = false;
        self
    }

    /// When tokens are bound to a key.
    #[must_use]
    pub fn dpop(mut self, dpop: Dpop) -> Self {
        self.dpop = dpop;
        self
    }

    /// Goes on with authorization servers that do not say that they check PKCE, as some OpenID
    /// providers do not. The specification refuses them.
    #[must_use]
    pub fn assume_pkce(mut self) -> Self {
        self.assumes_pkce = true;
        self
    }

    /// Trusts a host, as `name` or `name:port`: it may have a private address, and may be spoken to
    /// without TLS if its address says so.
    #[must_use]
    pub fn trust(mut self, host: impl Into<String>) -> Self {
        self.trusted.push(host.into());
        self
    }

    /// Keeps credentials there; in memory if nothing is said.
    #[must_use]
    pub fn store(mut self, store: impl Store + 'static) -> Self {
        self.store = Arc::new(store);
        self
    }

    /// Tells apart several people with one store and one server.
    #[must_use]
    pub fn account(mut self, account: impl Into<String>) -> Self {
        self.account = Some(account.into());
        self
    }

    /// The HTTP client to use, for its certificates, proxies and limits. Where it may go is
    /// narrowed: see [`trust`](Self::trust).
    #[must_use]
    pub fn web(mut self, web: Web) -> Self {
        self.web = Some(web);
        self
    }

    /// How far to go.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Checks what was said.
    ///
    /// # Errors
    /// When the server's address is no address or would send tokens in the clear, when the
    /// document's address cannot be a client id, or when a host cannot be read.
    pub fn build(self) -> Result<OAuth, AuthError> {
        let mut trusted = Vec::new();
        for host in &self.trusted {
            let authority =
                host.parse::<Authority>().ok().filter(|host| !host.as_str().contains('@'));
            trusted.push(
                authority
                    .ok_or_else(|| setup(quote(host), "a trusted host as name or name:port"))?,
            );
        }
        let home = home(&self.server, &trusted)?;
        if let Some(document) = &self.document {
            let url =
                Url::parse(document).ok().filter(|url| url.is_https() && url.path().len() > 1);
            url.ok_or_else(|| {
                setup(quote(document), "an https address with a path for the client id document")
            })?;
        }
        if let Way::Enterprise(enterprise) = &self.way {
            // Named by the application, not by a peer: it may be in the enterprise's own network.
            let url = parse(&enterprise.token_endpoint)?;
            if url.is_https() {
                trusted.extend(url.uri().authority().cloned());
            }
        }
        let web = match self.web {
            Some(web) => web,
            None => Web::builder().build().map_err(|error| {
                setup(format!("no HTTP client: {error}"), "one").with_source(error)
            })?,
        };
        let fetcher = Fetcher::new(web, home.clone(), trusted, self.limits.redirects);
        let settings = Settings {
            home,
            way: self.way,
            client: self.client,
            document: self.document,
            name: self.name,
            account: self.account,
            scopes: self.scopes,
            wants_refresh: self.wants_refresh,
            assumes_pkce: self.assumes_pkce,
            dpop: self.dpop,
            limits: self.limits,
        };
        Ok(OAuth::new(Engine::new(settings, fetcher, self.store)))
    }
}

fn setup(received: String, expected: &str) -> AuthError {
    AuthError::new(Step::Setup, Reason::Settings, received, expected)
}

/// The address of an MCP server that tokens may be sent to.
pub(super) fn home(server: &str, trusted: &[Authority]) -> Result<Url, AuthError> {
    let home = parse(server)?;
    let is_trusted =
        trusted.iter().any(|trusted| Host::parse(trusted.host()).as_ref() == Some(home.host()));
    if home.is_https() || home.is_loopback() || is_trusted {
        return Ok(home);
    }
    let expected = "https, or http on this machine or a trusted host: tokens would go in the clear";
    Err(setup(quote(&home.to_string()), expected))
}

/// A URL that an application set.
pub(super) fn parse(url: &str) -> Result<Url, AuthError> {
    Url::parse(url).map_err(|expected| setup(quote(url), &expected.to_string()))
}

impl fmt::Debug for OAuthBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("OAuthBuilder");
        shown.field("way", &self.way).field("client", &self.client).finish_non_exhaustive()
    }
}
