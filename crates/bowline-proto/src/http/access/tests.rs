//! The gate, cell by cell.

use ::http::header::{HOST, ORIGIN};
use ::http::{HeaderMap, HeaderName};

use super::*;
use crate::http::SEC_FETCH_SITE;

/// A server on loopback that also goes by two names and knows two foreign pages.
fn access() -> Access {
    Access::new()
        .with_host("mcp.example.com")
        .and_then(|access| access.with_host("pinned.example.com:8443"))
        .and_then(|access| access.with_origin("https://app.example.net"))
        .and_then(|access| access.with_origin("chrome-extension://abcdef"))
        .unwrap()
}

fn map(lines: &[(HeaderName, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    headers
}

/// How far a page is trusted.
#[derive(Clone, Copy, PartialEq)]
enum Page {
    /// No matter to what host, even across sites.
    Listed,
    /// No matter to what host, on the same site.
    Local,
    /// When talking to the host of this number.
    Own(usize),
    Foreign,
}

const HOSTS: [(&str, bool); 26] = [
    ("mcp.example.com", true),
    ("MCP.Example.Com.:9999", true),
    ("pinned.example.com:8443", true),
    ("localhost", true),
    ("localhost:8080", true),
    ("LOCALHOST.:8080", true),
    ("127.0.0.1:8080", true),
    ("[::1]:8080", true),
    ("[0:0:0:0:0:0:0:1]", true),
    ("pinned.example.com", false),
    ("pinned.example.com:8444", false),
    ("evil.com", false),
    ("evil.com:8080", false),
    ("localhost.evil.com", false),
    ("127.0.0.1.evil.com", false),
    ("evil.com#localhost", false),
    ("evil.com/localhost", false),
    ("localhost@evil.com", false),
    ("user:pw@localhost", false),
    ("localhost:80:80", false),
    ("127.1", false),
    ("127.0.0.2", false),
    ("0.0.0.0", false),
    ("[::]", false),
    ("xmcp.example.com", false),
    ("", false),
];

const PAGES: [(&str, Page); 30] = [
    ("https://app.example.net", Page::Listed),
    ("HTTPS://APP.example.net:443", Page::Listed),
    ("chrome-extension://abcdef", Page::Listed),
    ("http://localhost", Page::Local),
    ("http://localhost:6274", Page::Local),
    ("https://127.0.0.1:1", Page::Local),
    ("http://[::1]:3000", Page::Local),
    ("https://mcp.example.com", Page::Own(0)),
    ("http://mcp.example.com", Page::Own(0)),
    ("https://mcp.example.com:9999", Page::Own(1)),
    ("https://pinned.example.com:8443", Page::Own(2)),
    ("https://mcp.example.com:1", Page::Foreign),
    ("app://mcp.example.com", Page::Foreign),
    ("app://localhost", Page::Foreign),
    ("http://app.example.net", Page::Foreign),
    ("https://app.example.net:444", Page::Foreign),
    ("https://app.example.net.evil.com", Page::Foreign),
    ("chrome-extension://abcdeg", Page::Foreign),
    ("https://evil.com", Page::Foreign),
    ("http://evil.com:8080", Page::Foreign),
    ("http://localhost.evil.com", Page::Foreign),
    ("http://127.0.0.1.evil.com", Page::Foreign),
    ("http://localhost@evil.com", Page::Foreign),
    ("http://user@localhost", Page::Foreign),
    ("http://localhost/", Page::Foreign),
    ("http://evil.com#localhost", Page::Foreign),
    ("http://localhost http://evil.com", Page::Foreign),
    ("null", Page::Foreign),
    ("*", Page::Foreign),
    ("", Page::Foreign),
];

const SITES: [(&str, bool); 7] = [
    ("same-origin", false),
    ("same-site", false),
    ("none", false),
    ("", false),
    ("unheard-of", false),
    ("cross-site", true),
    ("Cross-Site", true),
];

#[test]
fn only_allowed_cells_pass() {
    let access = access();
    let mut passed = 0;
    for (number, (host, is_ours)) in HOSTS.into_iter().enumerate() {
        for (origin, page) in PAGES {
            for (site, is_cross) in SITES {
                let headers = map(&[(HOST, host), (ORIGIN, origin), (SEC_FETCH_SITE, site)]);
                let expected = is_ours
                    && match page {
                        Page::Listed => true,
                        Page::Local => !is_cross,
                        Page::Own(own) => own == number && !is_cross,
                        Page::Foreign => false,
                    };
                let outcome = access.check(None, &Fields::read(&headers));
                assert_eq!(outcome.is_ok(), expected, "{host} {origin} {site}: {outcome:?}");
                passed += usize::from(expected);
            }
        }
        let programs = map(&[(HOST, host)]);
        assert_eq!(access.check(None, &Fields::read(&programs)).is_ok(), is_ours, "{host}");
        assert_eq!(access.check(Some(host), &Fields::read(&HeaderMap::new())).is_ok(), is_ours);
        let navigation = map(&[(HOST, host), (SEC_FETCH_SITE, "cross-site")]);
        assert!(access.check(None, &Fields::read(&navigation)).is_err(), "{host}");
    }
    assert_eq!(passed, 9 * (3 * 7 + 4 * 5) + 4 * 5);
}

#[test]
fn what_is_said_twice_is_refused() {
    fn check(lines: &[(HeaderName, &str)], header: &str) {
        let outcome = access().check(None, &Fields::read(&map(lines)));
        let Err(Denied::Malformed { header: found, .. }) = outcome else {
            panic!("{lines:?}: {outcome:?}");
        };
        assert_eq!(found, header);
    }
    let (host, page) = ((HOST, "localhost"), (ORIGIN, "http://localhost"));
    check(&[host.clone(), host.clone()], "Host");
    check(&[host.clone(), (HOST, "evil.com")], "Host");
    check(&[host.clone(), page.clone(), page.clone()], "Origin");
    check(&[host.clone(), page.clone(), (ORIGIN, "http://evil.com")], "Origin");
    check(&[host, (ORIGIN, "http://l\u{f6}calhost")], "Origin");
    check(&[(HOST, "l\u{f6}calhost")], "Host");
    check(&[page], "Host");
    check(&[], "Host");
}

#[test]
fn target_and_host_must_agree() {
    fn check(target: &str, host: &str, passes: bool) {
        let outcome = access().check(Some(target), &Fields::read(&map(&[(HOST, host)])));
        assert_eq!(outcome.is_ok(), passes, "{target} {host}");
    }
    check("localhost:80", "LOCALHOST:80", true);
    check("[::1]", "[0::1]", true);
    check("localhost:80", "localhost", false);
    check("localhost", "127.0.0.1", false);
    check("localhost", "evil.com", false);
    check("evil.com", "localhost", false);
    check("evil.com", "evil.com", false);
    check("user@localhost", "localhost", false);
}

#[test]
fn any_host_does_not_mean_any_page() {
    let access = Access::new().with_any_host();
    let check = |lines: &[(HeaderName, &str)], passes: bool| {
        assert_eq!(access.check(None, &Fields::read(&map(lines))).is_ok(), passes, "{lines:?}");
    };
    check(&[(HOST, "pod-7.internal")], true);
    check(&[(HOST, "evil.com"), (ORIGIN, "http://evil.com")], false);
    check(&[(HOST, "evil.com"), (ORIGIN, "http://localhost:1")], true);
    check(&[(HOST, "evil.com#x")], false);
    check(&[], false);
}

#[test]
fn loopback_can_be_taken_off_the_list() {
    let access = access().without_loopback();
    let check = |host: &str, origin: &str, passes: bool| {
        let headers = map(&[(HOST, host), (ORIGIN, origin)]);
        assert_eq!(access.check(None, &Fields::read(&headers)).is_ok(), passes, "{host} {origin}");
    };
    check("mcp.example.com", "https://mcp.example.com", true);
    check("mcp.example.com", "http://localhost:6274", false);
    check("localhost", "https://app.example.net", false);
}

#[test]
fn a_refusal_says_what_was_seen_and_what_to_do() {
    fn check(lines: &[(HeaderName, &str)], expected: &str) {
        let message = access().check(None, &Fields::read(&map(lines))).unwrap_err().to_string();
        assert_eq!(message, expected);
    }
    let host = (HOST, "localhost");
    check(
        &[(HOST, "evil.com")],
        "Host \"evil.com\" is not allowed; if it is a name of this server, add it to the \
         allowed hosts",
    );
    check(
        &[host.clone(), (ORIGIN, "null")],
        "Origin \"null\" is not allowed; if that page is trusted, add it to the allowed origins",
    );
    check(
        &[host.clone(), (ORIGIN, "http://127.0.0.1"), (SEC_FETCH_SITE, "cross-site")],
        "a page on another site, \"http://127.0.0.1\", is not allowed; if it is trusted, add it \
         to the allowed origins",
    );
    check(&[host.clone(), (HOST, "a\"b")], "Host \"localhost, a\\\"b\" is ambiguous or malformed");
    check(&[], "Host is missing or empty");
}

#[test]
fn mistakes_in_the_list_are_found_at_once() {
    for host in ["", "*", "http://localhost", "a/b", "b\u{fc}cher.example", "a:b"] {
        assert!(Access::new().with_host(host).is_err(), "{host}");
    }
    for origin in ["null", "*", "localhost", "https://a/", "https://u@a"] {
        assert!(Access::new().with_origin(origin).is_err(), "{origin}");
    }
    let error = Access::new().with_host("http://a").unwrap_err();
    assert_eq!(error.to_string(), "\"http://a\" is not host or host:port");
}
