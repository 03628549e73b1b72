//! A server that rejects requests without a token, and requires a scope for one of its tools.
//!
//! `protected ISSUER RESOURCE ADDRESS`, for instance `protected https://login.example.com
//! https://mcp.example.com/mcp 127.0.0.1:8080`. The issuer is any authorization server that signs
//! its tokens (JWT); clients discover it automatically. Needs the feature `auth`.

use bowline::http::auth::{Guard, JwtVerifier};
use bowline::{Context, Server, tool};

/// Tell who I am. Any valid token will do.
#[tool(read_only)]
async fn whoami(context: Context) -> String {
    // What a handler knows about its caller, which does not include the token.
    match &context.caller().principal {
        Some(principal) => {
            let scopes: Vec<_> = principal.scopes().collect();
            format!("{}, who may {}", principal.subject(), scopes.join(", "))
        }
        None => "nobody".to_owned(),
    }
}

/// Write a note. This needs a scope; clients without it are told to get it.
#[tool(scopes = ["notes:write"])]
async fn write(note: String) -> String {
    format!("noted: {note}")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |standard: &str| arguments.next().unwrap_or_else(|| standard.to_owned());
    let issuer = next("https://login.example.com");
    let resource = next("http://127.0.0.1:8080/mcp");
    let address = next("127.0.0.1:8080");
    let server = Server::new("notes", "1.0.0").with((whoami, write));

    // Protecting it takes three lines.
    let tokens = JwtVerifier::new(&issuer)?;
    let guard = Guard::new(&resource, tokens)?;
    server.http().require_auth(guard).serve(&address).await?;
    Ok(())
}
