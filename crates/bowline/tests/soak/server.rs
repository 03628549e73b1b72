//! The process under load: one server over HTTP and one on standard input and output.

use std::time::Duration;

use bowline::http::HttpLimits;
use bowline::{Context, HandlerError, Resource, Server, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

/// Set in the server's process.
pub(crate) const ROLE: &str = "BOWLINE_SOAK_SERVER";

/// The resource that changes.
pub(crate) const RESOURCE: &str = "test://news";

#[derive(Deserialize, JsonSchema)]
struct Echo {
    message: String,
}

async fn work(context: Context) -> &'static str {
    for step in 0..3 {
        context.progress(step.into(), 3.0, "");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    "done"
}

async fn ask(context: Context) -> Result<String, HandlerError> {
    Ok(context.confirm("Sure?").await?.to_string())
}

async fn fail() -> Result<String, HandlerError> {
    Err(std::io::Error::other("it went wrong").into())
}

async fn never() -> String {
    std::future::pending().await
}

fn server() -> Server {
    Server::new("soak", "1.0.0")
        .with(Tool::new("echo", |echo: Echo| async move { echo.message }))
        .with(Tool::new("work", work))
        .with(Tool::new("ask", ask))
        .with(Tool::new("fail", fail))
        .with(Tool::new("never", never))
        .with(Tool::new("touch", |context: Context| async move {
            context.registry().resource_updated(RESOURCE);
            "touched"
        }))
        .with(Resource::text(RESOURCE, "news", "Nothing is new."))
}

/// Serves until standard input ends. The first line on standard error is the address.
pub(crate) async fn serve() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    eprintln!("{}", listener.local_addr().unwrap());
    let most = usize::MAX;
    let limits = HttpLimits {
        connections_per_party: most,
        sessions_per_party: most,
        streams_per_party: most,
        calls_per_party: most,
        // Clients that vanish are forgotten within the soak.
        session_idle: Duration::from_secs(10),
        idle: Duration::from_secs(3),
        ..HttpLimits::default()
    };
    tokio::select! {
        served = server().http().limits(limits).serve_on(listener) => served.unwrap(),
        served = server().serve_stdio() => served.unwrap(),
    }
}
