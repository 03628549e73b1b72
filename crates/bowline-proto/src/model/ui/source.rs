//! The origins that an app's content security policy may name.

/// Checks that a text names an origin, or with `*.` before its host all its subdomains: a scheme, a
/// host, and optionally a port, as in `https://*.example.com:8443`.
///
/// Hosts put these texts into a header, so nothing that ends a source or a directive may be in
/// them.
///
/// # Errors
/// What is wrong with it, as the rest of a sentence.
pub fn check_source(source: &str) -> Result<(), &'static str> {
    let Some((scheme, rest)) = source.split_once("://") else {
        return Err("is not an origin; help: write scheme and host, as in https://api.example.com");
    };
    if !["https", "http", "wss", "ws"].contains(&scheme) {
        return Err("has a scheme that policies do not take; help: use https, http, wss or ws");
    }
    if rest.contains(['/', '?', '#']) {
        return Err("is more than an origin; help: leave out everything after the host");
    }
    if rest.contains('@') {
        return Err("contains a user; help: leave out everything before the host");
    }
    if rest.starts_with('[') {
        return Err("has an IPv6 address, which policies cannot name; help: use a host name");
    }
    let (host, port) = match rest.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (rest, None),
    };
    if port.is_some_and(|port| port != "*" && port.parse::<u16>().is_err()) {
        return Err("has an invalid port; help: use a number up to 65535");
    }
    check_host(host.strip_prefix("*.").unwrap_or(host))
}

fn check_host(host: &str) -> Result<(), &'static str> {
    if host.contains('*') {
        return Err(
            "has a wildcard that is not the first label; help: write https://*.example.com",
        );
    }
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    match host.split('.').all(is_label) {
        true => Ok(()),
        false => Err("has an invalid host; help: use letters, digits, hyphens and dots"),
    }
}

#[cfg(test)]
mod tests {
    use super::check_source;

    #[test]
    fn sources_are_origins() {
        for (source, expected) in [
            ("https://example.com", ""),
            ("https://*.example.com", ""),
            ("https://api.example.com:8443", ""),
            ("https://api.example.com:*", ""),
            ("wss://live.example.com", ""),
            ("http://localhost:3000", ""),
            ("http://127.0.0.1:3000", ""),
            ("https://xn--bcher-kva.example", ""),
            ("example.com", "is not an origin"),
            ("'unsafe-eval'", "is not an origin"),
            ("*", "is not an origin"),
            ("data:", "is not an origin"),
            ("", "is not an origin"),
            ("ftp://example.com", "has a scheme"),
            ("https://example.com/", "is more than an origin"),
            ("https://example.com/a", "is more than an origin"),
            ("https://me@example.com", "contains a user"),
            ("https://[::1]:80", "has an IPv6 address"),
            ("https://example.com:65536", "has an invalid port"),
            ("https://example.com:", "has an invalid port"),
            ("https://", "has an invalid host"),
            ("https://a..b", "has an invalid host"),
            ("https://example.com; script-src *", "has a wildcard"),
            ("https://example.com;", "has an invalid host"),
            ("https://example.com 'self'", "has an invalid host"),
            ("https://a.*.example.com", "has a wildcard"),
            ("https://*", "has a wildcard"),
            ("https://b\u{fc}cher.example", "has an invalid host"),
        ] {
            let reason = check_source(source).err().unwrap_or_default();
            assert!(
                reason.starts_with(expected) && reason.is_empty() == expected.is_empty(),
                "{source:?}: {reason:?}"
            );
        }
    }
}
