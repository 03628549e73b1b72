//! Serves on standard input and output or over HTTP, as the arguments say.

use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::process::ExitCode;

use bowline::{Server, stop_signal, with_causes};
use bowline_web::Host;
use tokio::net::TcpListener;

use crate::{Guide, ServeArgs, start_log};

/// The exit code for usage errors, as in most programs and in `clap`.
const USAGE: u8 = 2;

/// Runs a server as its arguments say, until the client disconnects or the process is told to stop.
///
/// It serves over HTTP with `--http`, and otherwise on standard input and output. Started in a
/// terminal, it prints what it is and how to connect a client. The exit code is 0 on success, 2 for
/// usage errors and 1 for all other errors, which are reported on standard error.
pub async fn run(name: &str, server: Server, args: ServeArgs) -> ExitCode {
    if args.http.is_none() && std::io::stdin().is_terminal() {
        return tell(&guide(name, &server).text());
    }
    if let Err(problem) = start_log(args.log_level) {
        complain(name, &problem);
        return ExitCode::from(USAGE);
    }
    if let Some(problem) = args.http.and_then(|it| exposed(it, args.allow_unauthenticated)) {
        complain(name, &problem);
        return ExitCode::from(USAGE);
    }
    let served = match args.http {
        Some(address) => serve_http(name, server, address, &args.allow_host).await,
        None => server.serve_stdio().await.map_err(|error| with_causes(&error)),
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            complain(name, &problem);
            ExitCode::FAILURE
        }
    }
}

fn guide(name: &str, server: &Server) -> Guide {
    let info = server.info();
    let about = info.description.as_ref().or(info.title.as_ref()).unwrap_or(&info.name);
    let program = std::env::current_exe();
    Guide {
        name: name.to_owned(),
        about: about.clone(),
        tools: server.registry().tool_names(),
        program: program.map_or_else(|_| name.to_owned(), |path| path.display().to_string()),
        arguments: std::env::args().skip(1).collect(),
    }
}

async fn serve_http(
    name: &str,
    server: Server,
    address: SocketAddr,
    hosts: &[String],
) -> Result<(), String> {
    bowline::http::raise_file_limit();
    let listener = TcpListener::bind(address)
        .await
        .map_err(|error| format!("cannot listen on {address}: {error}"))?;
    let announce = |url: &str| complain(name, &format!("serving at {url}"));
    serve_on(listener, server, hosts, announce).await
}

/// Why a server without authorization must not listen on an address: other machines can reach it,
/// and nobody said that this is meant.
pub fn exposed(address: SocketAddr, is_allowed: bool) -> Option<String> {
    let is_exposed = !is_allowed && !Host::Address(address.ip()).is_loopback();
    is_exposed.then(|| {
        let port = address.port();
        format!(
            "--http {address}: other machines could reach this server, which asks for no token\n  \
             help: listen on 127.0.0.1:{port} behind a proxy that authenticates, or add \
             --allow-unauthenticated"
        )
    })
}

/// Serves over HTTP on a listener, for loopback and these host names. `announce` gets the URL once
/// the server is reachable and will stop on a signal.
///
/// # Errors
/// If a host name is invalid, or serving fails.
pub async fn serve_on(
    listener: TcpListener,
    server: Server,
    hosts: &[String],
    announce: impl FnOnce(&str),
) -> Result<(), String> {
    let mut http = server.http();
    for host in hosts {
        http = http.allow_host(host).map_err(|error| format!("--allow-host {host}: {error}"))?;
    }
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let stop = stop_signal();
    announce(&format!("http://{address}/mcp"));
    http.serve_until(listener, stop).await.map_err(|error| with_causes(&error))
}

/// Prints to standard output, when it is not used for the protocol.
pub fn tell(text: &str) -> ExitCode {
    // A reader that closed the pipe does not want the rest.
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

/// Prints a message to standard error, prefixed with the program's name.
pub fn complain(name: &str, text: &str) {
    // There is nowhere else to report a failure.
    let _ = writeln!(std::io::stderr(), "{name}: {text}");
}
