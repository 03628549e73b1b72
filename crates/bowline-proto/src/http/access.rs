//! Which requests may reach a server: protects it from foreign pages in the user's own browser.
//!
//! A page can make the browser send requests to `localhost`, and by DNS rebinding even read the
//! responses. It cannot forge `Host`, `Origin` and `Sec-Fetch-Site`. So every route compares these
//! with a list before anything else happens. This is not authentication: programs can send any
//! header.

use std::fmt;

use ::http::HeaderValue;

use super::authority::{Authority, LOCAL_NAMES, Origin};
use super::fields::{Field, Fields};
use super::quote;

/// The names of a server, and the pages that may use it.
///
/// Starts with `localhost`, `127.0.0.1` and `[::1]`, on any port, for both; more are added by name.
/// Pages of an added host may use that host; other pages are added as origins.
///
/// ```
/// use bowline_proto::http::Access;
///
/// let access = Access::new()
///     .with_host("mcp.example.com")?
///     .with_origin("https://app.example.com")?;
/// # Ok::<(), bowline_proto::http::AccessError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Access {
    is_loopback_allowed: bool,
    is_any_host_allowed: bool,
    // Texts that `Authority` and `Origin` can parse, which is cheap to repeat.
    hosts: Vec<String>,
    origins: Vec<String>,
}

impl Default for Access {
    fn default() -> Self {
        Self::new()
    }
}

impl Access {
    /// Loopback only.
    pub const fn new() -> Self {
        Self {
            is_loopback_allowed: true,
            is_any_host_allowed: false,
            hosts: Vec::new(),
            origins: Vec::new(),
        }
    }

    /// Also accepts requests for this name: on any port, or on the given one.
    ///
    /// # Errors
    /// When it is not `host` or `host:port`. Names outside ASCII must be in their `xn--` form.
    pub fn with_host(mut self, host: &str) -> Result<Self, AccessError> {
        Authority::parse(host).ok_or_else(|| AccessError(host.to_owned(), "host or host:port"))?;
        self.hosts.push(host.to_owned());
        Ok(self)
    }

    /// Also accepts requests from pages of this origin, on any site.
    ///
    /// # Errors
    /// When it is not `scheme://host` or `scheme://host:port`.
    pub fn with_origin(mut self, origin: &str) -> Result<Self, AccessError> {
        Origin::parse(origin)
            .ok_or_else(|| AccessError(origin.to_owned(), "scheme://host or scheme://host:port"))?;
        self.origins.push(origin.to_owned());
        Ok(self)
    }

    /// Accepts requests for any name: for servers behind a proxy that has checked it. Pages must
    /// still be on the list.
    #[must_use]
    pub const fn with_any_host(mut self) -> Self {
        self.is_any_host_allowed = true;
        self
    }

    /// Removes loopback from the list: only what was added is accepted.
    #[must_use]
    pub const fn without_loopback(mut self) -> Self {
        self.is_loopback_allowed = false;
        self
    }

    /// Checks a request. `authority` is that of the request's target, if it has one: `:authority`
    /// in HTTP/2, the whole URL in HTTP/1.1.
    ///
    /// # Errors
    /// When the request must be rejected with 403.
    pub fn check(&self, authority: Option<&str>, fields: &Fields<'_>) -> Result<(), Denied> {
        let host = find_host(authority, fields)?;
        let is_named = self.names(&host);
        if !is_named && !self.is_any_host_allowed {
            return Err(Denied::Host(seen_host(authority, fields)));
        }
        let seen = only(fields.origin, "Origin", fields)?;
        let mut is_listed = false;
        if let Some(seen) = seen {
            let denied = || Denied::Origin(seen.to_owned());
            let origin = Origin::parse(seen).ok_or_else(denied)?;
            is_listed = self.lists(&origin);
            // If any host is allowed, a page's own name proves nothing: rebinding makes the two
            // equal.
            let is_own = is_named && origin.is_web() && is_same(&origin, &host);
            if !(is_listed || is_own || self.is_local(&origin)) {
                return Err(denied());
            }
        }
        if !is_listed && fields.is_cross_site {
            return Err(Denied::CrossSite(seen.map(str::to_owned)));
        }
        Ok(())
    }

    fn names(&self, host: &Authority<'_>) -> bool {
        let is_named = self.hosts.iter().filter_map(|text| Authority::parse(text)).any(|named| {
            named.host == host.host && (named.port.is_none() || named.port == host.port)
        });
        is_named || self.is_loopback_allowed && LOCAL_NAMES.contains(&host.host)
    }

    fn lists(&self, origin: &Origin<'_>) -> bool {
        self.origins.iter().filter_map(|text| Origin::parse(text)).any(|listed| listed.is(origin))
    }

    fn is_local(&self, origin: &Origin<'_>) -> bool {
        self.is_loopback_allowed && origin.is_web() && LOCAL_NAMES.contains(&origin.authority.host)
    }
}

/// Whether a page uses the server it came from.
fn is_same(origin: &Origin<'_>, host: &Authority<'_>) -> bool {
    origin.authority.host == host.host && origin.port() == host.port_for(origin.scheme)
}

fn find_host<'a>(authority: Option<&'a str>, fields: &Fields<'a>) -> Result<Authority<'a>, Denied> {
    let parse = |text: &'a str| {
        Authority::parse(text)
            .ok_or_else(|| Denied::Malformed { header: "Host", seen: text.to_owned() })
    };
    let target = authority.map(parse).transpose()?;
    let host = only(fields.host, "Host", fields)?.map(parse).transpose()?;
    match (target, host) {
        (Some(target), Some(host)) if target.host != host.host || target.port != host.port => {
            Err(Denied::Malformed { header: "Host", seen: seen_host(None, fields) })
        }
        (Some(found), _) | (None, Some(found)) => Ok(found),
        (None, None) => Err(Denied::Malformed { header: "Host", seen: String::new() }),
    }
}

fn seen_host(authority: Option<&str>, fields: &Fields<'_>) -> String {
    match authority {
        Some(text) => text.to_owned(),
        None => fields.host.first().map(text_of).unwrap_or_default(),
    }
}

/// The text of `Host` or `Origin`.
fn only<'a>(
    field: Field<'a>,
    header: &'static str,
    fields: &Fields<'_>,
) -> Result<Option<&'a str>, Denied> {
    let value = match field {
        Field::Absent => return Ok(None),
        Field::Once(value) => value.to_str().ok(),
        Field::Repeated(_) => None,
    };
    match value {
        Some(text) => Ok(Some(text.trim_ascii())),
        None => {
            let seen: Vec<_> = fields.all.get_all(header).iter().map(text_of).collect();
            Err(Denied::Malformed { header, seen: seen.join(", ") })
        }
    }
}

fn text_of(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// Why a request is rejected, with the header at fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denied {
    /// It was sent to a name that is not on the list.
    Host(String),
    /// It comes from a page that is not on the list, or from an opaque origin (`null`).
    Origin(String),
    /// It comes from a page on another site, which must be listed as an origin.
    CrossSite(Option<String>),
    /// `Host` is missing or contradicts the target, or one of the headers is malformed or repeated.
    Malformed {
        /// `Host` or `Origin`.
        header: &'static str,
        /// Its value.
        seen: String,
    },
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(seen) => write!(
                f,
                "Host {} is not allowed; if it is a name of this server, add it to the allowed hosts",
                quote(seen)
            ),
            Self::Origin(seen) => write!(
                f,
                "Origin {} is not allowed; if that page is trusted, add it to the allowed origins",
                quote(seen)
            ),
            Self::CrossSite(Some(seen)) => write!(
                f,
                "a page on another site, {}, is not allowed; if it is trusted, add it to the \
                 allowed origins",
                quote(seen)
            ),
            Self::CrossSite(None) => f.write_str("a page on another site is not allowed"),
            Self::Malformed { header, seen } if seen.is_empty() => {
                write!(f, "{header} is missing or empty")
            }
            Self::Malformed { header, seen } => {
                write!(f, "{header} {} is ambiguous or malformed", quote(seen))
            }
        }
    }
}

impl std::error::Error for Denied {}

/// A host or origin that is not valid: its text, and what was expected.
#[derive(Clone, PartialEq, Eq)]
pub struct AccessError(String, &'static str);

crate::debug_as_sentence!(AccessError);

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not {}", quote(&self.0), self.1)
    }
}

impl std::error::Error for AccessError {}

#[cfg(test)]
mod tests;
