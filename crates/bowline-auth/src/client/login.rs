//! The user's login: shows a page, and waits for the redirect.

mod browser;
mod loopback;
mod paste;

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::secret::Secret;

pub use browser::{Browser, open_page};
pub use paste::Paste;

/// What the methods of [`Login`] and [`Visit`] return.
pub type Waiting<'a, T> = Pin<Box<dyn Future<Output = Result<T, LoginError>> + Send + 'a>>;

/// Why a login did not finish.
pub type LoginError = Box<dyn Error + Send + Sync>;

/// Lets a user log in.
///
/// [`Browser`] and [`Paste`] suit programs on a desktop or in a terminal. [`Hook`] wraps a
/// function, for applications with their own window or web page.
pub trait Login: Send + Sync {
    /// Prepares for one redirect, for instance by listening on a port.
    fn begin(&self) -> Waiting<'_, Box<dyn Visit>>;
}

/// One login in progress.
pub trait Visit: Send {
    /// Where the authorization server redirects the user afterwards.
    fn redirect_uri(&self) -> &str;

    /// Shows the user the page, and waits for the redirect. The caller enforces the time limit;
    /// dropping the future ends the login.
    fn finish(self: Box<Self>, page: AuthorizationUrl) -> Waiting<'static, Redirected>;
}

/// The page where the user logs in.
#[derive(Clone)]
pub struct AuthorizationUrl(pub(super) String);

impl AuthorizationUrl {
    /// The URL: `https`, or `http` on this machine; safe to open.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The state that the redirect must carry, which tells concurrent logins apart.
    pub fn state(&self) -> Option<String> {
        let (_, query) = self.0.split_once('?')?;
        let pairs = super::form::decode(query)?;
        pairs.into_iter().find(|(name, _)| name == "state").map(|(_, value)| value)
    }
}

/// Without the query, which is secret and valid for one login.
impl fmt::Debug for AuthorizationUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let page = self.0.split('?').next().unwrap_or_default();
        write!(f, "AuthorizationUrl({page})")
    }
}

/// What the redirect carried.
#[derive(Clone)]
pub enum Redirected {
    /// The query of the redirect, percent-encoded as it was.
    Query(String),
    /// A code that was copied by hand.
    Code(Secret),
}

impl Redirected {
    /// From the URL of the redirect, or its query alone.
    pub fn at(address: &str) -> Self {
        let query = address.split_once('?').map_or(address, |(_, query)| query);
        Self::Query(query.split('#').next().unwrap_or_default().to_owned())
    }
}

impl fmt::Debug for Redirected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Query(_) => "Query(…)",
            Self::Code(_) => "Code(…)",
        })
    }
}

/// A login through a function of the application.
///
/// ```
/// use bowline_auth::client::{Hook, Redirected};
///
/// let login = Hook::new("https://app.example/callback", |page| async move {
///     // Show `page.as_str()` in a window, and wait for it to reach the redirect.
///     Ok(Redirected::at("https://app.example/callback?code=1&state=2"))
/// });
/// ```
pub struct Hook<F> {
    redirect: Arc<str>,
    function: Arc<F>,
}

impl<F, R> Hook<F>
where
    F: Fn(AuthorizationUrl) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Redirected, LoginError>> + Send + 'static,
{
    /// Logs in by calling `function`, with redirects to `redirect`.
    pub fn new(redirect: impl Into<Arc<str>>, function: F) -> Self {
        Self { redirect: redirect.into(), function: Arc::new(function) }
    }
}

impl<F, R> Login for Hook<F>
where
    F: Fn(AuthorizationUrl) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Redirected, LoginError>> + Send + 'static,
{
    fn begin(&self) -> Waiting<'_, Box<dyn Visit>> {
        let visit =
            Self { redirect: Arc::clone(&self.redirect), function: Arc::clone(&self.function) };
        Box::pin(async move { Ok(Box::new(visit) as Box<dyn Visit>) })
    }
}

impl<F, R> Visit for Hook<F>
where
    F: Fn(AuthorizationUrl) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Redirected, LoginError>> + Send + 'static,
{
    fn redirect_uri(&self) -> &str {
        &self.redirect
    }

    fn finish(self: Box<Self>, page: AuthorizationUrl) -> Waiting<'static, Redirected> {
        Box::pin((self.function)(page))
    }
}

impl<F> fmt::Debug for Hook<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hook").field("redirect", &self.redirect).finish_non_exhaustive()
    }
}
