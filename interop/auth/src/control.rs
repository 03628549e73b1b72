//! The authorization server: its process, and its control endpoints.

use std::process::Stdio;
use std::sync::Arc;

use bowline_web::{Proxy, Web};
use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::{BoxError, same};

/// An authorization server that runs until the last clone of this is dropped.
#[derive(Clone)]
pub(crate) struct Issuer {
    pub(crate) url: String,
    pub(crate) web: Web,
    _process: Arc<Child>,
}

/// What an authorization server has done so far.
#[derive(Debug, Deserialize)]
pub(crate) struct IssuerState {
    pub(crate) counts: Counts,
    pub(crate) issued: Issued,
    pub(crate) secrets: Vec<String>,
}

/// How often each event happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Counts {
    pub(crate) registrations: u32,
    pub(crate) logins: u32,
    pub(crate) codes: u32,
    pub(crate) refreshes: u32,
    pub(crate) refusals: u32,
    pub(crate) key_fetches: u32,
}

/// The tokens that were issued last.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Issued {
    pub(crate) access_token: String,
    pub(crate) refresh_token: String,
    pub(crate) token_type: String,
    pub(crate) scope: String,
}

/// The credentials of an application without a user.
#[derive(Debug, Deserialize)]
pub(crate) struct Credentials {
    pub(crate) secret: String,
    pub(crate) key: String,
}

impl Issuer {
    /// Starts it, and waits until it has a port.
    pub(crate) async fn start(node: &str, script: &str) -> Result<Self, BoxError> {
        let mut process = Command::new(node)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("{node}: {error}"))?;
        let said = process.stdout.take().ok_or("no standard output")?;
        let port = BufReader::new(said).lines().next_line().await?;
        let port = port.ok_or("the authorization server exited before it had a port")?;
        let web = Web::builder().only_given_roots().proxy(Proxy::None).build()?;
        Ok(Self { url: format!("http://127.0.0.1:{port}"), web, _process: Arc::new(process) })
    }

    pub(crate) async fn state(&self) -> Result<IssuerState, BoxError> {
        self.ask("state", &json!({})).await
    }

    pub(crate) async fn counts(&self) -> Result<Counts, BoxError> {
        Ok(self.state().await?.counts)
    }

    pub(crate) async fn credentials(&self) -> Result<Credentials, BoxError> {
        self.ask("credentials", &json!({})).await
    }

    /// Tells it to do something, or changes a setting.
    pub(crate) async fn tell(&self, what: &str, how: Value) -> Result<(), BoxError> {
        let _: Value = self.ask(what, &how).await?;
        Ok(())
    }

    /// A token that it would not issue.
    pub(crate) async fn mint(&self, how: &Value) -> Result<String, BoxError> {
        let made: Value = self.ask("mint", how).await?;
        Ok(made["token"].as_str().unwrap_or_default().to_owned())
    }

    /// A regular token for an application, for some resource.
    pub(crate) async fn token_for(&self, resource: &str) -> Result<String, BoxError> {
        let secret = self.credentials().await?.secret;
        let form = [
            ("grant_type", "client_credentials"),
            ("client_id", "machine"),
            ("client_secret", &secret),
            ("scope", "notes:read"),
            ("resource", resource),
        ];
        let answer = self.post("/token", &form).await?;
        same("token endpoint", answer.status(), StatusCode::OK)?;
        let issued: Issued = serde_json::from_slice(answer.body())?;
        Ok(issued.access_token)
    }

    /// Posts a form to one of its endpoints.
    pub(crate) async fn post(
        &self,
        path: &str,
        form: &[(&str, &str)],
    ) -> Result<Response<Bytes>, BoxError> {
        let encode = |text: &str| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
            let escape = |byte| {
                if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
            };
            text.bytes().map(escape).collect::<String>()
        };
        let pairs = form.iter().map(|(name, value)| format!("{name}={}", encode(value)));
        let body = pairs.collect::<Vec<_>>().join("&");
        let request = Request::post(format!("{}{path}", self.url))
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Bytes::from(body))?;
        Ok(self.web.fetch(request).await?)
    }

    async fn ask<T: DeserializeOwned>(&self, what: &str, how: &Value) -> Result<T, BoxError> {
        let request = Request::post(format!("{}/control/{what}", self.url));
        let answer = self.web.fetch(request.body(Bytes::from(how.to_string()))?).await?;
        if answer.status() != StatusCode::OK {
            return Err(format!("{what}: {:?}", answer.body()).into());
        }
        Ok(serde_json::from_slice(answer.body())?)
    }
}
