//! Logging in: once, and from then on every command is let in.

use std::io::Write;
use std::process::Stdio;
use std::sync::Arc;
use std::thread;

use bowline::http::auth::{Guard, Identity, StaticTokens};
use bowline::{Server, Tool};
use bowline_serve::testing::{Answer, Service};
use serde_json::json;
use tokio::net::TcpListener;

use crate::fixture::{Folder, program, said};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// An authorization server that lets everybody in.
fn authorization_server() -> Arc<Service> {
    let address = Arc::new(std::sync::OnceLock::<String>::new());
    let known = Arc::clone(&address);
    let service = Service::start(move |asked| {
        let issuer = known.get().cloned().unwrap_or_default();
        let (_, path) = asked.what.split_once(' ').unwrap();
        match path {
            "/.well-known/oauth-authorization-server" => Answer::json(&json!({
                "issuer": issuer,
                "authorization_endpoint": format!("{issuer}/authorize"),
                "token_endpoint": format!("{issuer}/token"),
                "registration_endpoint": format!("{issuer}/register"),
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"],
            })),
            "/register" => Answer { status: 201, ..Answer::json(&json!({ "client_id": "me" })) },
            "/token" => Answer::json(&json!({
                "access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600,
            })),
            _ => Answer::error(404, "nothing here"),
        }
    });
    address.set(service.url()).unwrap();
    Arc::new(service)
}

/// A server that wants a token of it.
fn protected(issuer: &str) -> String {
    let issuer = issuer.to_owned();
    let (told, url) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let resource = format!("http://{}/mcp", listener.local_addr().unwrap());
            let tokens = StaticTokens::new().token(TOKEN, Identity::new("ada"));
            let guard = Guard::new(&resource, tokens).unwrap();
            let guard = guard.authorization_server(&issuer).unwrap();
            told.send(resource).unwrap();
            let server =
                Server::new("notes", "1.0.0").with(Tool::new("hello", || async { "let in" }));
            let http = server.http().require_auth(guard);
            http.serve_until(listener, std::future::pending()).await.unwrap();
        });
    });
    url.recv().unwrap()
}

#[test]
fn a_login_is_kept_used_and_forgotten() {
    let home = Folder::new();
    let issuer = authorization_server();
    let url = protected(&issuer.url());

    let told = said(program(&home).args(["call", &url, "hello"]));
    assert_eq!(told.code, Some(3), "{}", told.err);
    assert!(told.err.contains(&format!("bowline login {url}")), "{}", told.err);
    assert!(issuer.asked().is_empty(), "{:?}", issuer.asked());

    let mut login = program(&home);
    login.args(["login", "--paste", &url]).stdin(Stdio::piped());
    let mut child = login.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"the-code\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(out, format!("logged in to {url}\n"), "{err}");
    assert!(err.contains(&format!("{}/authorize?", issuer.url())), "{err}");

    let session = home.path().join("session.ndjson");
    let told = said(program(&home).args(["call", &url, "hello", "--record"]).arg(&session));
    assert_eq!((told.out.as_str(), told.code), ("let in\n", Some(0)), "{}", told.err);
    assert!(!std::fs::read_to_string(&session).unwrap().contains(TOKEN));
    let told = said(program(&home).args(["call", "-v", &url, "hello"]));
    assert!(told.err.contains("authorization: [redacted]"), "{}", told.err);
    assert!(!told.err.contains(TOKEN), "{}", told.err);

    let told = said(program(&home).args(["logout", &url]));
    assert_eq!(told.out, format!("logged out of {url}\n"), "{}", told.err);
    assert_eq!(said(program(&home).args(["call", &url, "hello"])).code, Some(3));
    let token =
        said(program(&home).env("KEY", TOKEN).args(["call", &url, "hello", "--token-env", "KEY"]));
    assert_eq!(token.out, "let in\n", "{}", token.err);
}
