//! The authorization code grant: identifies the client, lets the user log in, redeems the code.

use bowline_web::Url;
use http::{HeaderMap, StatusCode};

use super::super::callback::Pending;
use super::super::discover::{check_pkce, endpoint};
use super::super::error::{AuthError, Reason, Step, quote};
use super::super::form::Form;
use super::super::login::{AuthorizationUrl, Login, Redirected, Visit};
use super::super::metadata::ServerMetadata;
use super::super::pkce::{Pkce, unguessable};
use super::super::registration::{self, Registered};
use super::super::scope::is_offline;
use super::super::secret::Secret;
use super::super::store::StoreLock;
use super::super::token;
use super::keep::client_key;
use super::{Engine, Held, Stage};
use crate::clock::unix_seconds;

impl Engine {
    pub(super) async fn ask_person(
        &self,
        login: &dyn Login,
        stage: Stage,
        lock: StoreLock,
    ) -> Result<Held, AuthError> {
        let server = &stage.server;
        if !(self.settings.assumes_pkce && server.code_challenge_methods_supported.is_none()) {
            check_pkce(server)?;
        }
        let address = server.authorization_endpoint.as_deref();
        let page = endpoint(&self.fetcher, address, "authorization_endpoint")?;
        let visit = login.begin().await.map_err(|error| {
            let received = format!("no redirect URI: {error}");
            AuthError::new(
                Step::Login,
                Reason::Unavailable,
                received,
                "a redirect URI to listen on",
            )
        })?;
        let redirect = visit.redirect_uri().to_owned();
        check_redirect(&redirect)?;
        let client = self.identify(server, &redirect, stage.proof.is_some()).await?;
        // Other processes need not wait for the user.
        drop(lock);
        let (pkce, state) = (Pkce::new(), Secret::new(unguessable()));
        let query = Form::new()
            .with("response_type", "code")
            .with("client_id", &client.id)
            .with("redirect_uri", &redirect)
            .with_secret("state", &state)
            .with("code_challenge", &pkce.challenge)
            .with("code_challenge_method", "S256")
            .with_some("scope", stage.scopes.parameter())
            .with_some("prompt", is_offline(&stage.scopes).then_some("consent"))
            .with_some("resource", stage.resource.as_deref());
        let page = AuthorizationUrl(page.with_query(&query.encode()));
        let redirected = self.visit(visit, page).await?;
        let names_issuer = server.authorization_response_iss_parameter_supported;
        let pending = Pending { state, issuer: server.issuer.clone(), names_issuer };
        let code = pending.accept(&redirected)?;
        let form = Form::new()
            .with("grant_type", "authorization_code")
            .with_secret("code", &code)
            .with("redirect_uri", redirect)
            .with_secret("code_verifier", &pkce.verifier);
        let issuer = server.issuer.clone();
        let redeemed = self.redeem(stage, client, form).await;
        self.forget_if_forgotten(&issuer, redeemed).await
    }

    async fn visit(
        &self,
        visit: Box<dyn Visit>,
        page: AuthorizationUrl,
    ) -> Result<Redirected, AuthError> {
        let limit = self.settings.limits.login;
        let visit = tokio::time::timeout(limit, visit.finish(page)).await;
        let expected = "a login that finishes";
        let fail =
            |received: String| AuthError::new(Step::Login, Reason::Abandoned, received, expected);
        match visit {
            Ok(Ok(redirected)) => Ok(redirected),
            Ok(Err(error)) => Err(fail(error.to_string())),
            Err(_) => Err(fail(format!("no redirect within {} s", limit.as_secs_f32()))),
        }
    }

    /// The client to use at this server: registered by hand, described by a document, or registered
    /// dynamically, now or earlier.
    async fn identify(
        &self,
        server: &ServerMetadata,
        redirect: &str,
        is_dpop: bool,
    ) -> Result<Registered, AuthError> {
        if let Some(client) = &self.settings.client {
            return client.known_to(server);
        }
        if let Some(document) = &self.settings.document
            && server.client_id_metadata_document_supported
        {
            return Ok(Registered::by_document(document));
        }
        let name = client_key(&server.issuer);
        let before: Option<Registered> = self.read(&name).await?;
        if let Some(before) = before.filter(|it| it.is_good_for(redirect, unix_seconds())) {
            return Ok(before);
        }
        if server.registration_endpoint.is_none() {
            let received = "no registration_endpoint";
            let expected = format!(
                "a registration_endpoint, or a client registered by hand at {}",
                quote(&server.issuer)
            );
            return Err(AuthError::new(Step::Registration, Reason::Settings, received, expected));
        }
        let registered = self.register(server, redirect, is_dpop).await?;
        self.write(&name, &registered).await;
        Ok(registered)
    }

    async fn register(
        &self,
        server: &ServerMetadata,
        redirect: &str,
        is_dpop: bool,
    ) -> Result<Registered, AuthError> {
        let address = server.registration_endpoint.as_deref();
        let url = endpoint(&self.fetcher, address, "registration_endpoint")?;
        let document = registration::request(server, &self.settings.name, redirect, is_dpop)?;
        let body = ("application/json", document.to_string());
        let response = self.fetcher.post(Step::Registration, &url, HeaderMap::new(), body).await?;
        match response.status() {
            StatusCode::OK | StatusCode::CREATED => {
                registration::parse_response(response.body(), server, redirect)
            }
            status => {
                let (status, sent) = (status.as_u16(), Form::new());
                Err(token::refusal(Step::Registration, status, response.body(), &sent))
            }
        }
    }
}

/// A code must not be sent unencrypted over a network. A redirect that is neither `http` nor
/// `https` is a private scheme of the application.
fn check_redirect(redirect: &str) -> Result<(), AuthError> {
    let is_web = redirect.starts_with("http:") || redirect.starts_with("https:");
    let is_safe = |url: Url| url.is_https() || url.is_loopback();
    if !is_web || Url::parse(redirect).is_ok_and(is_safe) {
        return Ok(());
    }
    let expected = "a redirect to https, to http on this machine, or to a private scheme";
    Err(AuthError::new(Step::Login, Reason::Settings, quote(redirect), expected))
}
