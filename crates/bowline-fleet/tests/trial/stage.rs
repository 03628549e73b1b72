//! Three nodes of another program behind a balancer, for somebody else to test.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::balancer::Balancer;
use crate::http;
use crate::stores::{Postgres, Redis, free_port};

/// The variable with the program.
pub const PROGRAM: &str = "BOWLINE_STAGE";

/// Opens the stage, says where it is, and closes it at the end of standard input.
pub async fn open(program: &str) {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let database = postgres.database();
    let ports = [(); 3].map(|()| free_port());
    let mut nodes = Vec::new();
    for port in ports {
        let mut node = Command::new(program);
        node.args(["--http", &format!("127.0.0.1:{port}"), "--fleet", &database, &redis.url()]);
        nodes.push(node.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap());
    }
    for port in ports {
        let mut looks = 0;
        while http::get(port, "/ready").await != Some(200) {
            looks += 1;
            assert!(looks < 600, "a node does not start");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    // Until each node has heard of the others.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let balancer = Balancer::start(ports).await;
    println!("stage: http://127.0.0.1:{}/mcp", balancer.port);
    let _ = tokio::task::spawn_blocking(|| std::io::read_to_string(std::io::stdin())).await;
    drop(balancer);
    for node in &mut nodes {
        let _ = node.kill();
        let _ = node.wait();
    }
}
