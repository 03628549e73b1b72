//! From a refusal to the authorization server: who guards the resource, and how to talk to them.

use bowline_web::Url;
use http::StatusCode;

use super::challenge::Demand;
use super::error::{AuthError, Reason, Step, quote, quote_all};
use super::fetch::{Fetcher, Page};
use super::metadata::{ResourceMetadata, ServerMetadata, resource_addresses, server_addresses};

/// What the MCP server says of its guards.
#[derive(Debug)]
pub(super) struct Discovery {
    /// None for a server of 2025-03-26, which guards itself.
    pub(super) resource: Option<ResourceMetadata>,
    /// At least one.
    pub(super) issuers: Vec<String>,
}

impl Discovery {
    /// Asks the MCP server: at the address that its challenge names, else at the well-known ones.
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
            // Only a clear no lets us look elsewhere: whoever can make a server stumble must not be
            // able to choose how we go on.
            if page.status.is_client_error() || is_some_web_page(&page) {
                continue;
            }
            return Self::read(&page, &address, home);
        }
        tracing::debug!("no protected resource metadata: the server is taken for its own guard");
        // 2025-03-26 asks for no exact name; with the slash is the only other way to write it.
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
            return fail(
                Reason::Unsafe,
                received,
                format!("{home}, or a part of it from the left"),
            );
        }
        if metadata.authorization_servers.is_empty() {
            let received = format!("no authorization_servers, from {address}");
            return fail(Reason::Broken, received, "at least one".to_owned());
        }
        let issuers = metadata.authorization_servers.clone();
        Ok(Self { resource: Some(metadata), issuers })
    }
}

/// Servers of single-page applications answer everything with their start page.
fn is_some_web_page(page: &Page) -> bool {
    page.status == StatusCode::OK && page.body.trim_ascii_start().first() != Some(&b'{')
}

fn reason_of(status: StatusCode) -> Reason {
    if status.is_server_error() { Reason::Unavailable } else { Reason::Broken }
}

/// Asks an authorization server how to talk to it. Its name must be the one we know it by.
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
        // 2025-03-26 knows no other.
        addresses.truncate(1);
    }
    let mut answers = Vec::new();
    for address in &addresses {
        let page = fetcher.get(step, address).await?;
        if page.status == StatusCode::OK && !is_some_web_page(&page) {
            let metadata = read_server(&page, address)?;
            let is_known = |name: &str| match is_own_guard {
                true => discovery.issuers.iter().any(|issuer| issuer == name),
                false => name == issuer,
            };
            if is_known(&metadata.issuer) {
                return Ok(metadata);
            }
            let received = format!("issuer {}, from {address}", quote(&metadata.issuer));
            let expected = format!("issuer {}, to the byte", quote(issuer));
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

/// Refuses a server that would let whoever has a code use it.
pub(super) fn check_pkce(server: &ServerMetadata) -> Result<(), AuthError> {
    if server.has_s256() {
        return Ok(());
    }
    let received = match &server.code_challenge_methods_supported {
        Some(methods) => format!("code_challenge_methods_supported {}", quote_all(methods)),
        None => "no code_challenge_methods_supported".to_owned(),
    };
    Err(AuthError::new(Step::ServerMetadata, Reason::Unsafe, received, "S256 among them"))
}
