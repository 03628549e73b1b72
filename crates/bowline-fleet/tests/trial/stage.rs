//! Three nodes of another program behind a balancer, for somebody else to test.

use std::process::{Child, Command, Stdio};
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
        nodes.push(Guard(node.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap()));
    }
    for port in ports {
        let mut looks = 0;
        while http::get(port, "/ready").await != Some(200) {
            looks += 1;
            assert!(looks < 1_200, "a node does not start");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    until_they_know_each_other(&postgres).await;
    let balancer = Balancer::start(ports).await;
    println!("stage: http://127.0.0.1:{}/mcp", balancer.port);
    let _ = tokio::task::spawn_blocking(|| std::io::read_to_string(std::io::stdin())).await;
    drop(balancer);
}

/// Waits until each node has read where the others are: its second heartbeat after they have all
/// said so.
async fn until_they_know_each_other(postgres: &Postgres) {
    let ask = |sql: &str| postgres.sql("test0", sql).unwrap();
    let until = async |sql: &str, wanted: &str| {
        for _ in 0..1_200 {
            if ask(sql) == wanted {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("the nodes do not know each other");
    };
    until("SELECT count(address) FROM bowline.nodes", "3").await;
    for _ in 0..2 {
        let now = ask("SELECT clock_timestamp()");
        until(&format!("SELECT min(seen) > '{now}' FROM bowline.nodes"), "t").await;
    }
}

/// A process that ends with the stage, however that ends.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
