//! Trust in a project's config file: it can run any command and read the environment, and it comes
//! with whatever repository the user is in. The user is asked once per file and content.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use super::kept::data_dir;
use crate::failure::Failure;
use crate::text::plain;

/// The files that the user trusts, and how they looked then.
#[derive(Debug, Default)]
pub(crate) struct Trust {
    /// Whether all files are trusted in this run.
    trusts_all: bool,
    /// Where it is kept. `None` when the user has no home.
    file: Option<PathBuf>,
    known: Known,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Known {
    /// SHA-256 of each file's content, by its path.
    files: BTreeMap<PathBuf, String>,
}

impl Trust {
    /// Reads what is known. `trusts_all` is `--trust`.
    pub(crate) fn read(trusts_all: bool) -> Self {
        let file = data_dir().map(|dir| dir.join("trusted.json"));
        let text = file.as_ref().and_then(|file| std::fs::read_to_string(file).ok());
        let known = text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        Self { trusts_all, file, known }
    }

    /// Whether a file with this content is trusted.
    pub(crate) fn has(&self, file: &Path, content: &str) -> bool {
        self.trusts_all || self.known.files.get(&whole(file)) == Some(&fingerprint(content))
    }

    /// Asks the user to trust a file, and remembers the answer. `wants` is what it would do.
    ///
    /// # Errors
    /// When the user does not trust it, or there is nobody to ask.
    pub(crate) fn ask(&mut self, file: &Path, content: &str, wants: &str) -> Result<(), Failure> {
        let shown = file.display();
        if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
            let what = format!("{shown} belongs to a project, and is not trusted yet");
            return Err(Failure::usage(what).with_remedy(
                "read it, then run the command in a terminal to be asked once, or add --trust",
            ));
        }
        let question = format!(
            "The project's file {shown} is new, or has changed. It wants to use:\n\n{wants}\n\n\
             It can run any command as you, and read your environment. Trust this file? [y/N] "
        );
        let mut answer = String::new();
        let asked = io::stderr().write_all(plain(&question).as_bytes());
        let read = asked.and_then(|()| io::stdin().read_line(&mut answer));
        if read.is_err() || !matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
            return Err(Failure::usage(format!("{shown} is not trusted; nothing was started")));
        }
        self.known.files.insert(whole(file), fingerprint(content));
        self.write().map_err(|error| {
            Failure::usage(format!("cannot remember that {shown} is trusted: {error}"))
                .with_remedy("--trust trusts it for once")
        })
    }

    /// Replaces the file in one step, readable only by its owner.
    fn write(&self) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let folder = file.parent().unwrap_or_else(|| Path::new("."));
        std::fs::create_dir_all(folder)?;
        let new = folder.join(format!("trusted.{}.new", std::process::id()));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let text = serde_json::to_vec_pretty(&self.known)?;
        options.open(&new)?.write_all(&text)?;
        std::fs::rename(new, file)
    }
}

/// The one path of a file, without links.
fn whole(file: &Path) -> PathBuf {
    file.canonicalize().unwrap_or_else(|_| file.to_owned())
}

fn fingerprint(content: &str) -> String {
    let bytes = digest(&SHA256, content.as_bytes());
    bytes.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
