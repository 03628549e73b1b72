//! The documents of apps, on an origin of their own, each under the policy that it declared.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use bowline_proto::model::ui::{UiCsp, check_source};
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
    documents: Arc<Mutex<VecDeque<Document>>>,
}

/// A document that a page may show.
#[derive(Clone)]
pub(crate) struct Document {
    path: String,
    pub(crate) html: Bytes,
    pub(crate) policy: String,
}

impl Apps {
    pub(crate) fn new(port: u16) -> Self {
        let origin = format!("http://127.0.0.1:{port}");
        Self { origin: origin.into(), documents: Arc::default() }
    }

    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    /// Serves a document under an address that nobody can guess; returns the address. `None` when
    /// it exceeds [`LARGEST_APP`].
    #[must_use]
    pub fn add(&self, html: String, csp: Option<&UiCsp>, ancestor: &str) -> Option<String> {
        if html.len() > LARGEST_APP {
            return None;
        }
        let path = format!("/app/{}", secret());
        let address = format!("{}{path}", self.origin);
        let document = Document { path, html: html.into(), policy: policy(csp, ancestor) };
        let mut documents = self.documents.lock().unwrap_or_else(PoisonError::into_inner);
        documents.push_back(document);
        while documents.len() > MOST_APPS {
            documents.pop_front();
        }
        Some(address)
    }

    pub(crate) fn find(&self, path: &str) -> Option<Document> {
        let documents = self.documents.lock().unwrap_or_else(PoisonError::into_inner);
        documents.iter().find(|it| it.path == path).cloned()
    }
}

/// The policy of an app: nothing but what it declared. Sources that are not sources are left out.
fn policy(csp: Option<&UiCsp>, ancestor: &str) -> String {
    let list = |domains: Option<&Vec<String>>| {
        let valid = domains.into_iter().flatten().filter(|it| check_source(it).is_ok());
        valid.fold(String::new(), |list, source| format!("{list} {source}"))
    };
    let resources = list(csp.and_then(|it| it.resource_domains.as_ref()));
    let connect = list(csp.and_then(|it| it.connect_domains.as_ref()));
    let frames = list(csp.and_then(|it| it.frame_domains.as_ref()));
    let bases = list(csp.and_then(|it| it.base_uri_domains.as_ref()));
    let or_none = |list: &str| if list.is_empty() { " 'none'".to_owned() } else { list.to_owned() };
    format!(
        "default-src 'none'; script-src 'unsafe-inline'{resources}; \
         style-src 'unsafe-inline'{resources}; img-src data:{resources}; \
         media-src data:{resources}; font-src data:{resources}; connect-src{}; frame-src{}; \
         object-src 'none'; base-uri{}; form-action 'none'; frame-ancestors {ancestor}; \
         sandbox allow-scripts allow-forms",
        or_none(&connect),
        or_none(&frames),
        or_none(&bases),
    )
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
        let policy = policy(Some(&csp), "http://127.0.0.1:1");
        assert!(policy.contains("connect-src https://api.test; frame-src 'none'"), "{policy}");
        assert!(policy.contains("script-src 'unsafe-inline' https://cdn.test;"), "{policy}");
        assert!(policy.contains("frame-ancestors http://127.0.0.1:1; sandbox allow-scripts"));
        assert!(!policy.contains("allow-same-origin") && !policy.contains('*'), "{policy}");
    }

    #[test]
    fn addresses_cannot_be_guessed_and_the_oldest_goes() {
        let apps = Apps::new(1);
        let first = apps.add("a".into(), None, "x").unwrap();
        let path = |address: &str| address.strip_prefix("http://127.0.0.1:1").unwrap().to_owned();
        assert_eq!(apps.find(&path(&first)).unwrap().html, "a");
        assert!(apps.find("/app/").is_none());
        for _ in 0..MOST_APPS {
            let _ = apps.add("b".into(), None, "x");
        }
        assert!(apps.find(&path(&first)).is_none());
    }
}
