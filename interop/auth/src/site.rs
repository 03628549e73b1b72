//! Our protected server, and its callers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bowline::client::auth::{OAuth, OAuthBuilder};
use bowline::client::http::{Endpoint, Proxy};
use bowline::client::{CallError, OpenError, Preference, Verdicts};
use bowline::http::auth::{Guard, Introspection, JwtVerifier, KeyLimits, Verify};
use bowline::{Client, Context, Server, Tool, tool};
use bytes::Bytes;
use http::{Request, StatusCode, header};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::person::Person;
use crate::{BoxError, Format, Outcome, World, holds, same};

/// How often to poll.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// A server that stops on drop.
pub(crate) struct Site {
    pub(crate) url: String,
    world: World,
    /// How often the tool that needs a scope ran.
    written: Arc<AtomicU32>,
    task: JoinHandle<()>,
}

/// A user who has logged in.
pub(crate) struct Guest {
    pub(crate) client: Client,
    pub(crate) oauth: OAuth,
    pub(crate) person: Person,
}

impl World {
    /// A server with tokens that live long enough for any check.
    pub(crate) async fn site(&self) -> Result<Site, BoxError> {
        self.site_with(300, |guard| guard).await
    }

    /// A server with a customized guard, whose tokens live for this many seconds.
    pub(crate) async fn site_with(
        &self,
        seconds: u32,
        change: fn(Guard) -> Guard,
    ) -> Result<Site, BoxError> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/mcp", listener.local_addr()?);
        self.promise(&url, seconds).await?;
        let guard = Guard::new(&url, self.verifier().await?)?.scopes(["notes:read"])?;
        let written = Arc::new(AtomicU32::new(0));
        let http = server(&written).http().require_auth(change(guard));
        let task = tokio::spawn(async move {
            if let Err(error) = http.serve_on(listener).await {
                eprintln!("{error}");
            }
        });
        Ok(Site { url, world: self.clone(), written, task })
    }

    /// Sets the lifetime of new tokens for a resource, in seconds.
    pub(crate) async fn promise(&self, url: &str, seconds: u32) -> Outcome {
        let format = if self.format == Format::Jwt { "jwt" } else { "opaque" };
        let resource = json!({ "format": format, "ttl": seconds });
        self.issuer.tell("set", json!({ "resources": { url: resource } })).await
    }

    async fn verifier(&self) -> Result<Arc<dyn Verify>, BoxError> {
        let (issuer, web) = (&self.issuer.url, self.issuer.web.clone());
        Ok(match self.format {
            Format::Jwt => {
                let limits = KeyLimits { cool_down: Duration::ZERO, ..KeyLimits::default() };
                let tokens = JwtVerifier::new(issuer)?.clock_skew(Duration::ZERO);
                Arc::new(tokens.key_limits(limits).web(web))
            }
            Format::Opaque => {
                let endpoint = format!("{issuer}/token/introspection");
                let secret = self.issuer.credentials().await?.secret;
                let tokens = Introspection::new(&endpoint, "machine", &secret)?.issuer(issuer)?;
                Arc::new(tokens.cache(Duration::ZERO).web(web))
            }
        })
    }
}

/// The caller, and their scopes.
#[tool]
async fn who(context: Context) -> String {
    let Some(principal) = &context.caller().principal else { return "nobody".to_owned() };
    let scopes: Vec<_> = principal.scopes().filter(|it| it.starts_with("notes:")).collect();
    format!("{}: {}", principal.subject(), scopes.join(" "))
}

/// The client id of the caller.
#[tool]
async fn client_id(context: Context) -> String {
    let principal = context.caller().principal.as_ref();
    principal.and_then(|it| it.client_id()).unwrap_or_default().to_owned()
}

fn server(written: &Arc<AtomicU32>) -> Server {
    let written = Arc::clone(written);
    let write = move || {
        written.fetch_add(1, Ordering::SeqCst);
        async { "written" }
    };
    Server::new("notes", "1.0.0")
        .with((who, client_id))
        .with(Tool::new("write", write).scopes(["notes:write"]))
}

impl Site {
    /// An authorization that asks a user to log in.
    pub(crate) fn oauth(&self, person: &Person) -> OAuthBuilder {
        OAuth::login(&self.url, person.login()).web(self.world.issuer.web.clone())
    }

    /// Logs in as a user, and connects.
    pub(crate) async fn guest(&self) -> Result<Guest, BoxError> {
        let person = Person::new(&self.world.issuer.web);
        let oauth = self.oauth(&person).build()?;
        let client = self.connect(oauth.clone()).await?;
        Ok(Guest { client, oauth, person })
    }

    pub(crate) async fn connect(&self, oauth: OAuth) -> Result<Client, OpenError> {
        self.open(self.endpoint().authorize(oauth)).await
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::new(&self.url).proxy(Proxy::None)
    }

    pub(crate) async fn open(&self, endpoint: Endpoint) -> Result<Client, OpenError> {
        Client::builder("auth-walk", "1.0.0")
            .preference(Preference::Pin(self.world.revision))
            .verdicts(Verdicts::new())
            .connect(endpoint)
            .await
    }

    /// How often the tool that needs a scope ran.
    pub(crate) fn written(&self) -> u32 {
        self.written.load(Ordering::SeqCst)
    }

    /// Sends a request with these credentials; gives its status and what it is told.
    pub(crate) async fn knock(&self, credentials: &str) -> Result<(StatusCode, String), BoxError> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
        let request = Request::post(&self.url)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, text/event-stream")
            .header(header::AUTHORIZATION, credentials)
            .body(Bytes::from(body.to_string()))?;
        let answer = self.world.issuer.web.fetch(request).await?;
        let challenge = answer.headers().get(header::WWW_AUTHENTICATE);
        let challenge = challenge.and_then(|it| it.to_str().ok()).unwrap_or_default();
        Ok((answer.status(), challenge.to_owned()))
    }

    /// Checks that a token is accepted.
    pub(crate) async fn admits(&self, token: &str) -> Outcome {
        let client = self.open(self.endpoint().bearer(token)).await?;
        let said = client.call_tool("who", json!({})).text().await?;
        client.close().await;
        holds(format!("who is {said:?}"), said.ends_with("notes:read"))
    }

    /// Checks that a token is rejected with a challenge that clients understand.
    pub(crate) async fn rejects(&self, what: &str, token: &str) -> Outcome {
        let (status, challenge) = self.knock(&format!("Bearer {token}")).await?;
        same(what, status, StatusCode::UNAUTHORIZED)?;
        let is_told = challenge.contains(r#"error="invalid_token""#)
            && challenge.contains("/.well-known/oauth-protected-resource/mcp");
        holds(format!("{what}: {challenge}"), is_told)?;
        match self.open(self.endpoint().bearer(token)).await {
            Err(OpenError::Unauthorized { status: 401, .. }) => Ok(()),
            Err(error) => Err(format!("{what}: {error}").into()),
            Ok(_) => Err(format!("{what} is accepted").into()),
        }
    }

    /// Waits until a short-lived token has expired, and checks that it is then rejected.
    pub(crate) async fn waits_for_the_end_of(&self, token: &str) -> Outcome {
        while self.knock(&format!("Bearer {token}")).await?.0 != StatusCode::UNAUTHORIZED {
            tokio::time::sleep(PAUSE).await;
        }
        self.rejects("an expired token", token).await
    }

    /// Checks that tokens with one defect each are rejected.
    pub(crate) async fn rejects_all(&self, odd: &[(&str, Value)]) -> Outcome {
        // Otherwise they might all be rejected for another reason.
        if self.world.format == Format::Jwt {
            self.admits(&self.mint(&json!({})).await?).await?;
        }
        for (what, how) in odd {
            let token = self.mint(how).await?;
            self.rejects(what, &token).await?;
        }
        Ok(())
    }

    /// A token for this server, with these changes.
    pub(crate) async fn mint(&self, how: &Value) -> Result<String, BoxError> {
        let mut how = how.clone();
        let mut claims = json!({ "aud": self.url });
        if let (Some(claims), Some(odd)) = (claims.as_object_mut(), how["claims"].as_object()) {
            claims.extend(odd.clone());
        }
        how["claims"] = claims;
        self.world.issuer.mint(&how).await
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Guest {
    /// The caller as the server sees them, and their scopes.
    pub(crate) async fn who(&self) -> Result<String, CallError> {
        self.client.call_tool("who", json!({})).text().await
    }

    pub(crate) async fn write(&self) -> Result<String, CallError> {
        self.client.call_tool("write", json!({})).text().await
    }
}
