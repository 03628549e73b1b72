//! Which hosts a client may reach.
//!
//! Names are resolved here and nowhere else, and a connection goes to an address that was checked:
//! a name that resolves to another address a moment later (DNS rebinding) gains nothing.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::uri::Authority;

use crate::address::why_not_public;
use crate::{Host, Origin, Url, WebError};

/// Which hosts a client may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reach {
    /// All hosts.
    #[default]
    Anywhere,
    /// Addresses on the public internet: no loopback, private, link-local or otherwise special
    /// address, however it is spelled and whatever name resolves to it.
    Public {
        /// Hosts that are allowed as well, as URLs spell them. Without a port, the default port of
        /// the URL's scheme is meant.
        also: Vec<Authority>,
    },
}

impl Reach {
    /// The public internet only.
    #[must_use]
    pub fn public() -> Self {
        Self::Public { also: Vec::new() }
    }

    /// Checks whether a URL may be reached, as far as that can be known before connecting: names
    /// are resolved, and each connection is checked again.
    ///
    /// # Errors
    /// [`WebError::Forbidden`] when it may not, and [`WebError::Dns`] when it has no address.
    pub async fn check(&self, url: &Url) -> Result<(), WebError> {
        self.resolve(url.origin()).await.map(drop)
    }

    /// The allowed addresses of a host.
    pub(crate) async fn resolve(&self, origin: &Origin) -> Result<Vec<SocketAddr>, WebError> {
        self.resolve_by(origin, look_up).await
    }

    /// The same with a given resolver, which is asked once.
    async fn resolve_by(
        &self,
        origin: &Origin,
        look_up: impl AsyncFnOnce(&Origin) -> Result<Vec<SocketAddr>, WebError>,
    ) -> Result<Vec<SocketAddr>, WebError> {
        self.check_name(origin)?;
        let found = look_up(origin).await?;
        self.pick(origin, found)
    }

    /// Keeps the allowed addresses of a host.
    fn pick(
        &self,
        origin: &Origin,
        mut found: Vec<SocketAddr>,
    ) -> Result<Vec<SocketAddr>, WebError> {
        if origin.host.is_loopback() {
            // Whatever a name server says (RFC 6761): plain HTTP to such names is allowed because
            // it never leaves the machine.
            let elsewhere = found.iter().map(SocketAddr::ip).find(|&address| !is_ours(address));
            found.retain(|address| is_ours(address.ip()));
            if let (true, Some(address)) = (found.is_empty(), elsewhere) {
                let why = "is not a loopback address, as those of localhost must be";
                let host = origin.authority();
                return Err(WebError::Forbidden { host, address: Some(address), why });
            }
        }
        if self.is_open_to(origin) {
            return Ok(found);
        }
        let refused = found.iter().find_map(|address| forbidden(origin, address.ip()));
        let allowed: Vec<_> =
            found.into_iter().filter(|address| why_not_public(address.ip()).is_none()).collect();
        match refused {
            Some(refused) if allowed.is_empty() => Err(refused),
            _ => Ok(allowed),
        }
    }

    /// Whether this host may be reached through a proxy. The proxy resolves the name itself, so one
    /// bad address is enough to reject it; a name that only the proxy can resolve is left to it.
    pub(crate) async fn check_behind_proxy(&self, origin: &Origin) -> Result<(), WebError> {
        self.check_name(origin)?;
        if self.is_open_to(origin) {
            return Ok(());
        }
        let found = look_up(origin).await.unwrap_or_default();
        match found.into_iter().find_map(|address| forbidden(origin, address.ip())) {
            Some(refused) => Err(refused),
            None => Ok(()),
        }
    }

    fn check_name(&self, origin: &Origin) -> Result<(), WebError> {
        let Host::Name(name) = &origin.host else { return Ok(()) };
        if self.is_open_to(origin) {
            return Ok(());
        }
        let last = name.rsplit('.').next().unwrap_or(name);
        let is_local = origin.host.is_loopback()
            || matches!(last, "local" | "internal" | "localdomain")
            || name.ends_with(".home.arpa")
            || name == "home.arpa";
        if is_local {
            let why = "the name belongs to a local network";
            return Err(WebError::Forbidden { host: origin.authority(), address: None, why });
        }
        Ok(())
    }

    fn is_open_to(&self, origin: &Origin) -> bool {
        match self {
            Self::Anywhere => true,
            Self::Public { also } => also.iter().any(|authority| origin.is_at(authority)),
        }
    }
}

fn is_ours(address: IpAddr) -> bool {
    Host::Address(address).is_loopback()
}

fn forbidden(origin: &Origin, address: IpAddr) -> Option<WebError> {
    let why = why_not_public(address)?;
    Some(WebError::Forbidden { host: origin.authority(), address: Some(address), why })
}

async fn look_up(origin: &Origin) -> Result<Vec<SocketAddr>, WebError> {
    let failed =
        |error: std::io::Error| WebError::Dns { host: origin.authority(), source: Arc::new(error) };
    let name = match &origin.host {
        Host::Address(address) => return Ok(vec![SocketAddr::new(*address, origin.port)]),
        Host::Name(name) => name,
    };
    let found: Vec<_> =
        tokio::net::lookup_host((name.as_str(), origin.port)).await.map_err(failed)?.collect();
    if found.is_empty() {
        return Err(failed(std::io::Error::other("the name has no address")));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(url: &str) -> Origin {
        Origin::of(&url.parse().unwrap()).unwrap()
    }

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| SocketAddr::new(text.parse().unwrap(), 443)).collect()
    }

    #[test]
    fn every_address_of_a_name_is_checked() {
        let origin = origin("https://rebound.example/");
        let mixed = addresses(&["127.0.0.1", "8.8.8.8", "::1", "2606:4700::1111"]);
        let kept = Reach::public().pick(&origin, mixed.clone()).unwrap();
        assert_eq!(kept, addresses(&["8.8.8.8", "2606:4700::1111"]));
        assert_eq!(Reach::Anywhere.pick(&origin, mixed.clone()).unwrap(), mixed);
        let also = Reach::Public { also: vec!["rebound.example".parse().unwrap()] };
        assert_eq!(also.pick(&origin, mixed.clone()).unwrap(), mixed);

        let error = Reach::public().pick(&origin, addresses(&["10.0.0.1", "::1"])).unwrap_err();
        let text = error.to_string();
        assert_eq!(text, "rebound.example:443: not allowed: 10.0.0.1 is in a private network");
    }

    #[test]
    fn names_under_localhost_resolve_to_this_machine_only() {
        for url in ["http://x.localhost/", "https://localhost./"] {
            let origin = origin(url);
            let mixed = addresses(&["8.8.8.8", "127.0.0.1", "::1"]);
            let kept = Reach::Anywhere.pick(&origin, mixed).unwrap();
            assert_eq!(kept, addresses(&["127.0.0.1", "::1"]));
            let outcome = Reach::Anywhere.pick(&origin, addresses(&["8.8.8.8"]));
            assert!(matches!(outcome, Err(WebError::Forbidden { .. })), "{outcome:?}");
        }
    }

    #[tokio::test]
    async fn a_rebinding_name_is_resolved_once_and_checked_each_time() {
        let origin = origin("https://rebound.example/");
        let inward = ["127.0.0.1", "::1", "::ffff:127.0.0.1", "169.254.169.254", "10.0.0.1"];
        let mut asked = 0;
        for round in 0..20 {
            let said = if round % 2 == 0 { "8.8.8.8" } else { inward[round / 2 % inward.len()] };
            let resolver = async |_: &Origin| {
                asked += 1;
                Ok(addresses(&[said]))
            };
            let found = Reach::public().resolve_by(&origin, resolver).await;
            match round % 2 {
                0 => assert_eq!(found.unwrap(), addresses(&["8.8.8.8"])),
                _ => assert!(matches!(found, Err(WebError::Forbidden { .. })), "{said}"),
            }
            assert_eq!(asked, round + 1);
        }
    }

    #[test]
    fn exceptions_are_exact() {
        let is_open = |also: &str, url: &str| {
            Reach::Public { also: vec![also.parse().unwrap()] }.is_open_to(&origin(url))
        };
        let same = [
            ("localhost:80", "http://localhost/"),
            ("localhost", "http://LOCALHOST./x"),
            ("localhost", "https://localhost/"),
            ("localhost:8080", "http://localhost:8080/"),
            ("127.0.0.1:8080", "http://0x7f.1:8080/"),
            ("[::1]:8080", "http://[0:0::0:1]:8080/"),
        ];
        for (also, url) in same {
            assert!(is_open(also, url), "{also} {url}");
        }
        let other = [
            ("localhost:8080", "http://localhost/"),
            ("localhost:80", "https://localhost/"),
            ("localhost:8080", "http://127.0.0.1:8080/"),
            ("localhost:8080", "http://x.localhost:8080/"),
            ("127.0.0.1:8080", "http://127.0.0.2:8080/"),
            ("[::1]:8080", "http://127.0.0.1:8080/"),
        ];
        for (also, url) in other {
            assert!(!is_open(also, url), "{also} {url}");
        }
    }
}
