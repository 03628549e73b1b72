//! URLs: servers that work, and everything else that may respond there.

use std::net::SocketAddr;

use bowline::http::auth::{Guard, Identity, JwtVerifier, StaticTokens};
use bowline::http::{Http, Tls};
use bowline::{Server, Tool};
use bowline_serve::testing::free_port;
use serde_json::{Value, json};

use super::world::{Asked, Folder, answer, doctor, doctor_with, serve, site};

fn server() -> Server {
    Server::new("nice", "1.0.0").with(Tool::new("echo", || async { "echo" }))
}

fn url(address: SocketAddr, path: &str) -> String {
    format!("http://{address}{path}")
}

#[test]
fn good_servers_pass_in_both_eras() {
    let address = serve(|_| server().http());
    for (revision, era) in [("auto", "modern"), ("legacy", "legacy"), ("2025-06-18", "legacy")] {
        let found = doctor(&["--revision", revision, &url(address, "/mcp")]);
        found.is_well();
        let seen = found.step("era")["seen"].as_str().unwrap().to_owned();
        assert!(seen.starts_with(era), "{revision}: {seen}");
        for step in ["tcp", "http", "transport", "tools", "origin"] {
            assert_eq!(found.step(step)["outcome"], "ok", "{step}: {:#}", found.document);
        }
    }
}

#[test]
fn the_old_transport_is_recognised() {
    let address = serve(|_| server().http());
    let found = doctor(&[&url(address, "/sse")]);
    found.is("warn", "transport", "leads to the old transport", 0);
    assert_eq!(found.step("tools")["outcome"], "ok");
    let origin = found.step("origin");
    assert!(origin["seen"].as_str().unwrap().contains("HTTP 403"), "{origin}");
    assert!(found.document["fix"].as_str().unwrap().contains("/mcp"));
}

#[test]
fn unreachable_urls_have_causes() {
    let closed = SocketAddr::from(([127, 0, 0, 1], free_port()));
    doctor(&[&url(closed, "/mcp")]).is("fail", "tcp", "nothing listens on port", 4);
    doctor(&["http://nowhere.invalid/mcp"]).is("fail", "dns", "cannot be resolved", 4);
    doctor(&["localhost:3000/mcp"]).is("fail", "url", "has no scheme", 4);
    doctor(&["ws://localhost/mcp"]).is("fail", "url", "ws://", 4);
    doctor(&["http://localhost/{tenant}"]).is("fail", "url", "placeholder", 4);
}

#[test]
fn proxies_are_shown_and_blamed() {
    let closed = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let proxy = format!("http://user:hidden-word@{closed}");
    let with = [("HTTP_PROXY", proxy.as_str()), ("http_proxy", &proxy), ("NO_PROXY", "")];
    let found = doctor_with(&["http://mcp.example.com/mcp"], &with);
    found.is("fail", "http", "the proxy", 4);
    let seen = found.step("proxy")["seen"].as_str().unwrap().to_owned();
    assert!(seen.contains(&closed.to_string()), "{seen}");
    assert!(!found.document.to_string().contains("hidden-word"), "{:#}", found.document);
}

/// A certificate and its key, as PEM.
fn certificate(change: impl FnOnce(&mut rcgen::CertificateParams)) -> (String, String) {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let mut parameters = rcgen::CertificateParams::new(names).unwrap();
    change(&mut parameters);
    let key = rcgen::KeyPair::generate().unwrap();
    (parameters.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

fn secure((chain, key): &(String, String)) -> SocketAddr {
    let tls = Tls::from_pem(chain.as_bytes(), key.as_bytes()).unwrap();
    serve(|_| server().http().tls(tls))
}

#[test]
fn each_problem_with_tls_has_its_cause() {
    let folder = Folder::new();
    let good = certificate(|_| {});
    let ca = folder.put("good.pem", good.0.as_bytes(), false);
    let address = secure(&good);
    let https = format!("https://{address}/mcp");
    let found = doctor(&["--ca", &ca, &https]);
    found.is_well();
    assert!(found.step("tls")["seen"].as_str().unwrap().starts_with("TLS"), "{:#}", found.document);
    doctor(&[&https]).is("fail", "tls", "is self-signed", 4);
    doctor(&[&url(address, "/mcp")]).is("fail", "http", "speaks TLS, but the URL says http", 4);

    let old = certificate(|it| {
        it.not_before = rcgen::date_time_ymd(2001, 1, 1);
        it.not_after = rcgen::date_time_ymd(2002, 1, 1);
    });
    let ca = folder.put("old.pem", old.0.as_bytes(), false);
    let https = format!("https://{}/mcp", secure(&old));
    doctor(&["--ca", &ca, &https]).is("fail", "tls", "has expired", 4);

    let names = ["other.example".to_owned()];
    let other = certificate(|it| {
        it.subject_alt_names = rcgen::CertificateParams::new(names).unwrap().subject_alt_names;
    });
    let ca = folder.put("other.pem", other.0.as_bytes(), false);
    let https = format!("https://{}/mcp", secure(&other));
    doctor(&["--ca", &ca, &https]).is("fail", "tls", "not for that name", 4);

    let plain = serve(|_| server().http());
    let https = format!("https://{plain}/mcp");
    doctor(&[&https]).is("fail", "tls", "speaks plain HTTP, but the URL says https", 4);
}

#[test]
fn each_status_without_a_message_has_its_cause() {
    let html = "content-type: text/html";
    for (status, headers, body, cause, code) in [
        (200, html, "<!DOCTYPE html><title>Welcome</title>", "the response is a web page", 9),
        (404, html, "<h1>Not Found</h1>", "nothing at this path", 4),
        (405, "allow: GET", "", "does not accept POST", 4),
        (403, "", "Invalid Origin", "rejects the request's Origin", 7),
        (403, "", "Host is not allowed", "host name", 7),
        (406, "", "Not Acceptable", "JSON and event streams", 4),
        (415, "", "Unsupported Media Type", "does not accept application/json", 4),
        (429, "", "slow down", "too many requests", 4),
        (500, "", "oops", "failed internally", 4),
        (502, html, "<h1>Bad Gateway</h1>", "cannot reach it", 4),
        (301, "location: https://elsewhere.example/mcp", "", "redirects the request", 7),
        (400, "", "Client sent an HTTP request to an HTTPS server.", "speaks TLS", 4),
    ] {
        let address = site(move |_| answer(status, headers, body));
        doctor(&[&url(address, "/mcp")]).is("fail", "http", cause, code);
    }
    let address = site(|_| Some("SSH-2.0-OpenSSH_9.0\r\n".to_owned()));
    let found = doctor(&["--timeout", "30s", &url(address, "/mcp")]);
    assert_eq!((found.code, &found.document["step"]), (4, &"http".into()), "{:#}", found.document);
}

#[test]
fn the_right_path_is_found() {
    let address = serve(|_| server().http().path("/api/mcp"));
    for wrong in ["/mcp", "/wrong/place"] {
        let found = doctor(&[&url(address, wrong)]);
        found.is("fail", "http", "but at /api/mcp", 4);
        assert!(found.document["fix"].as_str().unwrap().ends_with("/api/mcp"));
    }
}

/// A minimal legacy server.
fn plain_legacy(asked: &Asked) -> Option<String> {
    let id = &asked.body["id"];
    let message = |result: Value| {
        let body = json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string();
        answer(200, "content-type: application/json", &body)
    };
    match asked.body["method"].as_str() {
        Some("initialize") => message(json!({
            "protocolVersion": "2025-06-18",
            "serverInfo": { "name": "few words", "version": "1" },
            "capabilities": { "tools": {} },
        })),
        Some("tools/list") => message(json!({ "tools": [] })),
        Some("ping") => message(json!({})),
        Some("notifications/initialized") => answer(202, "", ""),
        _ => answer(400, "content-type: text/plain", "no"),
    }
}

#[test]
fn buffered_events_and_foreign_origins_are_reported() {
    let address = site(|asked| match asked.method.as_str() {
        // A stream that a proxy buffers.
        "GET" => None,
        _ => plain_legacy(asked),
    });
    let found = doctor(&["--timeout", "30s", &url(address, "/mcp")]);
    found.is("warn", "stream", "events do not arrive at once", 0);
    assert_eq!(found.step("origin")["outcome"], "warn");
    assert!(found.step("origin")["cause"].as_str().unwrap().contains("any web page"));
    assert_eq!(found.step("era")["outcome"], "ok", "{:#}", found.document);
}

#[test]
fn a_silent_server_times_out() {
    let address = site(|_| None);
    let found = doctor(&["--timeout", "30s", &url(address, "/mcp")]);
    found.is("fail", "http", "did not answer within 30.0 s", 4);
}

/// An authorization server with a single document.
fn issuer(document: impl Fn(&str) -> Value + Send + Sync + 'static) -> String {
    let address = std::sync::OnceLock::<String>::new();
    let address = std::sync::Arc::new(address);
    let known = std::sync::Arc::clone(&address);
    let at = site(move |asked| match asked.path.as_str() {
        "/.well-known/oauth-authorization-server" => {
            let issuer = known.get().map(String::as_str).unwrap_or_default();
            let body = document(issuer).to_string();
            answer(200, "content-type: application/json", &body)
        }
        _ => answer(404, "", ""),
    });
    let issuer = format!("http://{at}");
    address.set(issuer.clone()).unwrap();
    issuer
}

fn good_metadata(issuer: &str) -> Value {
    json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "registration_endpoint": format!("{issuer}/register"),
        "code_challenge_methods_supported": ["S256"],
    })
}

fn protected(address: SocketAddr, issuer: &str) -> Http {
    let resource = format!("http://{address}/mcp");
    let tokens = JwtVerifier::new(issuer).unwrap();
    server().http().require_auth(Guard::new(&resource, tokens).unwrap())
}

#[test]
fn a_server_that_requires_a_login_is_explained() {
    let good = issuer(good_metadata);
    let address = serve(|address| protected(address, &good));
    let found = doctor(&[&url(address, "/mcp")]);
    found.is("fail", "login", "requires a login", 3);
    for step in ["challenge", "resource metadata", "authorization server"] {
        assert_eq!(found.step(step)["outcome"], "ok", "{step}: {:#}", found.document);
    }
    let token = "not-a-token-at-all";
    let found = doctor(&["--token", token, &url(address, "/mcp")]);
    found.is("fail", "login", "rejects the token", 3);
    assert!(!found.document.to_string().contains(token));

    for (document, cause) in [
        (json!({ "code_challenge_methods_supported": null }), "PKCE"),
        (json!({ "token_endpoint": null }), "has no token_endpoint"),
        (json!({ "issuer": "https://other.example" }), "the issuer https://other.example"),
    ] {
        let bad = issuer(move |issuer| {
            let mut metadata = good_metadata(issuer);
            for (name, value) in document.as_object().unwrap() {
                metadata[name] = value.clone();
            }
            metadata
        });
        let address = serve(|address| protected(address, &bad));
        doctor(&[&url(address, "/mcp")]).is("fail", "authorization server", cause, 3);
    }
    let nowhere = site(|_| answer(404, "", ""));
    let address = serve(|address| protected(address, &format!("http://{nowhere}")));
    let cause = "has no metadata";
    doctor(&[&url(address, "/mcp")]).is("fail", "authorization server", cause, 3);
}

#[test]
fn incomplete_or_foreign_metadata_is_reported() {
    let address = site(|asked| match asked.path.as_str() {
        "/mcp" => answer(401, "", "Unauthorized"),
        _ => answer(404, "", ""),
    });
    let found = doctor(&[&url(address, "/mcp")]);
    found.is("fail", "resource metadata", "does not say where to get one", 3);
    assert_eq!(found.step("challenge")["seen"], "no WWW-Authenticate");

    // Behind a proxy that the server does not know about, the metadata is for another URL.
    let good = issuer(good_metadata);
    let address = serve(|_| {
        let tokens = JwtVerifier::new(&good).unwrap();
        let guard = Guard::new("https://mcp.example.com/mcp", tokens).unwrap();
        server().http().require_auth(guard)
    });
    let document = json!({
        "resource": "https://mcp.example.com/mcp", "authorization_servers": [good],
    });
    let proxy = site(move |asked| match asked.path.as_str() {
        "/mcp" => answer(401, "www-authenticate: Bearer", ""),
        path if path.starts_with("/.well-known/oauth-protected-resource") => {
            answer(200, "content-type: application/json", &document.to_string())
        }
        _ => answer(404, "", ""),
    });
    doctor(&[&url(proxy, "/mcp")]).is("fail", "resource metadata", "the URL is another", 3);
    let found = doctor(&["--timeout", "30s", &url(address, "/mcp")]);
    assert_eq!((found.code, &found.document["step"]), (3, &"resource metadata".into()));
}

#[test]
fn a_good_token_is_accepted() {
    let address = serve(|address| {
        let tokens = StaticTokens::new().token("open-sesame", Identity::new("alice").scope("mcp"));
        let guard = Guard::new(&format!("http://{address}/mcp"), tokens).unwrap();
        let guard = guard.authorization_server("https://login.example.com").unwrap();
        server().http().require_auth(guard)
    });
    doctor(&["--token", "open-sesame", &url(address, "/mcp")]).is_well();
}
