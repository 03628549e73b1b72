//! A small authorization server, and a server that requires its tokens.

use std::thread;

use bowline::http::auth::{Guard, Identity, StaticTokens};
use bowline::{Server, Tool};
use bowline_serve::testing::{Asked, HttpReply, Service};
use serde_json::json;
use tokio::net::TcpListener;

pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";
pub(crate) const CODE: &str = "the-code";

/// What the user does there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Person {
    Agrees,
    Denies,
}

/// An authorization server that asks nothing: it knows what the user does.
pub(crate) fn authorization_server(person: Person) -> Service {
    Service::start(move |asked| {
        let issuer = asked.base();
        let target = asked.path();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        match path {
            "/.well-known/oauth-authorization-server" => HttpReply::json(&json!({
                "issuer": issuer,
                "authorization_endpoint": format!("{issuer}/authorize"),
                "token_endpoint": format!("{issuer}/token"),
                "registration_endpoint": format!("{issuer}/register"),
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"],
            })),
            "/register" => {
                HttpReply { status: 201, ..HttpReply::json(&json!({ "client_id": "me" })) }
            }
            "/authorize" => authorize(query, person),
            "/token" => token(asked),
            _ => HttpReply::error(404, "nothing here"),
        }
    })
}

fn authorize(query: &str, person: Person) -> HttpReply {
    let redirect = parameter(query, "redirect_uri").unwrap();
    let state = parameter(query, "state").unwrap();
    let outcome = match person {
        Person::Agrees => format!("code={CODE}"),
        Person::Denies => "error=access_denied&error_description=not%20today".to_owned(),
    };
    HttpReply::redirect(format!("{redirect}?{outcome}&state={state}"))
}

fn token(asked: &Asked) -> HttpReply {
    let is_code = parameter(&asked.body, "code").as_deref() == Some(CODE);
    if !is_code || parameter(&asked.body, "code_verifier").is_none() {
        return HttpReply { status: 400, ..HttpReply::json(&json!({ "error": "invalid_grant" })) };
    }
    let token = json!({ "access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600 });
    HttpReply::json(&token)
}

/// A parameter of a query or a form.
pub(crate) fn parameter(query: &str, name: &str) -> Option<String> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let value = pairs.filter(|(known, _)| *known == name).map(|(_, value)| value).next()?;
    let mut parts = value.split('%');
    let mut text = parts.next()?.as_bytes().to_vec();
    for part in parts {
        text.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        text.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(text).ok()
}

/// A server that requires its tokens.
pub(crate) fn protected(issuer: &str) -> String {
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
