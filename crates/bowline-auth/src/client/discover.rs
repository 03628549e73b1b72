//! From a 401 to the authorization server: finds the metadata of both.

use bowline_web::Url;
use http::StatusCode;

use super::challenge::Demand;
use super::error::{AuthError, Reason, Step, quote, quote_all};
use super::fetch::{Fetcher, Page};
use super::metadata::{ResourceMetadata, ServerMetadata, resource_addresses, server_addresses};

/// What an MCP server publishes about its authorization servers.
#[derive(Debug)]
pub(super) struct Discovery {
    /// `None` for a server of 2025-03-26, which is its own authorization server.
    pub(super) resource: Option<ResourceMetadata>,
    /// At least one.
    pub(super) issuers: Vec<String>,
}

impl Discovery {
    /// Fetches the metadata from the URL in the challenge, or else from the well-known URLs.
    pub(super) async fn find(
        fetcher: &Fetcher,
        home: &Url,
        demand: &Demand,
    ) -> Result<Self, AuthError> {
        if let Some(address) = &demand.resource_metadata {
            let page = fetcher.get(Step::ResourceMetadata, address).await?;
            let url = Url::parse(address).map_or_else(|_| quote(address), |url| url.to_string());
            return Self::read(&page, &url, home);
        }
        for address in resource_addresses(home) {
            let page = fetcher.get(Step::ResourceMetadata, &address).await?;
            // Only a clear 4xx lets us look elsewhere: anyone who can make a server fail must not
            // be able to choose what happens next.
            if page.status.is_client_error() || is_some_web_page(&page) {
                continue;
            }
            return Self::read(&page, &address, home);
        }
        tracing::debug!(
            "no protected resource metadata: assuming that the server is its own authorization server"
        );
        // 2025-03-26 does not demand an exact name; the trailing slash is the only variation.
        let origin = home.root();
        Ok(Self { resource: None, issuers: vec![origin.to_owned(), format!("{origin}/")] })
    }

    fn read(page: &Page, address: &str, home: &Url) -> Result<Self, AuthError> {
        let fail = |reason, received: String, expected: String| {
            Err(AuthError::new(Step::ResourceMetadata, reason, received, expected))
        };
        if page.status != StatusCode::OK {
            let received = format!("status {} from {address}", page.status.as_u16());
            return fail(reason_of(page.status), received, "a document with status 200".to_owned());
        }
        let metadata = match ResourceMetadata::parse(&page.body) {
            Ok(metadata) => metadata,
            Err(error) => {
                let received = format!("{error}, from {address}");
                return fail(Reason::Broken, received, "protected resource metadata".to_owned());
            }
        };
        if !metadata.is_for(home) {
            let received = format!("resource {}, from {address}", quote(&metadata.resource));
            return fail(Reason::Unsafe, received, format!("{home}, or a prefix of it"));
        }
        if metadata.authorization_servers.is_empty() {
            let received = format!("no authorization_servers, from {address}");
            return fail(Reason::Broken, received, "at least one".to_owned());
        }
        let issuers = metadata.authorization_servers.clone();
        Ok(Self { resource: Some(metadata), issuers })
    }
}

/// Servers of single-page applications respond to everything with their start page.
fn is_some_web_page(page: &Page) -> bool {
    page.status == StatusCode::OK && page.body.trim_ascii_start().first() != Some(&b'{')
}

fn reason_of(status: StatusCode) -> Reason {
    if status.is_server_error() { Reason::Unavailable } else { Reason::Broken }
}

/// Fetches an authorization server's metadata. They must name the issuer that we asked for.
pub(super) async fn find_server(
    fetcher: &Fetcher,
    issuer: &str,
    discovery: &Discovery,
) -> Result<ServerMetadata, AuthError> {
    let is_own_guard = discovery.resource.is_none();
    let step = Step::ServerMetadata;
    let url = fetcher.check(step, issuer)?;
    if url.query().is_some() {
        let received = format!("issuer {}", quote(issuer));
        return Err(AuthError::new(step, Reason::Broken, received, "an issuer without a query"));
    }
    let mut addresses = server_addresses(&url);
    if is_own_guard {
        // 2025-03-26 has no other.
        addresses.truncate(1);
    }
    let mut answers = Vec::new();
    for address in &addresses {
        let page = fetcher.get(step, address).await?;
        if page.status == StatusCode::OK && !is_some_web_page(&page) {
            let metadata = read_server(&page, address)?;
            let is_known = if is_own_guard {
                discovery.issuers.contains(&metadata.issuer)
            } else {
                metadata.issuer == issuer
            };
            if is_known {
                return Ok(metadata);
            }
            let received = format!("issuer {}, from {address}", quote(&metadata.issuer));
            let expected = format!("issuer {}, byte for byte", quote(issuer));
            return Err(AuthError::new(step, Reason::Unsafe, received, expected));
        }
        answers.push((page.status, format!("status {} from {address}", page.status.as_u16())));
    }
    let is_absent = answers.iter().all(|(status, _)| !status.is_server_error());
    if is_own_guard && is_absent {
        return Ok(ServerMetadata::assumed(issuer));
    }
    let reason = if is_absent { Reason::Broken } else { Reason::Unavailable };
    let received: Vec<_> = answers.into_iter().map(|(_, answer)| answer).collect();
    Err(AuthError::new(step, reason, received.join(", "), "a JSON document with status 200"))
}

fn read_server(page: &Page, address: &str) -> Result<ServerMetadata, AuthError> {
    ServerMetadata::parse(&page.body).map_err(|error| {
        let received = format!("{error}, from {address}");
        let expected = "authorization server metadata";
        AuthError::new(Step::ServerMetadata, Reason::Broken, received, expected)
    })
}

/// An endpoint that the metadata must have.
pub(super) fn endpoint(
    fetcher: &Fetcher,
    address: Option<&str>,
    name: &str,
) -> Result<Url, AuthError> {
    let step = Step::ServerMetadata;
    let Some(address) = address else {
        let (received, expected) = (format!("no {name}"), format!("a {name}"));
        return Err(AuthError::new(step, Reason::Broken, received, expected));
    };
    fetcher.check(step, address)
}

/// Rejects a server that would let anyone with a code use it.
pub(super) fn check_pkce(server: &ServerMetadata) -> Result<(), AuthError> {
    if server.has_s256() {
        return Ok(());
    }
    let received = match &server.code_challenge_methods_supported {
        Some(methods) => format!("code_challenge_methods_supported {}", quote_all(methods)),
        None => "no code_challenge_methods_supported".to_owned(),
    };
    Err(AuthError::new(
        Step::ServerMetadata,
        Reason::Unsafe,
        received,
        "code_challenge_methods_supported with S256",
    ))
}
