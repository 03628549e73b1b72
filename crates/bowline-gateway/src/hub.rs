//! How viewers find the taps of this user on this machine: a folder that only the user can enter,
//! with one socket per running tap.
//!
//! A viewer that connects receives lines of a session file: how the session began, what is left of
//! the past, then everything as it happens. It sends nothing. A socket that nobody listens to is
//! left over from a tap that was killed; whoever finds it removes it.
//!
//! Only Unix has this so far. Elsewhere taps work and record, and there is nothing to view.

use std::io;
use std::path::{Path, PathBuf};

#[cfg(unix)]
mod unix;

#[cfg(unix)]
pub use self::unix::{Door, connect, open};

/// The folder with the sockets: `BOWLINE_RUNTIME_DIR` if that is set, else below the user's runtime
/// folder, else below the folder of temporary files.
#[must_use]
pub fn folder() -> PathBuf {
    let named = |name: &str| std::env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    let chosen = named("BOWLINE_RUNTIME_DIR");
    let runtime = || Some(named("XDG_RUNTIME_DIR")?.join("bowline"));
    chosen.or_else(runtime).unwrap_or_else(|| std::env::temp_dir().join(own_name())).join("taps")
}

#[cfg(unix)]
fn own_name() -> String {
    format!("bowline-{}", rustix::process::getuid().as_raw())
}

#[cfg(not(unix))]
fn own_name() -> String {
    "bowline".to_owned()
}

/// The taps that run now: sockets in the folder, by name.
///
/// # Errors
/// When the folder belongs to another user, or cannot be read.
pub fn running(folder: &Path) -> io::Result<Vec<PathBuf>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    #[cfg(unix)]
    unix::check(folder)?;
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == "sock") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
