//! `bowline serve --fleet` as operators start it.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

use bowline_serve::testing::Process;

use super::PROGRAM;
use super::stores::{Folder, Postgres, free_port};

/// What `docs/fleet.md` tells operators to copy.
const UNIT: &str = include_str!("../../../../docs/fleet/bowline@.service");
const COMPOSE: &str = include_str!("../../../../docs/fleet/compose.yaml");

const SECRET: &str = "a secret of at least thirty-two bytes";

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

/// A node with these arguments and variables serves until it is told to stop.
fn serves(arguments: &[String], variables: &[(&str, &str)]) {
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let mut node = Process::start_with(PROGRAM, &arguments, variables);
    let port = node.http_address().port();
    assert!(get(&format!("127.0.0.1:{port}"), "/ready").contains(" 200 "), "{arguments:?}");
    let said = node.terminate();
    assert_eq!(said.code, Some(0), "{arguments:?}: {}", said.err);
}

#[test]
fn the_unit_for_systemd_serves() {
    let setting = |name: &str| {
        let found = UNIT.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        found.unwrap_or_else(|| unreachable!("{name} is not set"))
    };
    let start = setting("ExecStart").replace("%i", "0");
    let arguments = start.strip_prefix("/usr/bin/bowline ").unwrap();
    let arguments: Vec<_> = arguments.split(' ').map(str::to_owned).collect();
    let postgres = Postgres::start();
    serves(
        &arguments,
        &[("BOWLINE_FLEET", &postgres.database()), ("BOWLINE_FLEET_SECRET", SECRET)],
    );
    let folder = Folder::new("unit");
    let file = folder.write("fleet.env", "");
    let unit = UNIT.replace("/usr/bin/bowline", PROGRAM);
    let unit = unit.replace(setting("EnvironmentFile"), file.to_str().unwrap());
    let unit = folder.write("bowline@.service", &unit);
    let Ok(judged) = Command::new("systemd-analyze").arg("verify").arg(unit).output() else {
        // It is not installed, so it cannot judge.
        return;
    };
    let said = String::from_utf8_lossy(&judged.stderr);
    assert!(!said.contains("bowline@"), "{said}");
}

#[test]
fn the_nodes_of_the_compose_file_serve() {
    let arrays = |name: &str| -> Vec<Vec<String>> {
        let line =
            |line: &str| Some(line.trim().strip_prefix(name)?.strip_prefix(": ")?.to_owned());
        let found = COMPOSE.lines().filter_map(line);
        found.map(|array| serde_json::from_str(&array).unwrap()).collect()
    };
    let (entries, commands) = (arrays("entrypoint"), arrays("command"));
    assert_eq!((entries.len(), commands.len()), (1, 2), "both nodes begin in the same way");
    assert_eq!(entries[0][0], "bowline");
    let postgres = Postgres::start();
    let database = postgres.database();
    let variables = [("BOWLINE_FLEET", &*database), ("BOWLINE_FLEET_SECRET", SECRET)];
    for (name, _) in variables {
        assert!(COMPOSE.contains(&format!("      {name}: ")), "{name} is set");
    }
    for command in commands {
        let whole = entries[0][1..].iter().chain(&command);
        let whole: Vec<_> = whole.map(|it| it.replace("0.0.0.0:8080", "0.0.0.0:0")).collect();
        assert_eq!(whole.iter().filter(|it| *it == "0.0.0.0:0").count(), 1, "{whole:?}");
        serves(&whole, &variables);
    }
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
