//! `bowline config`: edits the config files of clients; everything else in them stays as it is.

mod add;

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use bowline_gateway::config::{EditError, Syntax, remove, unwrap, wrap};
use clap::{Args, Subcommand};

use self::add::Add;
use super::servers::{Servers, short};
use crate::failure::Failure;
use crate::screen::{OutputArgs, Screen};
use crate::target::{Named, Scan, Trust};

/// Edit the config files of clients: put a tap in front of a server, add and remove servers
///
/// Comments, order and formatting of everything else stay as they are. The file as it was before is
/// kept beside it, as FILE.bowline-backup. Clients read their files when they start: restart them.
#[derive(Args)]
pub(crate) struct Config {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List the servers in config files, as `bowline servers` does
    List(Servers),
    /// Put a tap in front of a server: `bowline tap --view` shows its traffic
    Wrap(Wrap),
    /// Take the tap out again
    Unwrap(Entry),
    Add(Add),
    /// Remove a server from its file
    Remove(Entry),
}

/// An entry of a file.
#[derive(Args)]
struct Entry {
    /// The server's name, or CLIENT/NAME where several clients have one
    name: String,

    /// Edit this file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Args)]
struct Wrap {
    #[command(flatten)]
    entry: Entry,

    /// Have the tap record each session to a new file in this folder
    #[arg(long, value_name = "FOLDER")]
    record: Option<PathBuf>,
}

impl Config {
    pub(crate) fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        match self.action {
            Action::List(servers) => servers.run(root),
            Action::Wrap(wrap) => wrap.run(root),
            Action::Unwrap(entry) => entry.edit(root, "took the tap out", |text, named, syntax| {
                unwrap(text, syntax, &named.path)
            }),
            Action::Remove(entry) => entry
                .edit(root, "removed it", |text, named, syntax| remove(text, syntax, &named.path)),
            Action::Add(add) => add.run(root),
        }
    }
}

impl Entry {
    /// Finds the entry, edits its file and says what was done.
    fn edit(
        &self,
        root: &OutputArgs,
        done: &str,
        edit: impl FnOnce(&str, &Named, Syntax) -> Result<String, EditError>,
    ) -> Result<(), Failure> {
        let scan = Scan::new(self.config.as_deref(), Trust::read(false))?;
        let named = scan.entry(&self.name)?;
        let text = read(&named.file)?;
        let edited = edit(&text, named, syntax_of(&named.file));
        let edited = edited.map_err(|error| explained(&named.file, &error))?;
        replace(&named.file, &text, &edited)?;
        told(root, &format!("{}: {done}", named.name), &named.file)
    }
}

impl Wrap {
    fn run(self, root: &OutputArgs) -> Result<(), Failure> {
        let own = own()?;
        let record = self.record.as_deref().map(std::path::absolute).transpose();
        let record = record.map_err(|error| Failure::usage(format!("--record: {error}")))?;
        if let Some(folder) = &record {
            std::fs::create_dir_all(folder)
                .map_err(|error| Failure::file("--record", folder, error))?;
        }
        self.entry.edit(root, "put a tap in front of it", |text, named, syntax| {
            let mut tap = vec![own, "tap".to_owned()];
            tap.extend(["--name".to_owned(), format!("{}/{}", named.client, named.name)]);
            if let Some(folder) = &record {
                tap.extend(["--record".to_owned(), folder.to_string_lossy().into_owned()]);
            }
            tap.push("--".to_owned());
            wrap(text, syntax, &named.path, &tap)
        })
    }
}

fn syntax_of(file: &Path) -> Syntax {
    if file.extension().is_some_and(|it| it == "toml") { Syntax::Toml } else { Syntax::Json }
}

fn read(file: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(file)
        .map_err(|error| Failure::usage(format!("{}: {error}", file.display())))
}

fn explained(file: &Path, error: &EditError) -> Failure {
    let remedy = match error {
        EditError::Unsupported(..) => {
            "for a URL, run `bowline tap URL --http 127.0.0.1:8000` and give the client that address"
        }
        EditError::Present(_) => "`bowline config remove` removes it",
        _ => "",
    };
    Failure::usage(format!("{}: {error}", file.display())).with_remedy(remedy)
}

fn told(root: &OutputArgs, what: &str, file: &Path) -> Result<(), Failure> {
    let screen = Screen::new(root);
    screen.note(&format!("{what} in {}; restart the client", short(file)));
    screen.finish()
}

/// The path of this program.
fn own() -> Result<String, Failure> {
    let own = std::env::current_exe();
    let own = own.map_err(|error| Failure::usage(format!("which program is this? {error}")))?;
    Ok(own.to_string_lossy().into_owned())
}

/// Replaces a file in one step, with its permissions, and keeps what it was.
fn replace(file: &Path, before: &str, after: &str) -> Result<(), Failure> {
    let wrong = |error| Failure::usage(format!("{}: {error}", file.display()));
    // A link stays a link.
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let folder = file.parent().unwrap_or_else(|| Path::new("."));
    std::fs::create_dir_all(folder).map_err(wrong)?;
    let permissions = file.metadata().ok().map(|found| found.permissions());
    let beside = |end: &str| {
        let mut name = file.clone().into_os_string();
        name.push(end);
        PathBuf::from(name)
    };
    let put = |path: &Path, text: &str| -> std::io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        // These files may hold secrets.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut written = options.open(path)?;
        written.write_all(text.as_bytes())?;
        written.sync_all()?;
        permissions.clone().map_or(Ok(()), |it| written.set_permissions(it))
    };
    if permissions.is_some() {
        put(&beside(".bowline-backup"), before).map_err(wrong)?;
    }
    let new = beside(&format!(".{}.new", std::process::id()));
    put(&new, after).map_err(wrong)?;
    std::fs::rename(new, &file).map_err(wrong)
}
