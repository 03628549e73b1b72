//! An MCP server inside an axum application: state that pages and tools share, a layer whose
//! findings a tool sees, a page beside `/mcp`, and a shutdown that lets every request finish.
//!
//! `cargo run --example axum --features http`, then, in another terminal:
//!
//! ```sh
//! bowline call http://127.0.0.1:8080/mcp note text=hello -H 'x-api-key: blue-key'
//! curl http://127.0.0.1:8080/notes
//! ```

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bowline::{BuildError, Context, Server, server};

/// The state of the application.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

/// The customer that a request comes from, as the layer found out.
#[derive(Clone)]
struct Customer(&'static str);

#[server]
impl Notes {
    /// Keep a note.
    #[tool]
    async fn note(&self, context: &Context, text: String) -> String {
        let customer = context.extensions().get::<Customer>().map_or("nobody", |it| it.0);
        let language = context.headers().get("accept-language").and_then(|it| it.to_str().ok());
        let mut notes = self.lock();
        notes.push(format!("{customer} ({}): {text}", language.unwrap_or("any language")));
        format!("note {} is kept", notes.len())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A page of the same application.
async fn page(State(notes): State<Arc<Notes>>) -> String {
    notes.lock().join("\n")
}

/// The layer: finds out who asks, or sends them away.
async fn find_customer(mut request: Request, next: Next) -> Response {
    let key = request.headers().get("x-api-key").and_then(|key| key.to_str().ok());
    let customer = match key {
        Some("blue-key") => Customer("blue"),
        Some("green-key") => Customer("green"),
        _ => return (StatusCode::UNAUTHORIZED, "x-api-key is missing or wrong").into_response(),
    };
    request.extensions_mut().insert(customer);
    next.run(request).await
}

/// The application: tools under `/mcp`, for customers only, and a page for everybody.
pub(crate) fn app() -> Result<Router, BuildError> {
    let notes = Arc::new(Notes::default());
    let mcp = Server::new("notes", "1.0.0").with(Arc::clone(&notes)).http().into_service()?;
    Ok(Router::new()
        .nest_service("/mcp", mcp)
        .layer(from_fn(find_customer))
        .route("/notes", get(page))
        .with_state(notes))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let listener = tokio::net::TcpListener::bind(address).await?;
    // Clients that listen for changes do not delay the end.
    axum::serve(listener, app()?).with_graceful_shutdown(bowline::stop_signal()).await?;
    Ok(())
}
