//! Grants without a login: assertions signed by a third party.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use super::login::Login;
use super::registration::Client;
use super::secret::Secret;

type Assertions = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Assertion> + Send>> + Send + Sync>;
type Assertion = Result<Secret, Box<dyn Error + Send + Sync>>;

/// A source of signed assertions, asked each time one is needed.
#[derive(Clone)]
pub struct AssertionSource(Assertions);

impl AssertionSource {
    /// Calls a function, which may query a metadata service or renew an assertion.
    pub fn from_fn<F, R>(function: F) -> Self
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Assertion> + Send + 'static,
    {
        Self(Arc::new(move || Box::pin(function())))
    }

    /// Reads a file that another program keeps up to date, as Kubernetes and SPIFFE helpers do.
    pub fn from_file(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self::from_fn(move || {
            let read = std::fs::read_to_string(&path).map_err(|error| named(&path, &error));
            async move { Ok(Secret::new(read?.trim())) }
        })
    }

    /// Always returns the same assertion.
    pub fn fixed(assertion: impl Into<Secret>) -> Self {
        let assertion = assertion.into();
        Self::from_fn(move || std::future::ready(Ok(assertion.clone())))
    }

    pub(super) async fn next(&self) -> Assertion {
        (self.0)().await
    }
}

fn named(path: &std::path::Path, error: &io::Error) -> Box<dyn Error + Send + Sync> {
    format!("{}: {error}", path.display()).into()
}

impl fmt::Debug for AssertionSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AssertionSource(…)")
    }
}

/// An enterprise's identity provider, which decides which servers its users may use
/// (`io.modelcontextprotocol/enterprise-managed-authorization`).
#[derive(Debug, Clone)]
pub struct Enterprise {
    pub(super) token_endpoint: String,
    pub(super) client: Client,
    pub(super) subject: AssertionSource,
    pub(super) subject_type: &'static str,
}

impl Enterprise {
    /// The provider's token endpoint, this application's client at the provider, and the ID token
    /// of the user who is logged in there.
    pub fn new(
        token_endpoint: impl Into<String>,
        client: Client,
        id_token: AssertionSource,
    ) -> Self {
        let subject_type = "urn:ietf:params:oauth:token-type:id_token";
        Self { token_endpoint: token_endpoint.into(), client, subject: id_token, subject_type }
    }

    /// The assertions are SAML 2.0 instead of ID tokens.
    #[must_use]
    pub fn saml(mut self) -> Self {
        self.subject_type = "urn:ietf:params:oauth:token-type:saml2";
        self
    }
}

/// How tokens are obtained.
#[derive(Clone)]
pub(super) enum Way {
    Login(Arc<dyn Login>),
    ClientCredentials,
    Enterprise(Enterprise),
    Workload(AssertionSource),
}

impl Way {
    /// Stored with tokens, so that those of another grant are not mistaken for its own.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Login(_) => "login",
            Self::ClientCredentials => "client credentials",
            Self::Enterprise(_) => "enterprise",
            Self::Workload(_) => "workload",
        }
    }
}

impl fmt::Debug for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
