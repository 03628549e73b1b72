//! The client: executes the commands it reads from standard input, one per line.
//!
//! `call CALLS WINDOW BYTES` makes this many calls of `echo`, this many at a time, and prints
//! `done`; `hold CALLS` starts calls that do not return, and prints `held` when they have been
//! sent.

use std::error::Error;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientConfig, ContentBlock, JsonObject, ProtocolVersion,
};
use rmcp::service::{Peer, RoleClient};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientLifecycleMode, ClientServiceExt};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::task::JoinSet;

use crate::Options;

pub(crate) async fn run(
    options: Options,
    revision: &str,
    target: &[&str],
) -> Result<(), Box<dyn Error>> {
    let lifecycle = match revision {
        "2026-07-28" => ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
        _ => ClientLifecycleMode::Initialize,
    };
    let config = ClientConfig::default();
    let service = if target[0].starts_with("http://") {
        let http = StreamableHttpClientTransportConfig::with_uri(target[0]);
        let transport = if options.is_tuned {
            StreamableHttpClientTransport::with_client(
                reqwest::Client::new(),
                http.max_concurrent_requests(16_384),
            )
        } else {
            StreamableHttpClientTransport::from_config(http)
        };
        config.serve_with_lifecycle(transport, lifecycle).await?
    } else {
        let mut command = tokio::process::Command::new(target[0]);
        command.args(&target[1..]);
        config.serve_with_lifecycle(TokioChildProcess::new(command)?, lifecycle).await?
    };
    println!("ready");
    let peer = service.peer().clone();
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut held = JoinSet::new();
    while let Some(line) = lines.next_line().await? {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["call", calls, window, bytes] => {
                call(&peer, calls.parse()?, window.parse()?, bytes.parse()?).await?;
                println!("done");
            }
            ["hold", calls] => {
                for _ in 0..calls.parse()? {
                    let peer = peer.clone();
                    held.spawn(async move { drop(peer.call_tool(slow()).await) });
                }
                tokio::time::sleep(Duration::from_secs(2)).await;
                println!("held");
            }
            _ => return Err(format!("unknown command {line:?}").into()),
        }
    }
    // The parent process also ends our child; held calls are not awaited.
    std::process::exit(0);
}

async fn call(
    peer: &Peer<RoleClient>,
    calls: usize,
    window: usize,
    bytes: usize,
) -> Result<(), Box<dyn Error>> {
    let mut workers = JoinSet::new();
    for worker in 0..window {
        let share = calls / window + usize::from(worker < calls % window);
        let (peer, message) = (peer.clone(), "x".repeat(bytes));
        workers.spawn(async move {
            for _ in 0..share {
                let result = peer.call_tool(echo(&message)).await.expect("an answer");
                assert_eq!(text(&result), message);
            }
        });
    }
    while let Some(worker) = workers.join_next().await {
        worker?;
    }
    Ok(())
}

fn text(result: &CallToolResult) -> &str {
    match &result.content[..] {
        [ContentBlock::Text(text)] => &text.text,
        _ => panic!("no text: {result:?}"),
    }
}

fn echo(message: &str) -> CallToolRequestParams {
    let mut arguments = JsonObject::new();
    arguments.insert("message".to_owned(), message.into());
    CallToolRequestParams::new("echo").with_arguments(arguments)
}

fn slow() -> CallToolRequestParams {
    let mut arguments = JsonObject::new();
    arguments.insert("ms".to_owned(), 280_000.into());
    arguments.insert("message".to_owned(), "late".into());
    CallToolRequestParams::new("slow").with_arguments(arguments)
}
