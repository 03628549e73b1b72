//! A running program that is measured. It is killed on drop.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::{sleep, timeout};

use crate::callgrind;
use crate::machine::{Cpu, resident};

/// The time limit for anything that is not measured.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A program and its arguments.
#[derive(Debug, Clone)]
pub(crate) struct Line(pub(crate) Vec<String>);

impl Line {
    pub(crate) fn new(words: &[&str]) -> Self {
        Self(words.iter().map(|word| (*word).to_owned()).collect())
    }

    /// Adds arguments.
    pub(crate) fn and(&self, words: &[&str]) -> Self {
        let mut line = self.clone();
        line.0.extend(words.iter().map(|word| (*word).to_owned()));
        line
    }

    /// The whole command line as arguments of another program.
    pub(crate) fn under(&self, words: &[&str]) -> Self {
        let mut line = Self::new(words);
        line.0.extend_from_slice(&self.0);
        line
    }
}

/// A running program.
pub(crate) struct Program {
    child: Child,
    pid: u32,
}

impl Program {
    /// Starts a program to talk to over its standard streams.
    pub(crate) fn pipes(line: &Line) -> Result<(Self, ChildStdin, ChildStdout), String> {
        let mut program = Self::start(line, true)?;
        let streams = (program.child.stdin.take(), program.child.stdout.take());
        match streams {
            (Some(input), Some(output)) => Ok((program, input, output)),
            _ => Err(format!("{} has no standard streams", line.0[0])),
        }
    }

    /// Starts a server on a free port, its last argument, and waits until it listens.
    pub(crate) async fn listening(line: &Line) -> Result<(Self, SocketAddr), String> {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let address = free.and_then(|free| free.local_addr()).map_err(|error| error.to_string())?;
        let port = address.port().to_string();
        let words = line.0.iter().map(String::as_str);
        let words: Vec<&str> = words.map(|word| if word == PORT { &port } else { word }).collect();
        let mut program = Self::start(&Line::new(&words), false)?;
        for _ in 0..3_000 {
            if TcpStream::connect(address).is_ok() {
                return Ok((program, address));
            }
            if let Ok(Some(status)) = program.child.try_wait() {
                return Err(format!("{} ended: {status}", words.join(" ")));
            }
            sleep(Duration::from_millis(20)).await;
        }
        Err(format!("{} does not listen on {address}", words.join(" ")))
    }

    fn start(line: &Line, has_pipes: bool) -> Result<Self, String> {
        let said = |error: std::io::Error| format!("{}: {error}", line.0.join(" "));
        let stream = |is_piped| if is_piped { Stdio::piped() } else { Stdio::null() };
        let mut command = Command::new(&line.0[0]);
        command.args(&line.0[1..]).kill_on_drop(true);
        command.stdin(stream(has_pipes)).stdout(stream(has_pipes));
        // Other servers may write more there than anyone reads in time.
        command.stderr(stream(line.0[0] == callgrind::PROGRAM));
        let child = command.spawn().map_err(said)?;
        let pid = child.id().ok_or_else(|| format!("{} has exited", line.0.join(" ")))?;
        Ok(Self { child, pid })
    }

    pub(crate) fn cpu(&self) -> Result<Cpu, String> {
        Cpu::of(self.pid)
    }

    pub(crate) fn resident(&self) -> Result<u64, String> {
        resident(self.pid)
    }

    /// Tells it to exit, and returns its standard error.
    pub(crate) async fn end(self) -> Result<String, String> {
        if let Some(pid) = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw) {
            // It may have exited already.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        self.wait().await
    }

    /// Waits until it exits on its own, and returns its standard error.
    pub(crate) async fn wait(self) -> Result<String, String> {
        let ended = timeout(PATIENCE, self.child.wait_with_output()).await;
        let output = ended.map_err(|_| "a program does not exit".to_owned())?;
        let output = output.map_err(|error| error.to_string())?;
        Ok(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Stands for a free port.
pub(crate) const PORT: &str = "{port}";
