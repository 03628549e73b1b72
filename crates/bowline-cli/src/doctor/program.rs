//! Is the program there, and can this system start it? Looked up as the system does, without
//! starting anything.

mod head;

use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use self::head::{Head, inspect};
use super::report::Diagnosis;

/// A program to look for, and from where.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) program: String,
    /// The `PATH` that counts: that of the child.
    pub(crate) path: OsString,
    pub(crate) home: Option<PathBuf>,
    /// The working directory of the child; this process's own if not given.
    pub(crate) directory: Option<PathBuf>,
}

/// A program that can be started, as far as can be told from outside.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) seen: String,
    /// What may keep others from finding it.
    pub(crate) advice: Option<Diagnosis>,
}

/// What is wrong: what was seen, and why.
pub(crate) type Fault = (String, Diagnosis);

impl Wanted {
    /// Whether the working directory is one.
    pub(crate) fn check_directory(&self) -> Result<Option<String>, Fault> {
        let Some(directory) = &self.directory else { return Ok(None) };
        let shown = directory.display();
        let problem = match fs::metadata(directory) {
            Ok(metadata) if metadata.is_dir() => return Ok(Some(shown.to_string())),
            Ok(_) => "is not a directory".to_owned(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                "does not exist".to_owned()
            }
            Err(error) => format!("cannot be used: {error}"),
        };
        let cause = format!("the working directory {shown} {problem}");
        Err((
            format!("{shown} {problem}"),
            Diagnosis::unreachable(
                cause,
                "Correct --cwd (or \"cwd\" in the configuration), or create the directory.",
            ),
        ))
    }

    /// Finds the program.
    pub(crate) fn find(&self) -> Result<Found, Fault> {
        let program = self.program.as_str();
        if program.contains(['/', '\\']) {
            let at = self.from(Path::new(program));
            let found = self.check(&at)?;
            return Ok(Found { seen: found, advice: None });
        }
        let mut refused = None;
        for directory in std::env::split_paths(&self.path) {
            let at = self.from(&directory).join(program);
            if !at.is_file() {
                continue;
            }
            match self.check(&at) {
                Ok(seen) => return Ok(Found { seen, advice: self.trap(&at) }),
                // The system goes on looking, and so do we.
                Err(fault) => refused = refused.or(Some(fault)),
            }
        }
        Err(refused.unwrap_or_else(|| self.missing()))
    }

    fn from(&self, path: &Path) -> PathBuf {
        self.directory.as_deref().map_or_else(|| path.to_owned(), |directory| directory.join(path))
    }

    /// Whether a file can be started.
    fn check(&self, at: &Path) -> Result<String, Fault> {
        let shown = at.display().to_string();
        let fault = |seen: String, cause: String, fix: String| {
            Err((seen, Diagnosis::unreachable(cause, fix)))
        };
        let metadata = match fs::metadata(at) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(self.missing());
            }
            Err(error) => {
                let cause = format!("{shown} cannot be looked at: {error}");
                return fault(
                    error.to_string(),
                    cause,
                    "Check the permissions of the directories above it.".to_owned(),
                );
            }
        };
        if metadata.is_dir() {
            let cause = format!("{shown} is a directory, not a program");
            return fault(
                format!("{shown} is a directory"),
                cause,
                "Name the program inside it.".to_owned(),
            );
        }
        let bytes = beginning(at);
        if !is_executable(&metadata) {
            let cause = format!("{shown} is not marked as executable");
            let by_hand =
                head::interpreter_for(at).map(|name| format!(", or start it as `{name} {shown}`"));
            let fix = format!("chmod +x {shown}{}.", by_hand.unwrap_or_default());
            return fault(format!("{shown} is there, without permission to execute"), cause, fix);
        }
        let head = inspect(&bytes);
        match self.check_head(&head, &shown) {
            Some((cause, fix)) => fault(
                format!("{shown} begins with {}", super::seen::quoted(first_line(&bytes))),
                cause,
                fix,
            ),
            None => Ok(match head {
                Head::Script { interpreter, .. } => format!("{shown}, a script for {interpreter}"),
                _ => shown,
            }),
        }
    }

    fn check_head(&self, head: &Head, shown: &str) -> Option<(String, String)> {
        match head {
            Head::Script { interpreter, has_return: true, .. } => Some((
                format!(
                    "the first line of {shown} ends with a Windows line end, so the system looks for {interpreter:?} followed by a carriage return"
                ),
                format!("Save it with Unix line ends: sed -i 's/\\r$//' {shown}"),
            )),
            Head::Script { interpreter, argument, .. } => {
                self.check_interpreter(interpreter, argument.as_deref(), shown)
            }
            Head::MarkedScript => Some((
                format!(
                    "{shown} begins with a byte order mark before #!, so the system does not see its interpreter"
                ),
                "Save it as UTF-8 without a byte order mark.".to_owned(),
            )),
            Head::Foreign(machine) => Some((
                format!(
                    "{shown} is built for {machine}, and this machine is {} {}",
                    std::env::consts::OS,
                    std::env::consts::ARCH
                ),
                "Use a build for this machine.".to_owned(),
            )),
            Head::Empty => {
                Some((format!("{shown} is an empty file"), "Install it again.".to_owned()))
            }
            Head::Other => None,
        }
    }

    /// Whether the interpreter that a script names is there.
    fn check_interpreter(
        &self,
        interpreter: &str,
        argument: Option<&str>,
        shown: &str,
    ) -> Option<(String, String)> {
        if !Path::new(interpreter).is_file() {
            return Some((
                format!("the interpreter that {shown} names, {interpreter}, does not exist"),
                "Install it, or correct the first line of the script.".to_owned(),
            ));
        }
        let by_env = interpreter.ends_with("/env");
        let name = argument.filter(|_| by_env)?;
        let name =
            name.split_whitespace().find(|word| !word.starts_with('-') && !word.contains('='))?;
        let is_there = name.contains('/') || self.in_path(name);
        (!is_there).then(|| {
            (
                format!("the interpreter that {shown} names, {name}, is not in PATH"),
                format!(
                    "Install {name}, or start the script with the full path of the interpreter."
                ),
            )
        })
    }

    fn in_path(&self, name: &str) -> bool {
        std::env::split_paths(&self.path).any(|directory| {
            let at = self.from(&directory).join(name);
            fs::metadata(at).is_ok_and(|metadata| metadata.is_file() && is_executable(&metadata))
        })
    }

    /// Nothing of that name: the usual reasons.
    fn missing(&self) -> Fault {
        let program = self.program.as_str();
        let is_path = program.contains('/');
        let seen = match is_path {
            true => format!("{} does not exist", self.from(Path::new(program)).display()),
            false => format!(
                "no {program:?} in the {} directories of PATH",
                std::env::split_paths(&self.path).count()
            ),
        };
        let fault = |cause: String, fix: String| (seen.clone(), Diagnosis::unreachable(cause, fix));
        if program.trim().is_empty() {
            return fault(
                "the command is empty".to_owned(),
                "Give a program after `--`, or \"command\" in the configuration.".to_owned(),
            );
        }
        if program.starts_with('~') || program.contains('$') {
            return fault(
                format!("{program:?} is taken literally: only a shell replaces ~ and variables"),
                "Write the full path.".to_owned(),
            );
        }
        if let Some((first, rest)) = program.split_once(char::is_whitespace)
            && (self.in_path(first) || self.from(Path::new(first)).is_file())
        {
            return fault(
                format!("the program and its arguments are one word: {program:?}"),
                format!(
                    "Give them apart: {first} {rest} after `--`; in a configuration, \"command\": {first:?} and the rest in \"args\"."
                ),
            );
        }
        if let Some(at) = self.elsewhere() {
            return fault(
                format!("{program} is installed as {}, which is not in PATH", at.display()),
                format!("Give the full path, {}, or add its directory to PATH.", at.display()),
            );
        }
        let install = match program.rsplit('/').next().unwrap_or(program) {
            "npx" | "node" | "npm" => "Install Node.js, or give the full path of npx.",
            "uvx" | "uv" => "Install uv (https://docs.astral.sh/uv), or give the full path of uvx.",
            "docker" => "Install Docker, or give the full path of docker.",
            "python" if self.in_path("python3") => "Here it is called python3: use that name.",
            "python" | "python3" | "pip" | "pipx" => "Install Python, or give its full path.",
            "bun" | "bunx" => "Install Bun, or give its full path.",
            _ if is_path => "Check the path: it is relative to the working directory (--cwd).",
            _ => {
                "Install it, or give its full path. Desktop applications have a shorter PATH than a shell."
            }
        };
        fault(format!("{program} is not there"), install.to_owned())
    }

    /// Where programs are that shells find and others do not.
    fn elsewhere(&self) -> Option<PathBuf> {
        if self.program.contains('/') {
            return None;
        }
        let is_there = |directory: &PathBuf| directory.join(&self.program).is_file();
        self.usual().into_iter().find(is_there).map(|directory| directory.join(&self.program))
    }

    fn usual(&self) -> Vec<PathBuf> {
        let mut all: Vec<PathBuf> =
            ["/usr/local/bin", "/opt/homebrew/bin", "/usr/bin", "/snap/bin"]
                .map(PathBuf::from)
                .into();
        let Some(home) = &self.home else { return all };
        let below = [
            ".local/bin",
            ".cargo/bin",
            ".bun/bin",
            ".deno/bin",
            ".volta/bin",
            ".asdf/shims",
            ".pyenv/shims",
            ".nodenv/shims",
            "go/bin",
            "bin",
        ];
        all.extend(below.map(|part| home.join(part)));
        for versions in [".nvm/versions/node", ".local/share/fnm/node-versions"] {
            let entries = fs::read_dir(home.join(versions)).into_iter().flatten().flatten();
            all.extend(entries.flat_map(|entry| {
                [entry.path().join("bin"), entry.path().join("installation/bin")]
            }));
        }
        all
    }

    /// A program that only shells find.
    fn trap(&self, at: &Path) -> Option<Diagnosis> {
        let home = self.home.as_deref()?;
        let is_trap = at.starts_with(home) || at.starts_with("/opt/homebrew");
        is_trap.then(|| {
            Diagnosis::unreachable(
                format!(
                    "desktop applications start servers with a shorter PATH and may not find {}",
                    self.program
                ),
                format!("In their configuration give the full path: {}", at.display()),
            )
        })
    }
}

fn beginning(at: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Ok(file) = fs::File::open(at) {
        // What cannot be read may still be executed.
        let _ = file.take(512).read_to_end(&mut bytes);
    }
    bytes
}

fn first_line(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or_else(|| bytes.len().min(16));
    &bytes[..end]
}

#[cfg(unix)]
fn is_executable(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &fs::Metadata) -> bool {
    true
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
