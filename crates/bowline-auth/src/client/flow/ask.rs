//! One request to a token endpoint, with client authentication and the nonces that it asks for.

use bowline_web::Url;
use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode};
use serde::Deserialize;

use super::super::dpop::{DPOP, Nonces, Occasion, ProofKey};
use super::super::error::{AuthError, Step};
use super::super::fetch::Fetcher;
use super::super::form::Form;
use super::super::registration::Registered;
use super::super::token::{Grant, refusal};
use crate::clock::unix_seconds;
use crate::jws::SigningKey;

pub(super) const FORM: &str = "application/x-www-form-urlencoded";

/// A token endpoint, and the client that uses it.
pub(super) struct TokenEndpoint<'a> {
    pub(super) fetcher: &'a Fetcher,
    pub(super) nonces: &'a Nonces,
    pub(super) url: &'a Url,
    pub(super) issuer: &'a str,
    pub(super) client: &'a Registered,
    pub(super) key: Option<&'a SigningKey>,
    pub(super) proof: Option<&'a ProofKey>,
}

impl TokenEndpoint<'_> {
    pub(super) async fn ask(&self, step: Step, form: Form) -> Result<Grant, AuthError> {
        loop {
            let mut headers = HeaderMap::new();
            let who = (self.issuer, unix_seconds());
            let sent = self.client.sign_in(form.clone(), &mut headers, self.key, who)?;
            let proof = self.prove();
            headers.extend(proof.clone().map(|proof| (DPOP, proof)));
            let response =
                self.fetcher.post(step, self.url, headers, (FORM, sent.encode())).await?;
            let wants_nonce = self.proof.is_some() && wants_nonce(&response);
            // Bounded by the nonces' depth.
            if self.nonces.handle(
                self.url.as_str(),
                proof.as_ref(),
                response.headers(),
                wants_nonce,
            ) {
                continue;
            }
            return match response.status() {
                StatusCode::OK => Grant::parse(step, response.body()),
                status => Err(refusal(step, status.as_u16(), response.body(), &sent)),
            };
        }
    }

    fn prove(&self) -> Option<http::HeaderValue> {
        let nonce = self.nonces.of(self.url.as_str());
        let occasion = Occasion {
            method: &Method::POST,
            uri: self.url.uri(),
            token: None,
            nonce: nonce.as_deref(),
        };
        self.proof.map(|key| key.prove(&occasion))
    }
}

#[derive(Deserialize)]
struct ErrorResponse {
    error: String,
}

fn wants_nonce(response: &Response<Bytes>) -> bool {
    let is_error = matches!(response.status(), StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED);
    let refusal = || serde_json::from_slice::<ErrorResponse>(response.body()).ok();
    is_error && refusal().is_some_and(|refusal| refusal.error == "use_dpop_nonce")
}
