//! The server: `echo`, `sum` and `slow`.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{ServerCapabilities, ServerConfig};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, ServiceExt, schemars, tool, tool_handler, tool_router};

use crate::Options;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    /// What to echo.
    message: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Sum {
    a: i64,
    b: i64,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Slow {
    /// How long to wait, in milliseconds.
    ms: u64,
    message: String,
}

#[derive(Clone)]
struct Probe {
    tool_router: ToolRouter<Self>,
}

#[tool_router]
impl Probe {
    fn new() -> Self {
        Self { tool_router: Self::tool_router() }
    }

    #[tool(description = "Echoes the message")]
    async fn echo(&self, Parameters(echo): Parameters<Echo>) -> String {
        echo.message
    }

    #[tool(description = "Adds two numbers")]
    async fn sum(&self, Parameters(sum): Parameters<Sum>) -> String {
        (sum.a + sum.b).to_string()
    }

    #[tool(description = "Echoes the message, later")]
    async fn slow(&self, Parameters(slow): Parameters<Slow>) -> String {
        tokio::time::sleep(Duration::from_millis(slow.ms)).await;
        slow.message
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Probe {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

pub(crate) async fn stdio(options: Options) -> Result<(), Box<dyn Error>> {
    let running = if options.is_tuned {
        Probe::new().serve(rmcp::transport::stdio_pipes()).await?
    } else {
        Probe::new().serve(rmcp::transport::stdio()).await?
    };
    running.waiting().await?;
    Ok(())
}

pub(crate) async fn http(options: Options, port: u16) -> Result<(), Box<dyn Error>> {
    let mut config = StreamableHttpServerConfig::default().with_max_request_body_bytes(32 << 20);
    if options.is_tuned {
        config = config.with_json_response(true).with_legacy_session_mode(options.has_sessions);
    }
    // One table of tools for all sessions.
    let probe = Probe::new();
    let service = StreamableHttpService::new(
        move || Ok(probe.clone()),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    let service = TowerToHyperService::new(service);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let connection = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(stream), service.clone());
        // A client that disconnects is not an error.
        tokio::spawn(async move { drop(connection.await) });
    }
}
