//! The static program, in a root with nothing but itself and `/dev/null`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use super::tools::{Target, Tools};
use super::{PATIENCE, Part, build, checked};
use crate::need::is_root;
use crate::process::{Ran, command, program, run, run_within};
use crate::server::Server;

/// The root: a folder with the program, and later the files that a name and a certificate need.
const ROOT: &str = "target/platforms/root";

/// A name that only the `hosts` file in the root knows.
const HOST: &str = "static.example.test";

pub(super) fn part(tools: &Tools) -> Part {
    let mut part = checked(tools, Target::Linux);
    let built = build(tools, Target::Linux);
    part.count("built", built.as_ref().map(drop).map_err(Clone::clone));
    let Ok(built) = built else { return part };
    part.count("static", is_static(&built));
    let prepared = prepare(&built);
    if prepared.is_err() {
        part.count("root", prepared);
        return part;
    }
    part.count("in an empty root", says(&["--version"], "bowline "));
    let counter = ["call", "increment", "--", "/bowline", "serve", "counter"];
    part.count("stdio", says(&counter, "1\n"));
    part.count("names and TLS", over_tls(&built));
    part
}

fn prepare(built: &str) -> Result<(), String> {
    let said = |error: std::io::Error| format!("{ROOT}: {error}");
    if Path::new(ROOT).exists() {
        fs::remove_dir_all(ROOT).map_err(said)?;
    }
    fs::create_dir_all(format!("{ROOT}/etc")).map_err(said)?;
    fs::copy(built, format!("{ROOT}/bowline")).map_err(said)?;
    put_null(ROOT)
}

/// Gives a root what every container has, and what a server on stdio opens: `/dev/null`. Only root
/// may make the device, but a file for everyone will do.
pub(crate) fn put_null(root: &str) -> Result<(), String> {
    let file = format!("{root}/dev/null");
    let put = || {
        fs::create_dir_all(format!("{root}/dev"))?;
        fs::write(&file, "")?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666))
    };
    put().map_err(|error| format!("{file}: {error}"))
}

/// No loader is asked for, so no library can be.
fn is_static(built: &str) -> Result<(), String> {
    let mut readelf = command("readelf --program-headers --wide");
    readelf.arg(built);
    let ran = run(readelf);
    if ran.ok && !ran.output.contains("INTERP") { Ok(()) } else { Err(ran.output) }
}

/// The program in the root.
fn inside(arguments: &[&str]) -> Command {
    let mut inside = match is_root() {
        true => program("chroot"),
        // A user may be root in a namespace of its own.
        false => command("unshare --map-root-user chroot"),
    };
    inside.args([ROOT, "/bowline"]).args(arguments).env_clear();
    // Where `chroot` is looked for.
    inside.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    inside
}

fn runs(arguments: &[&str]) -> Ran {
    run_within(inside(arguments), PATIENCE)
}

fn says(arguments: &[&str], expected: &str) -> Result<(), String> {
    let ran = runs(arguments);
    if ran.ok && ran.said().contains(expected) { Ok(()) } else { Err(ran.output) }
}

/// Calls a tool through a name and TLS: the parts that static programs often lack.
fn over_tls(built: &str) -> Result<(), String> {
    let arguments = ["serve", "counter", "--http", "127.0.0.1:{port}", "--allow-host", HOST];
    let server = Server::start(built, &arguments, "target/platforms")?;
    let port = server.url("").rsplit(':').next().unwrap_or_default().to_owned();
    let mut openssl = command(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2",
    );
    let (certificate, key) = (format!("{ROOT}/ca.pem"), "target/platforms/tls.key");
    openssl.args(["-subj", &format!("/CN={HOST}"), "-addext"]);
    openssl.args([&format!("subjectAltName=DNS:{HOST}"), "-addext", "basicConstraints=CA:FALSE"]);
    openssl.args(["-keyout", key, "-out", &certificate]);
    let made = run(openssl);
    if !made.ok {
        return Err(made.output);
    }
    let tls = Tls::start(&certificate, key, &port)?;
    fs::write(format!("{ROOT}/etc/hosts"), format!("127.0.0.1 {HOST}\n"))
        .map_err(|error| error.to_string())?;
    let url = format!("https://{HOST}:{}/mcp", tls.port);
    says(&["call", "--ca", "/ca.pem", &url, "increment"], "1\n")?;
    // A certificate is checked: without ours, there is none to trust in this root.
    let ran = runs(&["call", &url, "increment"]);
    if ran.ok || !ran.said().contains("certificate") {
        return Err(format!("nobody vouches for this certificate:\n{}", ran.output));
    }
    server.stop()
}

/// TLS in front of the server, until it is dropped.
struct Tls {
    child: Child,
    port: String,
}

impl Tls {
    fn start(certificate: &str, key: &str, port: &str) -> Result<Self, String> {
        let said = |error: std::io::Error| format!("python3: {error}");
        let mut python = command("python3 packaging/platforms/tls.py");
        python.args([certificate, key, port]).stdout(Stdio::piped());
        let mut tls = Self { child: python.spawn().map_err(said)?, port: String::new() };
        let output = tls.child.stdout.take().expect("it is piped");
        let (told, port) = mpsc::channel();
        thread::spawn(move || {
            let mut line = String::new();
            let read = BufReader::new(output).read_line(&mut line);
            let _ = told.send(read.map(|_| line));
        });
        // Without an end of its line, it has ended.
        let line = port.recv_timeout(PATIENCE).map_err(|_| "tls.py prints no port")?;
        line.map_err(said)?.trim_end_matches('\n').clone_into(&mut tls.port);
        if tls.port.is_empty() { Err("tls.py ended at once".to_owned()) } else { Ok(tls) }
    }
}

impl Drop for Tls {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
