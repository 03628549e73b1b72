//! The documents of apps, on an origin of their own, each under the policy that it declared.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use bowline_proto::model::ui::{UiCsp, check_source};
use bowline_web::Host;
use bytes::Bytes;

use crate::key::secret;

/// The most apps that are served at a time; the oldest make room.
pub const MOST_APPS: usize = 64;
/// The largest document of an app, in bytes.
pub const LARGEST_APP: usize = 16 << 20;

/// Apps to serve. Clones share them.
#[derive(Clone)]
pub struct Apps {
    origin: Arc<str>,
    /// The ports of this program: that of the page, and that of the apps.
    ports: [u16; 2],
    documents: Arc<Mutex<VecDeque<Document>>>,
}

/// An app that is served.
#[derive(Debug, Clone)]
pub struct Served {
    /// Where.
    pub address: String,
    /// What it declared and did not get, or should not need.
    pub findings: Vec<String>,
}

/// A document that a page may show.
#[derive(Clone)]
pub(crate) struct Document {
    path: String,
    pub(crate) html: Bytes,
    pub(crate) policy: String,
}

impl Apps {
    /// Apps on one port, for a page on another.
    pub(crate) fn new(port: u16, page: u16) -> Self {
        let origin = format!("http://127.0.0.1:{port}");
        Self { origin: origin.into(), ports: [page, port], documents: Arc::default() }
    }

    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    /// Serves a document under an address that nobody can guess. `None` when it exceeds
    /// [`LARGEST_APP`].
    #[must_use]
    pub fn add(&self, html: String, csp: Option<&UiCsp>, ancestor: &str) -> Option<Served> {
        if html.len() > LARGEST_APP {
            return None;
        }
        let path = format!("/app/{}", secret());
        let address = format!("{}{path}", self.origin);
        let (policy, findings) = policy(csp, ancestor, self.ports);
        let document = Document { path, html: html.into(), policy };
        let mut documents = self.documents.lock().unwrap_or_else(PoisonError::into_inner);
        documents.push_back(document);
        while documents.len() > MOST_APPS {
            documents.pop_front();
        }
        Some(Served { address, findings })
    }

    pub(crate) fn find(&self, path: &str) -> Option<Document> {
        let documents = self.documents.lock().unwrap_or_else(PoisonError::into_inner);
        documents.iter().find(|it| it.path == path).cloned()
    }
}

/// The policy of an app: nothing but what it declared. Sources that are not sources are left out,
/// and so is this program, which an app could ask to start processes.
fn policy(csp: Option<&UiCsp>, ancestor: &str, ports: [u16; 2]) -> (String, Vec<String>) {
    let mut findings = Vec::new();
    let mut list = |domains: Option<&Vec<String>>| {
        let mut list = String::new();
        for source in domains.into_iter().flatten().filter(|it| check_source(it).is_ok()) {
            match near(source, ports) {
                Near::Elsewhere => {}
                Near::ThisProgram => {
                    findings.push(format!("csp: {source} covers the inspector itself: left out"));
                    continue;
                }
                Near::ThisMachine => findings.push(format!(
                    "csp: {source} is on the machine of whoever looks at the app, not on yours"
                )),
            }
            list = format!("{list} {source}");
        }
        list
    };
    let resources = list(csp.and_then(|it| it.resource_domains.as_ref()));
    let connect = list(csp.and_then(|it| it.connect_domains.as_ref()));
    let frames = list(csp.and_then(|it| it.frame_domains.as_ref()));
    let bases = list(csp.and_then(|it| it.base_uri_domains.as_ref()));
    let or_none = |list: &str| if list.is_empty() { " 'none'".to_owned() } else { list.to_owned() };
    let policy = format!(
        "default-src 'none'; script-src 'unsafe-inline'{resources}; \
         style-src 'unsafe-inline'{resources}; img-src data:{resources}; \
         media-src data:{resources}; font-src data:{resources}; connect-src{}; frame-src{}; \
         object-src 'none'; base-uri{}; form-action 'none'; frame-ancestors {ancestor}; \
         webrtc 'block'; sandbox allow-scripts allow-forms",
        or_none(&connect),
        or_none(&frames),
        or_none(&bases),
    );
    (policy, findings)
}

/// How near a source is.
#[derive(Debug, PartialEq, Eq)]
enum Near {
    Elsewhere,
    ThisMachine,
    ThisProgram,
}

/// How near a valid source is to the page: a browser takes `localhost` and `127.0.0.1` for two
/// hosts, but both lead here.
fn near(source: &str, ports: [u16; 2]) -> Near {
    let (scheme, rest) = source.split_once("://").unwrap_or(("http", source));
    let (host, port) = rest.split_once(':').unwrap_or((rest, ""));
    let (name, is_pattern) = host.strip_prefix("*.").map_or((host, false), |name| (name, true));
    // `*.0.0.1`, and hosts that cannot be parsed, are nothing that a server elsewhere has.
    let is_here = match Host::parse(name) {
        Some(Host::Address(address)) if !address.is_unspecified() => {
            is_pattern || Host::Address(address).is_loopback()
        }
        Some(name @ Host::Name(_)) => name.is_loopback(),
        _ => true,
    };
    if !is_here {
        return Near::Elsewhere;
    }
    let default = if matches!(scheme, "https" | "wss") { 443 } else { 80 };
    let is_ours = port == "*" || ports.contains(&port.parse().unwrap_or(default));
    if is_ours { Near::ThisProgram } else { Near::ThisMachine }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apps_get_what_they_declared_and_nothing_else() {
        let csp = UiCsp {
            connect_domains: Some(vec!["https://api.test".into(), "x; script-src *".into()]),
            resource_domains: Some(vec!["https://cdn.test".into(), "'unsafe-eval'".into()]),
            ..UiCsp::default()
        };
        let (policy, findings) = policy(Some(&csp), "http://127.0.0.1:1", [1, 2]);
        assert_eq!(findings, Vec::<String>::new());
        assert!(policy.contains("connect-src https://api.test; frame-src 'none'"), "{policy}");
        assert!(policy.contains("script-src 'unsafe-inline' https://cdn.test;"), "{policy}");
        assert!(policy.contains("frame-ancestors http://127.0.0.1:1; webrtc 'block'; sandbox"));
        assert!(!policy.contains("allow-same-origin") && !policy.contains('*'), "{policy}");
    }

    #[test]
    fn apps_do_not_get_this_program_and_this_machine_is_reported() {
        for (source, expected) in [
            ("https://api.test", Near::Elsewhere),
            ("http://10.0.0.1:1", Near::Elsewhere),
            ("http://localhost:3000", Near::ThisMachine),
            ("ws://127.0.0.1:3000", Near::ThisMachine),
            ("http://127.0.0.1:1", Near::ThisProgram),
            ("http://LOCALHOST:2", Near::ThisProgram),
            ("http://a.localhost:*", Near::ThisProgram),
            ("http://*.localhost:1", Near::ThisProgram),
            ("http://*.0.0.1:2", Near::ThisProgram),
            ("http://127.1:2", Near::ThisProgram),
            ("http://0x7f000001:2", Near::ThisProgram),
            ("http://127.0.0.0.1:2", Near::ThisProgram),
            ("http://0x7f.example:2", Near::Elsewhere),
            ("http://0.0.0.0:1", Near::ThisProgram),
            ("http://127.0.0.1", Near::ThisMachine),
        ] {
            assert_eq!(near(source, [1, 2]), expected, "{source}");
        }
        assert_eq!(near("http://127.0.0.1", [80, 2]), Near::ThisProgram);
        let apps = Apps::new(2, 1);
        let csp = UiCsp {
            connect_domains: Some(vec!["http://127.0.0.1:1".into(), "http://localhost:9".into()]),
            ..UiCsp::default()
        };
        let served = apps.add("a".into(), Some(&csp), "http://127.0.0.1:1").unwrap();
        assert_eq!(served.findings.len(), 2, "{:?}", served.findings);
        let path = served.address.strip_prefix("http://127.0.0.1:2").unwrap();
        let policy = apps.find(path).unwrap().policy;
        assert!(policy.contains("connect-src http://localhost:9; frame-src"), "{policy}");
    }

    #[test]
    fn addresses_cannot_be_guessed_and_the_oldest_goes() {
        let apps = Apps::new(1, 3);
        let first = apps.add("a".into(), None, "x").unwrap().address;
        let path = |address: &str| address.strip_prefix("http://127.0.0.1:1").unwrap().to_owned();
        assert_eq!(apps.find(&path(&first)).unwrap().html, "a");
        assert!(apps.find("/app/").is_none());
        for _ in 0..MOST_APPS {
            let _ = apps.add("b".into(), None, "x");
        }
        assert!(apps.find(&path(&first)).is_none());
    }
}
