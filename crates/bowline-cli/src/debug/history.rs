//! Lines that were typed, kept from one session to the next in the user's state folder. Answers to
//! questions are never kept, nor lines that begin with a blank or seem to contain a secret.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::redact::mentions_secret;

/// Lines that are kept: 1,000.
const MOST_LINES: usize = 1_000;

/// The longest line that is kept, in bytes: 16 KiB.
const LONGEST: usize = 16 << 10;

/// Lines that were typed, oldest first.
#[derive(Debug, Default)]
pub(crate) struct History {
    lines: Vec<String>,
    file: Option<PathBuf>,
}

impl History {
    /// The history of the user, if there is a folder for it.
    pub(crate) fn open() -> Self {
        place().map_or_else(Self::default, Self::open_at)
    }

    fn open_at(file: PathBuf) -> Self {
        let text = fs::read_to_string(&file).unwrap_or_default();
        let all: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        let kept = &all[all.len().saturating_sub(MOST_LINES)..];
        let lines: Vec<String> = kept.iter().map(|line| (*line).to_owned()).collect();
        // It is cut now and then, not with every line.
        if all.len() > 2 * MOST_LINES {
            let mut text = lines.join("\n");
            text.push('\n');
            let _ = fs::write(&file, text);
        }
        Self { lines, file: Some(file) }
    }

    pub(crate) fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Adds a line.
    pub(crate) fn add(&mut self, line: &str) {
        let line = line.replace(['\n', '\r'], " ");
        let is_last = self.lines.last() == Some(&line);
        if line.trim().is_empty() || line.starts_with(' ') || is_last || line.len() > LONGEST {
            return;
        }
        if !mentions_secret(&line)
            && let Some(file) = &self.file
        {
            // A history that cannot be written does not end the session.
            let _ = append(file, &line);
        }
        self.lines.push(line);
    }
}

fn append(file: &Path, line: &str) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    let mut folder = fs::DirBuilder::new();
    folder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
        options.mode(0o600);
        folder.mode(0o700);
    }
    if let Some(parent) = file.parent() {
        folder.create(parent)?;
    }
    options.open(file)?.write_all(format!("{line}\n").as_bytes())
}

/// `$XDG_STATE_HOME/bowline/debug-history`, by default under `~/.local/state`.
fn place() -> Option<PathBuf> {
    let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|it| it.is_absolute());
    let state = folder("XDG_STATE_HOME")
        .or_else(|| folder("HOME").map(|home| home.join(".local").join("state")))
        .or_else(|| folder("LOCALAPPDATA"))?;
    Some(state.join("bowline").join("debug-history"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file in a folder of its own, which goes away.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let name = format!("bowline-history-{name}-{}", std::process::id());
            Self(std::env::temp_dir().join(name))
        }

        fn file(&self) -> PathBuf {
            self.0.join("inner").join("debug-history")
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn lines_are_kept_for_the_next_session_but_secrets_are_not() {
        let scratch = Scratch::new("kept");
        let mut history = History::open_at(scratch.file());
        for line in ["status", "status", "", " hidden", "login(Token: abc)", "echo(a:\n1)"] {
            history.add(line);
        }
        assert_eq!(history.lines(), ["status", "login(Token: abc)", "echo(a: 1)"]);
        let again = History::open_at(scratch.file());
        assert_eq!(again.lines(), ["status", "echo(a: 1)"]);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(scratch.file()).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn a_long_history_is_cut() {
        let scratch = Scratch::new("cut");
        fs::create_dir_all(scratch.file().parent().unwrap()).unwrap();
        let lines: String = (0..2 * MOST_LINES + 1).map(|it| format!("line {it}\n")).collect();
        fs::write(scratch.file(), lines).unwrap();
        let history = History::open_at(scratch.file());
        assert_eq!(history.lines().len(), MOST_LINES);
        assert_eq!(history.lines().last().map(String::as_str), Some("line 2000"));
        let left = fs::read_to_string(scratch.file()).unwrap();
        assert_eq!(left.lines().count(), MOST_LINES);
    }

    #[test]
    fn without_a_place_lines_last_as_long_as_the_session() {
        let mut history = History::default();
        history.add("status");
        assert_eq!(history.lines(), ["status"]);
    }
}
