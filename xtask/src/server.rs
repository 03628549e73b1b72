//! The server under test, running.

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// How often to look whether a server does what it is to do: 30 seconds in all, which is longer
/// than one gives its clients when it ends, and than an interpreter takes to start beside others.
const LOOKS: u32 = 600;
const PAUSE: Duration = Duration::from_millis(50);

/// A server that ends when this is dropped.
pub(crate) struct Server {
    child: Child,
    port: u16,
}

impl Server {
    /// Starts it on a free port, which takes the place of `{port}` in its arguments, and waits
    /// until it listens. What it says goes to a file in `folder`, named after it.
    pub(crate) fn start(program: &str, arguments: &[&str], folder: &str) -> Result<Self, String> {
        let name = Path::new(program).file_name().unwrap_or_default();
        let log = Path::new(folder).join(name).with_extension("log");
        Self::launch(&log, |port| {
            let mut command = Command::new(program);
            command.args(arguments.iter().map(|it| it.replace("{port}", &port.to_string())));
            command
        })
    }

    /// Starts what `command` makes of a free port, and waits until it listens. What it says goes to
    /// the file `log`.
    pub(crate) fn launch(log: &Path, command: impl Fn(u16) -> Command) -> Result<Self, String> {
        let said = |error: std::io::Error| format!("{}: {error}", log.display());
        let file = File::create(log).map_err(said)?;
        let port = free_port().map_err(said)?;
        let mut command = command(port);
        let program = command.get_program().to_string_lossy().into_owned();
        let said = |error: std::io::Error| format!("{program}: {error}");
        // It may look whether somebody is there.
        command.stdin(Stdio::null()).stdout(file.try_clone().map_err(said)?).stderr(file);
        let mut server = Self { child: command.spawn().map_err(said)?, port };
        for _ in 0..LOOKS {
            if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
                return Ok(server);
            }
            if server.child.try_wait().is_ok_and(|ended| ended.is_some()) {
                break;
            }
            thread::sleep(PAUSE);
        }
        let log = std::fs::read_to_string(log).unwrap_or_default();
        Err(format!("{program} does not listen on port {port}\n\n{log}"))
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Asks it to end, which it must do soon and without an error.
    pub(crate) fn stop(mut self) -> Result<(), String> {
        let said = |error: std::io::Error| format!("the server: {error}");
        if let Some(status) = self.child.try_wait().map_err(said)? {
            return Err(format!("the server ended before it was asked to: {status}"));
        }
        let kill = format!("kill -TERM {}", self.child.id());
        Command::new("sh").args(["-c", &kill]).status().map_err(said)?;
        for _ in 0..LOOKS {
            match self.child.try_wait().map_err(said)? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(format!("the server ended badly: {status}")),
                None => thread::sleep(PAUSE),
            }
        }
        Err(format!("the server did not end within {:?} of SIGTERM", LOOKS * PAUSE))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that nobody listens on. Somebody else may take it first, but hardly ever does.
pub(crate) fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
