//! The notes server inside an axum application: `notes-axum FILE ADDRESS`.
//!
//! `/mcp` is the server, `/notes` a page of the same application, and callers need a key, which a
//! layer checks. SIGTERM and Ctrl-C end it, whoever listens.

use std::sync::Arc;

use anyhow::Context as _;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router};
use bowline::Server;
use bowline_examples::{Note, Notes};

async fn page(State(notes): State<Arc<Notes>>) -> Result<Json<Vec<Note>>, StatusCode> {
    notes.matching("", 100).map(Json).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
}

async fn check_key(request: Request, next: Next) -> Result<Response, StatusCode> {
    match request.headers().get("x-api-key") {
        Some(key) if key == "secret" => Ok(next.run(request).await),
        _ => Err(StatusCode::UNAUTHORIZED),
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    let usage = "usage: notes-axum FILE ADDRESS";
    let notes = Arc::new(Notes::open(&words.next().context(usage)?)?);
    let listener = tokio::net::TcpListener::bind(words.next().context(usage)?).await?;

    let mcp = Server::new("notes", "1.0.0").with(Arc::clone(&notes)).http().into_service()?;
    let app = Router::new()
        .nest_service("/mcp", mcp)
        .route("/notes", get(page))
        // After what it protects: a layer is around the routes above it.
        .layer(middleware::from_fn(check_key))
        .with_state(notes);
    axum::serve(listener, app).with_graceful_shutdown(bowline::stop_signal()).await?;
    Ok(())
}
