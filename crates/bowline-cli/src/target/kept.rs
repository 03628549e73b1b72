//! Stored logins: `bowline login` stores them, all other commands use them.

use std::path::PathBuf;

use bowline::client::auth::{FileStore, Login, OAuth, Visit, Waiting};
use bowline::client::http::{Authorize, AuthorizeError, Endpoint, Next};
use bowline_web::{Web, WebBuilder};
use http::request::Parts;
use http::{HeaderMap, StatusCode};

use super::{Location, Resolved};
use crate::failure::Failure;

impl Resolved {
    /// An HTTP client that trusts what the command line says.
    pub(crate) fn web(&self) -> Result<WebBuilder, Failure> {
        let mut web = Web::builder();
        if let Some(pem) = self.ca_pem()? {
            web = web.ca_pem(&pem);
        }
        Ok(if self.is_insecure { web.danger_accept_any_certificate() } else { web })
    }

    /// An endpoint that trusts the same.
    pub(crate) fn secured(&self, mut endpoint: Endpoint) -> Result<Endpoint, Failure> {
        if let Some(pem) = self.ca_pem()? {
            endpoint = endpoint.ca_pem(&pem);
        }
        Ok(if self.is_insecure { endpoint.danger_accept_any_certificate() } else { endpoint })
    }

    fn ca_pem(&self) -> Result<Option<Vec<u8>>, Failure> {
        let Some(file) = &self.ca else { return Ok(None) };
        std::fs::read(file).map(Some).map_err(|error| Failure::file("--ca", file, error))
    }

    /// The login stored for a URL, unless a header authorizes requests.
    pub(crate) fn login(&self) -> Option<Kept> {
        let Location::Url { url, headers } = &self.location else { return None };
        if !self.uses_logins {
            return None;
        }
        let is_authorized =
            headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        if is_authorized { None } else { find(url, self.web().ok()?.build().ok()?) }
    }
}

/// The folder of stored logins, which only its owner can read. `None` when the user has no home.
pub(crate) fn credentials() -> Option<PathBuf> {
    data_dir().map(|dir| dir.join("credentials"))
}

/// Where Bowline keeps its data for this user.
pub(super) fn data_dir() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    if let Some(dir) = named("BOWLINE_DATA_DIR") {
        return Some(dir);
    }
    let base = if cfg!(target_os = "macos") {
        std::env::home_dir()?.join("Library/Application Support")
    } else if cfg!(windows) {
        named("APPDATA")?
    } else {
        let told = named("XDG_DATA_HOME").filter(|dir| dir.is_absolute());
        told.or_else(|| Some(std::env::home_dir()?.join(".local/share")))?
    };
    Some(base.join("bowline"))
}

/// A login for this server, if any logins are stored at all: a closer look costs more.
fn find(url: &str, web: Web) -> Option<Kept> {
    let folder = credentials().filter(|folder| folder.is_dir())?;
    let store = FileStore::open(folder).ok()?;
    let login = OAuth::login(url, Nobody).client_name("Bowline").store(store).web(web);
    login.build().ok().map(Kept)
}

/// Uses and renews a stored login. Never asks the user, and never runs discovery for a server that
/// the user has not logged in to.
pub(crate) struct Kept(OAuth);

type Authorized<'a, T> =
    std::pin::Pin<Box<dyn Future<Output = Result<T, AuthorizeError>> + Send + 'a>>;

impl Authorize for Kept {
    fn headers<'a>(&'a self, request: &'a Parts) -> Authorized<'a, HeaderMap> {
        self.0.headers(request)
    }

    fn handle_answer<'a>(
        &'a self,
        sent: &'a Parts,
        status: StatusCode,
        headers: &'a HeaderMap,
    ) -> Authorized<'a, Next> {
        if sent.headers.contains_key(http::header::AUTHORIZATION) {
            self.0.handle_answer(sent, status, headers)
        } else {
            Box::pin(async { Ok(Next::Use) })
        }
    }
}

struct Nobody;

impl Login for Nobody {
    fn begin(&self) -> Waiting<'_, Box<dyn Visit>> {
        Box::pin(async { Err("the stored login is no longer valid".into()) })
    }
}
