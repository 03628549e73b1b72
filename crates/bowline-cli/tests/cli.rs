//! The program as people and clients use it.

#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "cli/apps.rs"]
mod apps;
#[path = "cli/authority.rs"]
mod authority;
#[cfg(unix)]
#[path = "cli/bridge.rs"]
mod bridge;
#[cfg(unix)]
#[path = "cli/browser.rs"]
mod browser;
#[path = "cli/check.rs"]
mod check;
#[cfg(unix)]
#[path = "cli/config.rs"]
mod config;
#[cfg(unix)]
#[path = "cli/documents.rs"]
mod documents;
#[path = "cli/fixture.rs"]
mod fixture;
#[cfg(target_os = "linux")]
#[path = "cli/fleet.rs"]
mod fleet;
#[cfg(unix)]
#[path = "cli/gateway.rs"]
mod gateway;
#[cfg(unix)]
#[path = "cli/gateway_auth.rs"]
mod gateway_auth;
#[cfg(unix)]
#[path = "cli/gateway_openapi.rs"]
mod gateway_openapi;
#[cfg(unix)]
#[path = "cli/gateway_otlp.rs"]
mod gateway_otlp;
#[path = "cli/hostile.rs"]
mod hostile;
#[path = "cli/login.rs"]
mod login;
#[path = "cli/manners.rs"]
mod manners;
#[cfg(unix)]
#[path = "cli/new.rs"]
mod new;
#[cfg(unix)]
#[path = "cli/person.rs"]
mod person;
#[cfg(unix)]
#[path = "cli/readme.rs"]
mod readme;
#[cfg(unix)]
#[path = "cli/recorded.rs"]
mod recorded;
#[path = "cli/skills.rs"]
mod skills;
#[cfg(target_os = "linux")]
#[path = "../../bowline-fleet/tests/it/stores.rs"]
#[allow(dead_code, unreachable_pub, clippy::panic, reason = "a module of other tests")]
mod stores;
#[cfg(unix)]
#[path = "cli/tap.rs"]
mod tap;
#[cfg(unix)]
#[path = "cli/tap_http.rs"]
mod tap_http;
#[path = "cli/tasks.rs"]
mod tasks;
#[path = "cli/transcripts.rs"]
mod transcripts;
#[cfg(unix)]
#[path = "cli/trust.rs"]
mod trust;
#[cfg(unix)]
#[path = "cli/tutorial.rs"]
mod tutorial;
#[cfg(unix)]
#[path = "cli/typed.rs"]
mod typed;
#[cfg(unix)]
#[path = "cli/workbench.rs"]
mod workbench;

use std::path::Path;

use bowline_serve::long_version;
use bowline_serve::testing::{Process, check_manners, golden, run};

const PROGRAM: &str = env!("CARGO_BIN_EXE_bowline");

#[test]
fn help_and_version_are_answers() {
    for (arguments, file) in
        [(&[][..], "help.txt"), (&["-h"], "help.txt"), (&["--help"], "help-long.txt")]
    {
        let said = run(PROGRAM, arguments, "");
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
        golden(&Path::new("testdata").join(file), &said.out);
        let commands = said.out.lines().skip_while(|line| *line != "Commands:").skip(1);
        let commands = commands.take_while(|line| !line.is_empty());
        let names = commands.filter(|line| !line.starts_with("   "));
        let names = names.filter_map(|line| line.split_whitespace().next());
        for name in names.filter(|name| *name != "help") {
            let said = run(PROGRAM, &[name, "--help"], "");
            assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{name}");
            golden(Path::new(&format!("testdata/help-{name}.txt")), &said.out);
        }
    }
    let said = run(PROGRAM, &["--version"], "");
    assert_eq!(said.out, format!("bowline {}\n", long_version()));
}

#[test]
fn misuse_is_explained() {
    for (arguments, problem) in [
        (&["dance"][..], "unrecognized subcommand 'dance'"),
        (&["serve", "tea"], "unrecognized subcommand 'tea'"),
        (&["serve", "--stdio", "--http", "127.0.0.1:0"], "cannot be used with"),
        (&["serve", "--allow-host", "a"], "--http <ADDR>"),
        (&["serve", "--http", "0.0.0.0:0"], "--allow-unauthenticated"),
        (&["serve", "--allow-unauthenticated"], "--http <ADDR>"),
        (&["serve", "counter", "--log-level", "loud"], "[possible values: off, error"),
    ] {
        let said = run(PROGRAM, arguments, "");
        assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{arguments:?}");
        assert!(said.err.contains(problem), "{}", said.err);
    }
}

#[test]
fn each_server_has_manners() {
    for name in ["mcp-logger", "counter", "example", "operator"] {
        let help = format!("testdata/help-{name}.txt");
        check_manners(PROGRAM, &["serve", name], Path::new(&help));
    }
}

#[test]
fn all_servers_share_standard_input_and_output() {
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let said = run(PROGRAM, &["serve", "--stdio"], &format!("{ping}\n"));
    assert_eq!(said.code, Some(0));
    assert_eq!(said.out, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
}

#[test]
fn all_servers_share_an_address() {
    let mut process = Process::start(PROGRAM, &["serve", "--http", "127.0.0.1:0"]);
    let told: Vec<String> = std::iter::from_fn(|| process.line())
        .take_while(|line| !line.starts_with("One server alone"))
        .collect();
    assert!(told[2].starts_with("  http://127.0.0.1:"), "{told:?}");
    for tool in
        ["logger_send-syslog", "counter_increment", "example_weather_current", "operator_assign"]
    {
        assert!(told.iter().any(|line| line.contains(tool)), "{tool}: {told:?}");
    }
    let configuration = r#""args": ["serve", "--stdio"] }"#;
    assert!(told.iter().any(|line| line.contains(configuration)), "{told:?}");
    assert_eq!(process.terminate().code, Some(0));
}
