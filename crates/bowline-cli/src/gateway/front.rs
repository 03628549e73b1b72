//! What stands in front of a gateway: host names and tokens.

use bowline::http::Http;
use bowline::http::auth::{Guard, Introspection, JwtVerifier};
use bowline::{Server, with_causes};

use super::file::{self, Dpop};

/// What callers need.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Front {
    pub(super) hosts: Vec<String>,
    pub(super) auth: Option<file::Auth>,
}

impl Front {
    pub(super) fn of(settings: &file::Section) -> Self {
        Self { hosts: settings.hosts.clone(), auth: settings.auth.clone() }
    }

    /// Whether the same callers get in. The names of groups are read by the rules, not here.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let plain = |front: &Self| {
            let auth = front.auth.clone();
            (front.hosts.clone(), auth.map(|it| file::Auth { groups: Vec::new(), ..it }))
        };
        plain(self) == plain(other)
    }

    /// The URL of the endpoint for all servers, or of that of one, beside it.
    fn resource(&self, key: Option<&str>) -> Option<String> {
        let resource = &self.auth.as_ref()?.resource;
        let Some(key) = key else { return Some(resource.clone()) };
        let base = resource.strip_suffix("/mcp").unwrap_or(resource);
        Some(format!("{base}/servers/{key}/mcp"))
    }

    /// Puts hosts and tokens in front of a server: of all, or of the one that is named.
    ///
    /// # Errors
    /// When a setting cannot be used.
    pub(super) fn guard(&self, server: Server, key: Option<&str>) -> Result<Http, String> {
        let mut http = server.http();
        for host in &self.hosts {
            http = http.allow_host(host).map_err(|error| format!("hosts: {host}: {error}"))?;
        }
        if let (Some(auth), Some(resource)) = (&self.auth, self.resource(key)) {
            let guard = guard(auth, &resource);
            let guard = guard.map_err(|error| format!("auth: {}", with_causes(&*error)))?;
            http = http.require_auth(guard);
        }
        Ok(http)
    }
}

fn guard(auth: &file::Auth, resource: &str) -> Result<Guard, Box<dyn std::error::Error>> {
    let guard = match &auth.introspection {
        None => Guard::new(resource, JwtVerifier::new(&auth.issuer)?)?,
        Some(it) => {
            let asking = Introspection::new(&it.endpoint, &it.client_id, &it.client_secret)?;
            let guard = Guard::new(resource, asking.issuer(&auth.issuer)?)?;
            guard.authorization_server(&auth.issuer)?
        }
    };
    let guard = match auth.dpop {
        None => guard,
        Some(Dpop::Offer) => guard.offer_dpop(),
        Some(Dpop::Require) => guard.require_dpop(),
    };
    Ok(if auth.scopes.is_empty() { guard } else { guard.scopes(auth.scopes.iter().cloned())? })
}
