//! `bowline mock`: a server that answers as a recorded one did.

use std::net::SocketAddr;
use std::path::PathBuf;

use bowline::Server;
use bowline::proxy::ProxyError;
use bowline_gateway::mock::Mock as Answers;
use bowline_web::Host;
use clap::Args;
use tokio::net::TcpListener;

use super::export::read;
use crate::failure::{Code, Failure};
use crate::screen::{OutputArgs, Screen};
use crate::session::told_to_stop;

/// Serve the answers of a recorded session, on standard input and output or over HTTP
///
/// Clients of every revision are served, whatever the recorded one was. A request gets the recorded
/// answer to the same method and parameters, `_meta` aside: the first time the first one, and so
/// on; the last one is repeated. What the server asked and reported before it answered is asked and
/// reported again; the answers to its questions make no difference. What was not recorded is an
/// error.
#[derive(Args)]
pub(crate) struct Mock {
    /// The session file
    file: PathBuf,

    /// Serve HTTP at this address of this machine
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,

    /// Take as long for each answer as the recorded server did
    #[arg(long)]
    timing: bool,
}

impl Mock {
    pub(crate) async fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let screen = Screen::new(root);
        let answers = Answers::new(&read(&self.file, &screen)?, self.timing);
        let Some(address) = self.http else {
            let server = answers.server_for_one().await.map_err(|error| self.unusable(error))?;
            let served = server.serve_stdio().await;
            return served.map_err(|error| Failure::new(Code::Unreachable, error.to_string()));
        };
        if !Host::Address(address.ip()).is_loopback() {
            let what = format!("--http {address} can be reached from other machines");
            return Err(Failure::usage(what).with_remedy("use 127.0.0.1"));
        }
        let wrong = |error: std::io::Error| Failure::usage(format!("--http {address}: {error}"));
        let listener = TcpListener::bind(address).await.map_err(wrong)?;
        let own = listener.local_addr().map_err(wrong)?;
        let server = answers.server().await.map_err(|error| self.unusable(error))?;
        screen.note(&format!("serving the recording at http://{own}/mcp"));
        let served = Server::http(server).serve_until(listener, told_to_stop()).await;
        served.map_err(|error| Failure::new(Code::Unreachable, error.to_string()))
    }

    fn unusable(&self, error: ProxyError) -> Failure {
        let why = Failure::from(error).what;
        let what = format!("{} cannot be served: {why}", self.file.display());
        Failure::usage(what).with_remedy("`bowline show` displays what was recorded")
    }
}
