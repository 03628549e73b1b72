//! The logger as users see it: tools, command, receivers on loopback, and a real rsyslogd.

#![expect(clippy::unwrap_used, reason = "all of it is tests")]

mod command;
#[cfg(unix)]
mod http;
mod identity;
mod notes;
mod policy;
mod properties;
mod receiver;
mod rsyslog;
mod spool;
mod tools;
mod transports;

use bowline::client::CallError;
use bowline::{Client, testing};
use mcp_logger::{Callers, Config};
use serde_json::Value;

/// A client of a server with this configuration, for local callers.
async fn client(config: &str) -> Client {
    client_of(config, Callers::Owner).await
}

async fn client_of(config: &str, callers: Callers) -> Client {
    let config = Config::parse(config).unwrap();
    testing::connect(mcp_logger::server(config, callers).unwrap()).await.unwrap()
}

/// The structured result of a tool that must succeed.
async fn call(client: &Client, tool: &str, arguments: Value) -> Value {
    let result = client.call_tool(tool, arguments).await.unwrap();
    assert_ne!(result.is_error, Some(true), "{result:?}");
    result.structured_content.unwrap().to_value()
}

/// The error text of a tool that must fail.
async fn fail(client: &Client, tool: &str, arguments: Value) -> String {
    match client.call_tool(tool, arguments).text().await {
        Err(CallError::ToolFailed { message, .. }) => message,
        other => panic!("{tool} should have failed: {other:?}"),
    }
}
