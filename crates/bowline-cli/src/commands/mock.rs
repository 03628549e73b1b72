//! `bowline mock`: a server that answers as a recorded one did.

use std::io::{BufRead, Write};
use std::net::SocketAddr;
use std::path::PathBuf;

use bowline_gateway::mock::Mock as Answers;
use clap::Args;
use tokio::net::TcpListener;

use super::export::read;
use crate::failure::{Code, Failure};
use crate::screen::{OutputArgs, Screen};
use crate::session::told_to_stop;

/// Serve the answers of a recorded session, on standard input and output or over HTTP
///
/// A request gets the recorded answer to the same method and parameters, `_meta` aside: the first
/// time the first one, and so on; the last one is repeated. What was not recorded is an error.
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
        match self.http {
            None => {
                let gone =
                    |error: std::io::Error| Failure::new(Code::Unreachable, error.to_string());
                on_stdio(&answers).map_err(gone)
            }
            Some(address) if !address.ip().is_loopback() => {
                let what = format!("--http {address} can be reached from other machines");
                Err(Failure::usage(what).with_remedy("use 127.0.0.1"))
            }
            Some(address) => {
                let wrong =
                    |error: std::io::Error| Failure::usage(format!("--http {address}: {error}"));
                let listener = TcpListener::bind(address).await.map_err(wrong)?;
                let own = listener.local_addr().map_err(wrong)?;
                screen.note(&format!("serving the recording at http://{own}/mcp"));
                answers.serve_until(listener, told_to_stop()).await.map_err(wrong)
            }
        }
    }
}

/// Answers line by line until the input ends. Nothing else happens meanwhile, so it may block.
fn on_stdio(answers: &Answers) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let Ok(message) = serde_json::from_str(&line?) else { continue };
        if let Some((answer, takes)) = answers.answer(&message) {
            std::thread::sleep(takes);
            out.write_all(format!("{answer}\n").as_bytes())?;
            out.flush()?;
        }
    }
    Ok(())
}
