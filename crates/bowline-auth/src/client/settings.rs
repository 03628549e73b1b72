//! The settings of an [`OAuth`].

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bowline_web::{Host, Url, Web};
use http::uri::Authority;

use super::dpop::Dpop;
use super::error::{AuthError, Reason, Step, quote};
use super::exchange::{Exchange, OnExchange};
use super::fetch::Fetcher;
use super::flow::Engine;
use super::grant::{AssertionSource, Enterprise, Way};
use super::login::Login;
use super::oauth::OAuth;
use super::registration::Client;
use super::scope::Scopes;
use super::store::{MemoryStore, Store};

/// When an [`OAuth`] gives up.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Limits {
    /// How long a user may take to log in: five minutes.
    pub login: Duration,
    /// How many tokens in a row a server may reject: two.
    pub refusals: u32,
    /// How often in a row more scopes are requested: twice.
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

/// Builds an [`OAuth`].
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
    is_anew: bool,
    web: Option<Web>,
    on_exchange: Option<OnExchange>,
}

impl OAuth {
    /// A user logs in: with a [`Browser`](super::Browser), in a terminal ([`Paste`](super::Paste)),
    /// or in the application itself ([`Hook`](super::Hook)).
    pub fn login(server: impl Into<String>, login: impl Login + 'static) -> OAuthBuilder {
        OAuthBuilder::new(server.into(), Way::Login(Arc::new(login)), None)
    }

    /// The application itself gets access (`io.modelcontextprotocol/oauth-client-credentials`).
    pub fn client_credentials(server: impl Into<String>, client: Client) -> OAuthBuilder {
        OAuthBuilder::new(server.into(), Way::ClientCredentials, Some(client))
    }

    /// A user's enterprise grants access, without a login. `client` is this application's client at
    /// the MCP server's authorization server.
    pub fn enterprise(
        server: impl Into<String>,
        client: Client,
        enterprise: Enterprise,
    ) -> OAuthBuilder {
        OAuthBuilder::new(server.into(), Way::Enterprise(enterprise), Some(client))
    }

    /// A workload presents the identity that its platform gave it. A rejected assertion is not
    /// tried again.
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
            is_anew: false,
            web: None,
            on_exchange: None,
        }
    }

    /// The name that users see when they log in: the application's, not a library's.
    #[must_use]
    pub fn client_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// A client that was registered by hand. It takes precedence over all other ways to identify.
    #[must_use]
    pub fn client(mut self, client: Client) -> Self {
        self.client = Some(client);
        self
    }

    /// The `https` URL of a document that describes this client. It is the client's id at servers
    /// that support such documents; at others the client registers dynamically.
    #[must_use]
    pub fn client_id_document(mut self, address: impl Into<String>) -> Self {
        self.document = Some(address.into());
        self
    }

    /// Scopes to always request, besides those that the server asks for.
    #[must_use]
    pub fn scopes<T: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = T>) -> Self {
        self.scopes = Scopes::of(scopes);
        self
    }

    /// Does not request a refresh token (`offline_access`).
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

    /// Also accepts authorization servers that do not declare PKCE, as some OpenID providers do
    /// not. The specification requires clients to reject them.
    #[must_use]
    pub fn assume_pkce(mut self) -> Self {
        self.assumes_pkce = true;
        self
    }

    /// Trusts a host, as `name` or `name:port`: it may have a private address, and its URL may be
    /// plain
    /// `http`.
    #[must_use]
    pub fn trust(mut self, host: impl Into<String>) -> Self {
        self.trusted.push(host.into());
        self
    }

    /// Where credentials are stored: in memory by default.
    #[must_use]
    pub fn store(mut self, store: impl Store + 'static) -> Self {
        self.store = Arc::new(store);
        self
    }

    /// Gets new tokens, whatever is stored: for more scopes, or as another client. The stored ones
    /// stay until the new ones replace them.
    #[must_use]
    pub fn anew(mut self) -> Self {
        self.is_anew = true;
        self
    }

    /// Separates several users with one store and one server.
    #[must_use]
    pub fn account(mut self, account: impl Into<String>) -> Self {
        self.account = Some(account.into());
        self
    }

    /// The HTTP client, for its certificates, proxies and limits. Its reach is restricted: see
    /// [`trust`](Self::trust).
    #[must_use]
    pub fn web(mut self, web: Web) -> Self {
        self.web = Some(web);
        self
    }

    /// Calls a function with every HTTP exchange of the login: metadata, registration, tokens and
    /// their renewal, in order, each after its answer arrived or failed to. Secrets are masked, so
    /// that it can be shown to people and written to logs.
    ///
    /// Requests to the MCP server itself are not among them: `ClientBuilder::on_wire` reports
    /// those.
    ///
    /// ```
    /// use bowline_auth::client::{Browser, OAuth};
    ///
    /// let auth = OAuth::login("https://mcp.example.com/mcp", Browser::new())
    ///     .on_exchange(|exchange| eprintln!("{exchange}"))
    ///     .build()?;
    /// # Ok::<(), bowline_auth::client::AuthError>(())
    /// ```
    #[must_use]
    pub fn on_exchange(mut self, hook: impl Fn(&Exchange) + Send + Sync + 'static) -> Self {
        self.on_exchange = Some(OnExchange::new(hook));
        self
    }

    /// When to give up.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// When the server's URL is not valid or would send tokens unencrypted, when the document's URL
    /// cannot be a client id, or when a trusted host is not valid.
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
                setup(quote(document), "an https URL with a path for the client id document")
            })?;
        }
        if let Way::Enterprise(enterprise) = &self.way {
            // Named by the application, not by a peer: it may be in the enterprise's network.
            let url = parse(&enterprise.token_endpoint)?;
            if url.is_https() {
                trusted.extend(url.uri().authority().cloned());
            }
        }
        let web = match self.web {
            Some(web) => web,
            None => Web::builder().build().map_err(|error| {
                setup(format!("no HTTP client: {error}"), "a working HTTP client")
                    .with_source(error)
            })?,
        };
        let fetcher = Fetcher::new(web, home.clone(), trusted, self.limits.redirects)
            .with_hook(self.on_exchange);
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
        Ok(OAuth::new(Engine::new(settings, fetcher, self.store, self.is_anew)))
    }
}

fn setup(received: String, expected: &str) -> AuthError {
    AuthError::new(Step::Setup, Reason::Settings, received, expected)
}

/// Parses the URL of an MCP server, and checks that tokens may be sent there.
pub(super) fn home(server: &str, trusted: &[Authority]) -> Result<Url, AuthError> {
    let home = parse(server)?;
    let is_trusted =
        trusted.iter().any(|trusted| Host::parse(trusted.host()).as_ref() == Some(home.host()));
    if home.is_https() || home.is_loopback() || is_trusted {
        return Ok(home);
    }
    let expected =
        "https, or http on this machine or a trusted host: tokens would be sent unencrypted";
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
