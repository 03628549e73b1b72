//! A server as a child process: started in its own process group, its standard error drained, and
//! killed with all its descendants.

mod group;
mod program;
mod tail;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use tokio::process::Child;
use tokio::task::JoinHandle;
use tokio::time::timeout;

pub use self::group::ProcessGroup;
pub use self::program::{find_program, program_names};
use self::tail::Tail;
use super::connection::{Reader, Writer};
use super::error::{Exit, OpenError};
use super::limits::ClientLimits;
use super::notification::OnStderr;

/// A program to start, with its arguments, environment and working directory.
///
/// ```
/// use bowline::client::Command;
///
/// let server = Command::new("npx").args(["-y", "some-server"]).env("TOKEN", "secret");
/// ```
#[derive(Clone)]
pub struct Command {
    program: OsString,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, Option<OsString>)>,
    inherits: bool,
    directory: Option<PathBuf>,
}

impl Command {
    /// A program, found through `PATH` unless it is a path. On Windows, `npx` finds `npx.cmd` as
    /// well: see [`find_program`].
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self {
            program: program.as_ref().to_owned(),
            arguments: Vec::new(),
            environment: Vec::new(),
            inherits: true,
            directory: None,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|it| it.as_ref().to_owned()));
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.as_ref().to_owned(), Some(value.as_ref().to_owned())));
        self
    }

    /// Removes an environment variable.
    #[must_use]
    pub fn env_remove(mut self, name: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.as_ref().to_owned(), None));
        self
    }

    /// Starts with an empty environment instead of inheriting this process's.
    #[must_use]
    pub fn env_clear(mut self) -> Self {
        self.inherits = false;
        self.environment.clear();
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn current_dir(mut self, directory: impl AsRef<Path>) -> Self {
        self.directory = Some(directory.as_ref().to_owned());
        self
    }

    /// Identifies the command: the command line and the working directory, without the environment,
    /// which may hold secrets.
    pub(super) fn key(&self) -> String {
        format!("{:?} {:?} in {:?}", self.program, self.arguments, self.directory)
    }

    fn build(&self) -> tokio::process::Command {
        let path = self.environment.iter().rev().find(|(name, _)| name == "PATH");
        let path = path.and_then(|(_, value)| value.as_deref());
        let mut command = tokio::process::Command::new(find_program(&self.program, path));
        command.args(&self.arguments);
        if !self.inherits {
            command.env_clear();
        }
        for (name, value) in &self.environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(true);
        // Ctrl-C in a terminal must reach this process alone, and descendants must be found.
        ProcessGroup::lead(&mut command);
        command
    }

    /// Starts it.
    pub(super) fn spawn(
        &self,
        limits: &ClientLimits,
        on_stderr: Option<OnStderr>,
    ) -> Result<(Process, Reader, Writer), OpenError> {
        let program = self.program.to_string_lossy().into_owned();
        let failed = |problem: String| OpenError::Spawn { program: program.clone(), problem };
        let mut child = self.build().spawn().map_err(|error| failed(explain(&error)))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(failed("the process has no standard streams".to_owned()));
        };
        let tail = Tail::new(limits.stderr_lines, limits.stderr_line_length);
        let draining = tokio::spawn(tail.clone().drain(stderr, program, on_stderr));
        let group = ProcessGroup::of(&child);
        let process = Process { child, group, tail, draining, exit: None };
        Ok((process, Box::new(stdout), Box::new(stdin)))
    }
}

impl std::fmt::Debug for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Values of the environment may be secrets.
        let names: Vec<_> = self.environment.iter().map(|(name, _)| name).collect();
        f.debug_struct("Command")
            .field("program", &self.program)
            .field("arguments", &self.arguments)
            .field("environment", &names)
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

fn explain(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => {
            "the program or its working directory does not exist; check PATH".to_owned()
        }
        std::io::ErrorKind::PermissionDenied => "the file is not executable".to_owned(),
        _ => error.to_string(),
    }
}

/// A running server.
pub(super) struct Process {
    child: Child,
    group: ProcessGroup,
    tail: Tail,
    draining: JoinHandle<()>,
    exit: Option<Arc<Exit>>,
}

impl Process {
    /// Its id, until it has been reaped.
    pub(super) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits until the process itself has ended; its descendants may live on.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(super) async fn exited(&mut self) {
        if self.exit.is_none() {
            // A process that cannot be waited for has been reaped by somebody else.
            let _ = self.child.wait().await;
        }
    }

    /// Ends the process and all its descendants: waits, then sends TERM, then KILL. Standard input
    /// must be closed already.
    pub(super) async fn end(&mut self, limits: &ClientLimits) -> Arc<Exit> {
        if let Some(exit) = &self.exit {
            return Arc::clone(exit);
        }
        let mut status = timeout(limits.exit_grace, self.child.wait()).await.ok();
        if status.is_none() || self.group.is_alive() {
            self.group.terminate();
            let term = async {
                let status = self.child.wait().await;
                self.group.gone().await;
                status
            };
            status = timeout(limits.term_grace, term).await.ok().or(status);
        }
        self.group.kill();
        let status = match status {
            Some(status) => status,
            None => self.child.wait().await,
        };
        // The pipe ends with its last writer, and all of them are dead.
        let draining = &mut self.draining;
        if timeout(limits.term_grace, draining).await.is_err() {
            self.draining.abort();
        }
        let (code, words) = match status {
            Ok(status) => (status.code(), status.to_string()),
            Err(error) => (None, format!("unknown: {error}")),
        };
        let exit = Arc::new(Exit { code, status: words, stderr: self.tail.lines() });
        self.exit = Some(Arc::clone(&exit));
        exit
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.exit.is_none() {
            self.group.kill();
            self.draining.abort();
        }
    }
}
