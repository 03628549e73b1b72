//! What is stored between errands, and under which keys.
//!
//! Registrations and proof keys belong to an issuer and are stored under its name: no other
//! authorization server ever sees them.

use std::sync::atomic::Ordering;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::super::dpop::ProofKey;
use super::super::error::{AuthError, Reason, Step};
use super::super::secret::Secret;
use super::super::store::{StoreError, StoreLock};
use super::super::token::{TokenType, Tokens};
use super::{Engine, Held};

impl Engine {
    /// Loads the tokens that an earlier run or another process stored.
    pub(in super::super) async fn load(&self) -> Result<Option<Held>, AuthError> {
        if self.is_anew.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let Some(tokens) = self.read::<Tokens>(&self.tokens_key()).await? else {
            return Ok(None);
        };
        let is_ours = tokens.grant == self.settings.way.name()
            && self.settings.client.as_ref().is_none_or(|client| client.id == tokens.client.id);
        if !is_ours {
            return Ok(None);
        }
        let proof = match tokens.kind {
            TokenType::Bearer => None,
            TokenType::Dpop => self.stored_key(&tokens.issuer).await?,
        };
        // A bound token without its key is worthless.
        let is_usable = tokens.kind == TokenType::Bearer || proof.is_some();
        Ok(is_usable.then_some(Held { tokens, proof }))
    }

    /// Removes the tokens of this server.
    pub(in super::super) async fn forget(&self) -> Result<(), AuthError> {
        let _lock = self.lock().await?;
        self.store.remove(&self.tokens_key()).await.map_err(|error| store_error(&error))
    }

    /// The key that tokens of this issuer are bound to; generated if there is none.
    pub(super) async fn key_for(&self, issuer: &str) -> Result<ProofKey, AuthError> {
        if let Some(key) = self.stored_key(issuer).await? {
            return Ok(key);
        }
        let key = ProofKey::generate();
        let saved = self.store.save(&key_key(issuer), key.stored()).await;
        saved.map_err(|error| store_error(&error))?;
        Ok(key)
    }

    /// Returns the outcome. If the server no longer knows the client, the registration is removed,
    /// so that the next login registers again.
    pub(super) async fn forget_if_forgotten<T>(
        &self,
        issuer: &str,
        outcome: Result<T, AuthError>,
    ) -> Result<T, AuthError> {
        if outcome.as_ref().is_err_and(|error| error.code() == Some("invalid_client")) {
            let removed = self.store.remove(&client_key(issuer)).await;
            removed.map_err(|error| store_error(&error))?;
        }
        outcome
    }

    fn tokens_key(&self) -> String {
        let account = self.settings.account.as_ref().map(|account| format!(" {account}"));
        format!("tokens {}{}", self.settings.home.as_str(), account.unwrap_or_default())
    }

    async fn stored_key(&self, issuer: &str) -> Result<Option<ProofKey>, AuthError> {
        let stored =
            self.store.load(&key_key(issuer)).await.map_err(|error| store_error(&error))?;
        Ok(stored.and_then(ProofKey::from_stored))
    }

    pub(super) async fn lock(&self) -> Result<StoreLock, AuthError> {
        self.store.lock(&self.tokens_key()).await.map_err(|error| store_error(&error))
    }

    pub(super) async fn read<T: DeserializeOwned>(
        &self,
        key: &str,
    ) -> Result<Option<T>, AuthError> {
        let text = self.store.load(key).await.map_err(|error| store_error(&error))?;
        Ok(text.and_then(|text| serde_json::from_str(text.expose()).ok()))
    }

    pub(super) async fn write(&self, key: &str, value: &(impl Serialize + Sync)) {
        let text = serde_json::to_string(value).expect("strings and numbers can be serialized");
        if let Err(error) = self.store.save(key, &Secret::new(text)).await {
            // The credentials are still valid: only the next run has to log in again.
            tracing::warn!(%error, "cannot store credentials");
        }
    }

    pub(super) async fn save(&self, held: &Held) {
        self.is_anew.store(false, Ordering::Relaxed);
        self.write(&self.tokens_key(), &held.tokens).await;
    }
}

pub(super) fn client_key(issuer: &str) -> String {
    format!("client {issuer}")
}

fn key_key(issuer: &str) -> String {
    format!("key {issuer}")
}

fn store_error(error: &StoreError) -> AuthError {
    let received = error.to_string();
    AuthError::new(Step::Store, Reason::Unavailable, received, "a readable and writable store")
}
