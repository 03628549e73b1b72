//! A server under test.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// How often to poll a server: for 3 minutes in all, longer than a server waits for its clients
/// when it stops, and longer than an interpreter takes to start for the first time on a machine
/// that is busy with everything else.
const LOOKS: u32 = 3600;
const PAUSE: Duration = Duration::from_millis(50);

/// How often to start a server that exits at once.
const TRIES: u32 = 3;

/// How long the first answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why a server did not start.
enum Unready {
    /// It ended, perhaps because its port was taken.
    Ended(String),
    Never(String),
}

/// A server that ends when this is dropped.
pub(crate) struct Server {
    child: Child,
    port: u16,
}

impl Server {
    /// Starts it on a free port, which replaces `{port}` in its arguments, and waits until it
    /// answers. Its output goes to a file in `folder`, named after it.
    pub(crate) fn start(program: &str, arguments: &[&str], folder: &str) -> Result<Self, String> {
        let name = Path::new(program).file_name().unwrap_or_default();
        let log = Path::new(folder).join(name).with_extension("log");
        Self::launch(&log, |port| {
            let mut command = Command::new(program);
            command.args(arguments.iter().map(|it| it.replace("{port}", &port.to_string())));
            command
        })
    }

    /// Starts the command for a free port, and waits until the server answers. Its output goes to
    /// the file `log`.
    ///
    /// Another process may take the port first; a server that exits at once is started again on
    /// another port.
    pub(crate) fn launch(log: &Path, command: impl Fn(u16) -> Command) -> Result<Self, String> {
        let mut launched = Self::launch_once(log, &command);
        for _ in 1..TRIES {
            if !matches!(launched, Err(Unready::Ended(_))) {
                break;
            }
            launched = Self::launch_once(log, &command);
        }
        launched.map_err(|(Unready::Ended(why) | Unready::Never(why))| why)
    }

    fn launch_once(log: &Path, command: impl Fn(u16) -> Command) -> Result<Self, Unready> {
        let said = |error: std::io::Error| Unready::Never(format!("{}: {error}", log.display()));
        let file = File::create(log).map_err(said)?;
        let port = free_port().map_err(said)?;
        let mut command = command(port);
        let program = command.get_program().to_string_lossy().into_owned();
        let said = |error: std::io::Error| Unready::Never(format!("{program}: {error}"));
        // Some servers check whether standard input is open.
        command.stdin(Stdio::null()).stdout(file.try_clone().map_err(said)?).stderr(file);
        let mut server = Self { child: command.spawn().map_err(said)?, port };
        let log = || std::fs::read_to_string(log).unwrap_or_default();
        for _ in 0..LOOKS {
            let answers = answers(port);
            if let Some(status) = server.child.try_wait().map_err(said)? {
                let why = format!("{program} on port {port} ended: {status}\n\n{}", log());
                return Err(Unready::Ended(why));
            }
            if answers {
                return Ok(server);
            }
            thread::sleep(PAUSE);
        }
        Err(Unready::Never(format!("{program} does not answer on port {port}\n\n{}", log())))
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Whether it still runs, and its log.
    pub(crate) fn report(&mut self, log: &Path) -> String {
        let state = match self.child.try_wait() {
            Ok(None) => "runs".to_owned(),
            Ok(Some(status)) => format!("has ended: {status}"),
            Err(error) => format!("cannot be asked: {error}"),
        };
        let log = std::fs::read_to_string(log).unwrap_or_default();
        format!("the server {state}; its log:\n{log}\n")
    }

    /// Stops it, which must succeed soon and without an error.
    pub(crate) fn stop(mut self) -> Result<(), String> {
        let said = |error: std::io::Error| format!("the server: {error}");
        if let Some(status) = self.child.try_wait().map_err(said)? {
            return Err(format!("the server ended on its own: {status}"));
        }
        let kill = format!("kill -TERM {}", self.child.id());
        Command::new("sh").args(["-c", &kill]).status().map_err(said)?;
        for _ in 0..LOOKS {
            match self.child.try_wait().map_err(said)? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(format!("the server failed: {status}")),
                None => thread::sleep(PAUSE),
            }
        }
        Err(format!("the server did not end within {:?} of SIGTERM", LOOKS * PAUSE))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether an HTTP server answers on the port, with any status.
///
/// An accepted connection proves nothing: a process forked during the search for a free port holds
/// the listener until it executes its program.
fn answers(port: u16) -> bool {
    let ask = || {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let head = format!("GET /nothing HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n");
        stream.write_all(head.as_bytes())?;
        let mut start = [0; 5];
        stream.read_exact(&mut start)?;
        Ok::<_, std::io::Error>(start == *b"HTTP/")
    };
    ask().unwrap_or(false)
}

/// A free port. Another process may take it first, but hardly ever does.
pub(crate) fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A port where one connection is accepted, read from, and answered with these bytes.
    fn port(answer: &'static [u8]) -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut [0; 32]).unwrap();
            stream.write_all(answer).unwrap();
        });
        port
    }

    #[test]
    fn who_only_takes_connections_does_not_answer() {
        assert!(!answers(port(b"")));
        assert!(!answers(port(b"220 mail\r\n")));
        assert!(answers(port(b"HTTP/1.1 404 \r\n")));
    }

    #[test]
    fn what_ends_at_once_is_started_again_and_then_given_up() {
        let log = std::env::temp_dir().join(format!("server-{}.log", std::process::id()));
        let started = std::cell::Cell::new(0);
        let launched = Server::launch(&log, |_| {
            started.set(started.get() + 1);
            let mut command = Command::new("sh");
            command.args(["-c", "echo the port is taken; exit 7"]);
            command
        });
        std::fs::remove_file(&log).unwrap();
        let why = launched.err().expect("nobody listens");
        assert!(
            why.contains("ended: exit status: 7") && why.contains("the port is taken"),
            "{why}"
        );
        assert_eq!(started.get(), TRIES);
    }
}
