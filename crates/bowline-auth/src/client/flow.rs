//! The authorization flow, from a rejected request to a usable token.
//!
//! There are no locks between requests here: [`OAuth`](super::OAuth) runs one errand at a time.
//! Between processes the store's lock is held, except while the user logs in.

mod ask;
mod keep;
mod person;
mod unattended;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use bowline_web::Url;

use super::challenge::Demand;
use super::discover::{Discovery, endpoint, find_server};
use super::dpop::{Dpop, Nonces, ProofKey};
use super::error::{AuthError, Reason, Step, quote, quote_all};
use super::fetch::Fetcher;
use super::form::Form;
use super::grant::Way;
use super::metadata::{ResourceMetadata, ServerMetadata};
use super::registration::{Client, Registered};
use super::scope::{Scopes, Sources};
use super::secret::Secret;
use super::settings::Settings;
use super::store::Store;
use super::token::{Grant, TokenType, Tokens};
use crate::clock::unix_seconds;
use crate::jws::SigningKey;

use ask::TokenEndpoint;

/// Everything that all errands share.
pub(super) struct Engine {
    pub(super) settings: Settings,
    pub(super) nonces: Nonces,
    fetcher: Fetcher,
    store: Arc<dyn Store>,
    /// Whether the stored tokens are those of an earlier login, which this one replaces.
    is_anew: AtomicBool,
    /// The assertion that was rejected last, which is not tried again.
    refused: Mutex<Option<Secret>>,
}

/// Tokens, and the key they are bound to, if any.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) tokens: Tokens,
    pub(super) proof: Option<ProofKey>,
}

/// Why tokens are needed.
#[derive(Debug)]
pub(super) struct Errand {
    pub(super) demand: Demand,
    /// The tokens that were rejected.
    pub(super) held: Option<Arc<Held>>,
    /// The missing scopes, if they were the reason.
    pub(super) missing: Option<Scopes>,
}

/// Where a token is requested, and how.
struct Stage {
    resource: Option<String>,
    server: ServerMetadata,
    token_endpoint: Url,
    scopes: Scopes,
    proof: Option<ProofKey>,
    /// Whether a token that is not bound to the key is acceptable too.
    takes_bearer: bool,
}

impl Engine {
    pub(super) fn new(
        settings: Settings,
        fetcher: Fetcher,
        store: Arc<dyn Store>,
        is_anew: bool,
    ) -> Self {
        let (nonces, refused) = (Nonces::default(), Mutex::new(None));
        Self { settings, nonces, fetcher, store, is_anew: is_anew.into(), refused }
    }

    /// Replaces expired tokens; `None` if that needs a login.
    pub(super) async fn renew(&self, held: &Held) -> Result<Option<Held>, AuthError> {
        let _lock = self.lock().await?;
        // If the store could not save them, they are still valid.
        let stored = self.load().await?.unwrap_or_else(|| held.clone());
        let is_new = stored.tokens.access_token != held.tokens.access_token;
        if is_new && !stored.tokens.is_over(unix_seconds()) {
            return Ok(Some(stored));
        }
        match self.refresh(&stored).await {
            Ok(renewed) => Ok(renewed),
            Err(error) if error.reason() == Reason::Refused => {
                tracing::debug!(%error, "a new login is needed");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Replaces tokens that were rejected, in whatever way the settings allow.
    pub(super) async fn enter(&self, errand: &Errand) -> Result<Held, AuthError> {
        let discovery = Discovery::find(&self.fetcher, &self.settings.home, &errand.demand).await?;
        let lock = self.lock().await?;
        let stored = self.load().await?.or_else(|| errand.held.as_deref().cloned());
        let issuer = self.choose(&discovery, stored.as_ref())?;
        let earlier = stored.filter(|stored| stored.tokens.issuer == issuer);
        let earlier = match earlier {
            Some(earlier) => match self.again(errand, &discovery, earlier).await? {
                Again::Good(held) => return Ok(*held),
                Again::Over(scopes) => scopes,
            },
            None => Scopes::default(),
        };
        let stage = self.stage(errand, &discovery, &issuer, earlier).await?;
        let held = match &self.settings.way {
            Way::Login(login) => self.ask_person(login.as_ref(), stage, lock).await?,
            Way::ClientCredentials => self.client_credentials(stage).await?,
            Way::Enterprise(enterprise) => self.enterprise(enterprise, stage).await?,
            Way::Workload(source) => self.workload(source, stage).await?,
        };
        self.save(&held).await;
        Ok(held)
    }

    /// Chooses the authorization server: the one that issued our credentials, or else the first.
    fn choose(&self, discovery: &Discovery, stored: Option<&Held>) -> Result<String, AuthError> {
        let before = stored.map(|stored| stored.tokens.issuer.as_str());
        let bound = match &self.settings.client {
            Some(Client { issuer: Some(issuer), .. }) => Some(issuer.as_str()),
            Some(_) => before,
            None => None,
        };
        let is_listed = |issuer: &str| discovery.issuers.iter().any(|listed| listed == issuer);
        if let Some(issuer) = bound.filter(|issuer| !is_listed(issuer)) {
            let received = format!("authorization_servers {}", quote_all(&discovery.issuers));
            let expected = format!("{}, which the client was registered with", quote(issuer));
            return Err(AuthError::new(Step::ServerChoice, Reason::Settings, received, expected));
        }
        let chosen = bound.or_else(|| before.filter(|issuer| is_listed(issuer)));
        let chosen = chosen.or_else(|| discovery.issuers.first().map(String::as_str));
        Ok(chosen.unwrap_or_default().to_owned())
    }

    /// Tries to get tokens of the same issuer without a new grant.
    async fn again(
        &self,
        errand: &Errand,
        discovery: &Discovery,
        stored: Held,
    ) -> Result<Again, AuthError> {
        let tokens = &stored.tokens;
        let refused = errand.held.as_ref().map(|held| &held.tokens.access_token);
        let is_new = refused != Some(&tokens.access_token) && !tokens.is_over(unix_seconds());
        let is_enough =
            errand.missing.as_ref().is_none_or(|missing| tokens.requested.covers(missing));
        let resource = discovery.resource.as_ref().map(|resource| &resource.resource);
        let is_here = tokens.resource.as_ref() == resource;
        let over = Again::Over(tokens.requested.clone());
        if !is_here || !is_enough {
            return Ok(over);
        }
        if is_new {
            return Ok(Again::Good(Box::new(stored)));
        }
        match self.refresh(&stored).await {
            Ok(renewed) => Ok(renewed.map_or(over, |renewed| Again::Good(Box::new(renewed)))),
            Err(error) if error.reason() == Reason::Refused => Ok(over),
            Err(error) => Err(error),
        }
    }

    /// Refreshes tokens where they were issued; `None` if they cannot be refreshed.
    async fn refresh(&self, held: &Held) -> Result<Option<Held>, AuthError> {
        let tokens = &held.tokens;
        let Some(refresh_token) = &tokens.refresh_token else {
            return Ok(None);
        };
        let url = self.fetcher.check(Step::Refresh, &tokens.token_endpoint)?;
        let form = Form::new()
            .with("grant_type", "refresh_token")
            .with_secret("refresh_token", refresh_token)
            .with_some("resource", tokens.resource.as_deref());
        let endpoint = TokenEndpoint {
            fetcher: &self.fetcher,
            nonces: &self.nonces,
            url: &url,
            issuer: &tokens.issuer,
            client: &tokens.client,
            key: self.key(),
            proof: held.proof.as_ref(),
        };
        let grant = endpoint.ask(Step::Refresh, form).await;
        let grant = self.forget_if_forgotten(&tokens.issuer, grant).await?;
        check_kind(Step::Refresh, &grant, held.proof.is_some(), tokens.kind == TokenType::Bearer)?;
        let tokens = tokens.renewed(grant, unix_seconds());
        let renewed = Held { tokens, proof: held.proof.clone() };
        self.save(&renewed).await;
        Ok(Some(renewed))
    }

    async fn stage(
        &self,
        errand: &Errand,
        discovery: &Discovery,
        issuer: &str,
        earlier: Scopes,
    ) -> Result<Stage, AuthError> {
        let server = find_server(&self.fetcher, issuer, discovery).await?;
        let token_endpoint =
            endpoint(&self.fetcher, server.token_endpoint.as_deref(), "token_endpoint")?;
        let is_login = matches!(self.settings.way, Way::Login(_));
        let of_server = server.scopes().filter(|_| is_login && self.settings.wants_refresh);
        let of_resource = discovery.resource.as_ref().and_then(ResourceMetadata::scopes);
        let scopes = Sources {
            challenge: errand.missing.as_ref().or(errand.demand.scopes.as_ref()),
            wanted: self.settings.scopes.clone(),
            resource: of_resource.as_ref(),
            earlier,
            server: of_server.as_ref(),
        };
        let scopes = scopes.select();
        let is_required =
            discovery.resource.as_ref().is_some_and(|r| r.dpop_bound_access_tokens_required);
        let (proof, takes_bearer) = self.proof(errand, &server, is_required).await?;
        let resource = discovery.resource.as_ref().map(|resource| resource.resource.clone());
        Ok(Stage { resource, server, token_endpoint, scopes, proof, takes_bearer })
    }

    /// The key that tokens must be bound to, if any, and whether unbound tokens are acceptable.
    async fn proof(
        &self,
        errand: &Errand,
        server: &ServerMetadata,
        is_required: bool,
    ) -> Result<(Option<ProofKey>, bool), AuthError> {
        let (asked, bearer) = (errand.demand.takes_dpop, errand.demand.takes_bearer);
        let mode = self.settings.dpop;
        let is_wanted = mode == Dpop::Always || mode == Dpop::WhenAsked && (asked || is_required);
        if !is_wanted {
            return Ok((None, true));
        }
        let takes_bearer = bearer && !is_required && mode == Dpop::WhenAsked;
        if !server.has_dpop() {
            if takes_bearer {
                return Ok((None, true));
            }
            let received = "no ES256 in dpop_signing_alg_values_supported";
            let expected = "ES256, because tokens must be bound to a key (DPoP)";
            return Err(AuthError::new(Step::ServerMetadata, Reason::Broken, received, expected));
        }
        let key = self.key_for(&server.issuer).await?;
        Ok((Some(key), takes_bearer))
    }

    /// Requests tokens from the stage's token endpoint.
    async fn redeem(
        &self,
        stage: Stage,
        client: Registered,
        form: Form,
    ) -> Result<Held, AuthError> {
        let endpoint = TokenEndpoint {
            fetcher: &self.fetcher,
            nonces: &self.nonces,
            url: &stage.token_endpoint,
            issuer: &stage.server.issuer,
            client: &client,
            key: self.key(),
            proof: stage.proof.as_ref(),
        };
        let form = form.with_some("resource", stage.resource.as_deref());
        let grant = endpoint.ask(Step::Token, form).await?;
        check_kind(Step::Token, &grant, stage.proof.is_some(), stage.takes_bearer)?;
        let kind = grant.kind.unwrap_or(TokenType::Bearer);
        let granted = grant.scope.as_deref().map(Scopes::parse);
        // Without a login, a new assertion is requested each time.
        let is_login = matches!(self.settings.way, Way::Login(_));
        let tokens = Tokens {
            grant: self.settings.way.name().to_owned(),
            issuer: stage.server.issuer,
            token_endpoint: stage.token_endpoint.as_str().to_owned(),
            client,
            resource: stage.resource,
            kind,
            access_token: grant.access_token,
            expires_at: Tokens::end(unix_seconds(), grant.expires_in),
            refresh_token: grant.refresh_token.filter(|_| is_login),
            granted: granted.unwrap_or_else(|| stage.scopes.clone()),
            requested: stage.scopes,
        };
        Ok(Held { tokens, proof: stage.proof.filter(|_| kind == TokenType::Dpop) })
    }

    fn key(&self) -> Option<&SigningKey> {
        self.settings.client.as_ref().and_then(Client::key).map(AsRef::as_ref)
    }
}

/// The outcome of trying existing tokens again.
enum Again {
    Good(Box<Held>),
    /// They are useless; these scopes were requested for them.
    Over(Scopes),
}

/// Checks that a token is bound to the key, if it must be.
fn check_kind(
    step: Step,
    grant: &Grant,
    is_bound: bool,
    takes_bearer: bool,
) -> Result<(), AuthError> {
    let expected = match (grant.kind, is_bound) {
        (Some(TokenType::Dpop), true) | (Some(TokenType::Bearer), false) => return Ok(()),
        (Some(TokenType::Bearer), true) if takes_bearer => return Ok(()),
        (_, true) => "token_type DPoP, because a proof was sent",
        (_, false) => "token_type Bearer, because no proof was sent",
    };
    let received = grant.kind.map_or("N_A", TokenType::name);
    Err(AuthError::new(step, Reason::Unsafe, format!("token_type {received}"), expected))
}
