//! Whether the program exists and this system can start it, found out without starting anything.

mod head;

use std::env::{consts, split_paths};
use std::ffi::OsString;
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use bowline::client::program_names;
use tokio::time::Instant;

use self::head::{Head, inspect};
use super::report::{Diagnosis, Step, unreachable};
use super::seen::quoted;

/// A program to look for.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) program: String,
    /// The child's `PATH`.
    pub(crate) path: OsString,
    pub(crate) home: Option<PathBuf>,
    /// The child's working directory, if it is not that of this process.
    pub(crate) directory: Option<PathBuf>,
}

/// What was seen, and why that is wrong.
type Fault = (String, Diagnosis);

/// A fault whose cause says what was seen.
fn fault(cause: String, fix: impl Into<String>) -> Fault {
    (cause.clone(), unreachable(cause).fix(fix))
}

impl Wanted {
    /// Checks the working directory.
    pub(crate) fn check_directory(&self) -> Result<(Step, ()), Step> {
        let began = Instant::now();
        let directory = self.directory.clone().unwrap_or_default();
        let shown = directory.display();
        let problem = match fs::metadata(&directory) {
            Ok(metadata) if metadata.is_dir() => {
                return Ok((Step::ok("directory", shown.to_string(), began), ()));
            }
            Ok(_) => "is not a directory".to_owned(),
            Err(error) if error.kind() == ErrorKind::NotFound => "does not exist".to_owned(),
            Err(error) => format!("cannot be used: {error}"),
        };
        let cause = format!("the working directory {shown} {problem}");
        let fix = "Correct --cwd (or \"cwd\" in the configuration), or create the directory.";
        Err(Step::ok("directory", cause.as_str(), began).fail(unreachable(cause).fix(fix)))
    }

    /// Finds the program the way the system does.
    pub(crate) fn find(&self) -> Result<(Step, ()), Step> {
        let began = Instant::now();
        match self.locate() {
            Ok((seen, advice)) => Ok((Step::ok("program", seen, began).warn(advice), ())),
            Err((seen, diagnosis)) => Err(Step::ok("program", seen, began).fail(diagnosis)),
        }
    }

    /// The program, and why other clients may not find it.
    fn locate(&self) -> Result<(String, Option<Diagnosis>), Fault> {
        if self.program.contains(['/', '\\']) {
            let named = program_names(&self.program).into_iter();
            let mut paths = named.map(|name| self.from(Path::new(&name)));
            let path = paths.find(|path| path.is_file());
            let path = path.unwrap_or_else(|| self.from(Path::new(&self.program)));
            return Ok((self.check(&path)?, None));
        }
        let mut unusable = None;
        for at in self.candidates(&self.program).filter(|at| at.is_file()) {
            match self.check(&at) {
                Ok(seen) => return Ok((seen, self.trap(&at))),
                // The system tries the next directory, too.
                Err(fault) => unusable = unusable.or(Some(fault)),
            }
        }
        Err(unusable.unwrap_or_else(|| self.missing()))
    }

    fn from(&self, path: &Path) -> PathBuf {
        self.directory.as_deref().map_or_else(|| path.to_owned(), |directory| directory.join(path))
    }

    /// Where the system looks for a program.
    fn candidates(&self, name: &str) -> impl Iterator<Item = PathBuf> {
        let names = program_names(name);
        split_paths(&self.path).flat_map(move |directory| {
            let directory = self.from(&directory);
            names.iter().map(move |name| directory.join(name)).collect::<Vec<_>>()
        })
    }

    fn in_path(&self, name: &str) -> bool {
        let is_program = |at: PathBuf| {
            fs::metadata(at).is_ok_and(|metadata| metadata.is_file() && is_executable(&metadata))
        };
        self.candidates(name).any(is_program)
    }

    /// Checks that a file can be started, and describes it.
    fn check(&self, at: &Path) -> Result<String, Fault> {
        let shown = at.display().to_string();
        let metadata = fs::metadata(at).map_err(|error| match error.kind() {
            ErrorKind::NotFound => self.missing(),
            _ => fault(
                format!("{shown} cannot be inspected: {error}"),
                "Check the permissions of the directories above it.",
            ),
        })?;
        if metadata.is_dir() {
            let cause = format!("{shown} is a directory, not a program");
            return Err(fault(cause, "Name the program inside it."));
        }
        if !is_executable(&metadata) {
            let by_hand = head::interpreter_for(at)
                .map(|name| format!(", or start it as `{name} {shown}`"))
                .unwrap_or_default();
            let fix = format!("Run `chmod +x {shown}`{by_hand}.");
            return Err(fault(format!("{shown} is not marked as executable"), fix));
        }
        let bytes = beginning(at);
        let head = inspect(&bytes);
        if let Some(diagnosis) = self.check_head(&head, &shown) {
            let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let length = if line.len() < bytes.len() { line.len() } else { line.len().min(16) };
            return Err((format!("{shown} begins with {}", quoted(&line[..length])), diagnosis));
        }
        Ok(match head {
            Head::Script { interpreter, .. } => format!("{shown}, a script for {interpreter}"),
            _ => shown,
        })
    }

    /// Why the system cannot run a file that begins like this.
    fn check_head(&self, head: &Head, shown: &str) -> Option<Diagnosis> {
        Some(match head {
            Head::Other => return None,
            Head::Script { interpreter, has_return: true, .. } => unreachable(format!(
                "the first line of {shown} ends with a Windows line ending, so the system looks \
                 for {interpreter:?} followed by a carriage return"
            ))
            .fix(format!("Save it with Unix line endings: sed -i 's/\\r$//' {shown}")),
            Head::Script { interpreter, .. } if !Path::new(interpreter).is_file() => {
                unreachable(format!("the interpreter of {shown}, {interpreter}, does not exist"))
                    .fix("Install it, or correct the first line of the script.")
            }
            Head::Script { interpreter, argument, .. } => {
                let words = argument.as_deref().filter(|_| interpreter.ends_with("/env"))?;
                let is_option = |word: &str| word.starts_with('-') || word.contains('=');
                let name = words.split_whitespace().find(|word| !is_option(word))?;
                if name.contains('/') || self.in_path(name) {
                    return None;
                }
                unreachable(format!("the interpreter of {shown}, {name}, is not in PATH"))
                    .fix(format!("Install {name}, or start the script with its full path."))
            }
            Head::MarkedScript => {
                unreachable(format!("{shown} has a byte order mark before #!, which hides it"))
                    .fix("Save it as UTF-8 without a byte order mark.")
            }
            Head::Foreign(machine) => {
                let here = format!("{} {}", consts::OS, consts::ARCH);
                unreachable(format!("{shown} is built for {machine}, but this machine is {here}"))
                    .fix("Use a build for this machine.")
            }
            Head::Empty => {
                unreachable(format!("{shown} is an empty file")).fix("Install it again.")
            }
        })
    }

    fn missing(&self) -> Fault {
        let program = self.program.as_str();
        let seen = if program.contains('/') {
            format!("{} does not exist", self.from(Path::new(program)).display())
        } else {
            let count = split_paths(&self.path).count();
            format!("no {program:?} in the {count} directories of PATH")
        };
        (seen, self.why_missing())
    }

    /// Why there is no such program: the usual reasons.
    fn why_missing(&self) -> Diagnosis {
        let program = self.program.as_str();
        if program.trim().is_empty() {
            return unreachable("the command is empty")
                .fix("Give a program after `--`, or \"command\" in the configuration.");
        }
        if program.starts_with('~') || program.contains('$') {
            let cause = "is used literally: only a shell expands ~ and variables";
            return unreachable(format!("{program:?} {cause}")).fix("Write the full path.");
        }
        if let Some((first, rest)) = program.split_once(char::is_whitespace)
            && (self.in_path(first) || self.from(Path::new(first)).is_file())
        {
            let cause = format!("the program and its arguments are one word: {program:?}");
            return unreachable(cause).fix(format!(
                "Separate them: {first} {rest} after `--`; in a configuration, \"command\": \
                 {first:?} and the rest in \"args\"."
            ));
        }
        if let Some(at) = self.elsewhere() {
            let at = at.display();
            return unreachable(format!("{program} is installed as {at}, which is not in PATH"))
                .fix(format!("Give the full path, {at}, or add its directory to PATH."));
        }
        let install = match program.rsplit('/').next().unwrap_or(program) {
            "npx" | "node" | "npm" => "Install Node.js, or give the full path of npx.",
            "uvx" | "uv" => "Install uv (https://docs.astral.sh/uv), or give the full path of uvx.",
            "docker" => "Install Docker, or give the full path of docker.",
            "python" if self.in_path("python3") => "It is called python3 here: use that name.",
            "python" | "python3" | "pip" | "pipx" => "Install Python, or give its full path.",
            "bun" | "bunx" => "Install Bun, or give its full path.",
            _ if program.contains('/') => {
                "Check the path: it is relative to the working directory (--cwd)."
            }
            _ => {
                "Install it, or give its full path. Desktop applications have a shorter PATH than \
                 a shell."
            }
        };
        unreachable(format!("{program} does not exist")).fix(install)
    }

    /// The program in a directory that shells often have in `PATH`, and other clients do not.
    fn elsewhere(&self) -> Option<PathBuf> {
        const SYSTEM: &str = "/usr/local/bin /opt/homebrew/bin /usr/bin /snap/bin";
        const HOME: &str = ".local/bin .cargo/bin .bun/bin .deno/bin .volta/bin .asdf/shims \
                            .pyenv/shims .nodenv/shims go/bin bin";
        const VERSIONS: [&str; 2] = [".nvm/versions/node", ".local/share/fnm/node-versions"];
        if self.program.contains('/') {
            return None;
        }
        let mut all: Vec<PathBuf> = SYSTEM.split(' ').map(PathBuf::from).collect();
        if let Some(home) = &self.home {
            all.extend(HOME.split(' ').map(|part| home.join(part)));
            for versions in VERSIONS {
                for version in fs::read_dir(home.join(versions)).into_iter().flatten().flatten() {
                    let version = version.path();
                    all.extend([version.join("bin"), version.join("installation/bin")]);
                }
            }
        }
        all.into_iter().map(|directory| directory.join(&self.program)).find(|at| at.is_file())
    }

    /// Warns of a program that only shells find.
    fn trap(&self, at: &Path) -> Option<Diagnosis> {
        let home = self.home.as_deref()?;
        (at.starts_with(home) || at.starts_with("/opt/homebrew")).then(|| {
            let cause = "desktop applications start servers with a shorter PATH and may not find";
            unreachable(format!("{cause} {}", self.program))
                .fix(format!("Give the full path in their configuration: {}", at.display()))
        })
    }
}

fn beginning(at: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Ok(file) = fs::File::open(at) {
        // A file that cannot be read may still be executable.
        let _ = file.take(512).read_to_end(&mut bytes);
    }
    bytes
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
