//! `bowline serve --fleet` as operators start it.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use bowline_serve::testing::Process;

use super::PROGRAM;
use super::stores::{Postgres, free_port};

/// The body of an answer over HTTP/1.0.
fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_node_tells_its_metrics() {
    let postgres = Postgres::start();
    let (database, metrics) = (postgres.database(), format!("127.0.0.1:{}", free_port()));
    let arguments =
        ["serve", "--http", "127.0.0.1:0", "--fleet", &database, "--fleet-metrics", &metrics];
    let mut node = Process::start(PROGRAM, &arguments);
    let address = node.http_address().to_string();
    assert!(get(&address, "/ready").contains(" 200 "));
    let told = get(&metrics, "/metrics");
    for line in ["bowline_fleet_other_nodes 0", "bowline_fleet_leases_held 0"] {
        assert!(told.lines().any(|it| it == line), "{line}: {told}");
    }
    assert!(get(&metrics, "/").contains(" 404 "));
    let said = node.terminate();
    assert_eq!(said.code, Some(0), "{}", said.err);
    let left = postgres.sql("test0", "SELECT count(*) FROM bowline.nodes").unwrap();
    assert_eq!(left, "0", "it has left");
}

#[test]
fn the_address_of_redis_can_be_a_variable() {
    let postgres = Postgres::start();
    let database = postgres.database();
    let variables = [("BOWLINE_FLEET", &*database), ("BOWLINE_FLEET_REDIS", "gopher://cache")];
    let said =
        Process::start_with(PROGRAM, &["serve", "--http", "127.0.0.1:0"], &variables).close();
    assert!(said.code.is_some_and(|code| code != 0), "{said:?}");
    assert!(said.err.contains("\"gopher://cache\" is not the address of a store"), "{said:?}");
}
