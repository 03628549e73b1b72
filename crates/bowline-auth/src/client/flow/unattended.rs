//! Grants without a login.

use std::sync::PoisonError;

use bowline_web::Url;

use super::super::error::{AuthError, Reason, Step, quote};
use super::super::form::Form;
use super::super::grant::{AssertionSource, Enterprise};
use super::super::metadata::ServerMetadata;
use super::super::registration::{Client, Registered};
use super::super::secret::Secret;
use super::ask::TokenEndpoint;
use super::{Engine, Held, Stage};

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

impl Engine {
    pub(super) async fn client_credentials(&self, stage: Stage) -> Result<Held, AuthError> {
        let client = self.registered(&stage.server)?;
        let form = Form::new()
            .with("grant_type", "client_credentials")
            .with_some("scope", stage.scopes.parameter());
        self.redeem(stage, client, form).await
    }

    /// Exchanges the user's ID token for an assertion, then the assertion for a token.
    pub(super) async fn enterprise(
        &self,
        enterprise: &Enterprise,
        stage: Stage,
    ) -> Result<Held, AuthError> {
        let client = self.registered(&stage.server)?;
        let assertion = self.exchange(enterprise, &stage).await?;
        let form = Form::new()
            .with("grant_type", JWT_BEARER)
            .with_secret("assertion", &assertion)
            .with_some("scope", stage.scopes.parameter());
        self.redeem(stage, client, form).await
    }

    async fn exchange(&self, enterprise: &Enterprise, stage: &Stage) -> Result<Secret, AuthError> {
        let step = Step::Assertion;
        let url = self.fetcher.check(step, &enterprise.token_endpoint)?;
        let subject = assertion(&enterprise.subject).await?;
        let resource = stage.resource.as_deref().unwrap_or(self.settings.home.as_str());
        let form = Form::new()
            .with("grant_type", TOKEN_EXCHANGE)
            .with("requested_token_type", ID_JAG)
            .with("audience", &stage.server.issuer)
            .with("resource", resource)
            .with_some("scope", stage.scopes.parameter())
            .with_secret("subject_token", &subject)
            .with("subject_token_type", enterprise.subject_type);
        let client = enterprise.client.known_to(&ServerMetadata::default())?;
        let endpoint = TokenEndpoint {
            fetcher: &self.fetcher,
            nonces: &self.nonces,
            url: &url,
            issuer: provider(&enterprise.client, &url),
            client: &client,
            key: enterprise.client.key().map(AsRef::as_ref),
            proof: None,
        };
        let grant = endpoint.ask(step, form).await?;
        if grant.issued_token_type.as_deref() == Some(ID_JAG) {
            return Ok(grant.access_token);
        }
        let received = match &grant.issued_token_type {
            Some(kind) => format!("issued_token_type {}", quote(kind)),
            None => "no issued_token_type".to_owned(),
        };
        Err(AuthError::new(step, Reason::Broken, received, ID_JAG))
    }

    pub(super) async fn workload(
        &self,
        source: &AssertionSource,
        stage: Stage,
    ) -> Result<Held, AuthError> {
        let client = self.registered(&stage.server)?;
        let assertion = assertion(source).await?;
        let refused = || self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused().as_ref() == Some(&assertion) {
            let received = "the assertion that was rejected before";
            return Err(AuthError::new(Step::Assertion, Reason::Refused, received, "a new one"));
        }
        let form = Form::new()
            .with("grant_type", JWT_BEARER)
            .with_secret("assertion", &assertion)
            .with_some("scope", stage.scopes.parameter());
        let held = self.redeem(stage, client, form).await;
        if held.as_ref().is_err_and(|error| error.reason() == Reason::Refused) {
            *refused() = Some(assertion);
        }
        held
    }

    fn registered(&self, server: &ServerMetadata) -> Result<Registered, AuthError> {
        match &self.settings.client {
            Some(client) => client.known_to(server),
            None => {
                let (received, expected) = ("no client", "a client registered by hand");
                Err(AuthError::new(Step::Registration, Reason::Settings, received, expected))
            }
        }
    }
}

/// The audience of client assertions for the provider: its issuer, if known.
fn provider<'a>(client: &'a Client, url: &'a Url) -> &'a str {
    client.issuer.as_deref().unwrap_or(url.as_str())
}

async fn assertion(source: &AssertionSource) -> Result<Secret, AuthError> {
    source.next().await.map_err(|error| {
        let received = format!("no assertion: {error}");
        AuthError::new(Step::Assertion, Reason::Unavailable, received, "a signed assertion")
    })
}
