//! The hub on Unix: sockets in a folder with mode 0700.

use std::fs::{DirBuilder, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::observe::Observer;

/// How long to wait after a viewer that could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);

/// The socket of a tap. It is removed when this is dropped.
pub struct Door(PathBuf);

impl Drop for Door {
    fn drop(&mut self) {
        // It may have been removed with its folder.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Lets viewers reach an observer until the door is dropped.
///
/// # Errors
/// When the folder or the socket cannot be made, or the folder belongs to another user.
pub fn open(folder: &Path, observer: &Observer) -> io::Result<Door> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700).create(folder)?;
    check(folder)?;
    // A viewer that finds a socket may connect at once, so it gets its name when it listens.
    let new = folder.join(format!("{}.new", std::process::id()));
    // Left over from another process with this number.
    let _ = std::fs::remove_file(&new);
    let listener = UnixListener::bind(&new)?;
    let path = new.with_extension("sock");
    std::fs::rename(&new, &path)?;
    let door = Door(path);
    let observer = observer.clone();
    let thread = std::thread::Builder::new().name("hub".to_owned());
    thread.spawn(move || {
        for viewer in listener.incoming() {
            match viewer {
                Ok(viewer) if viewer.set_nonblocking(true).is_ok() => {
                    observer.admit(Box::new(viewer));
                }
                // It is gone already, or files run out for a while.
                _ => std::thread::sleep(PAUSE),
            }
        }
    })?;
    Ok(door)
}

/// Checks that only this user can enter the folder, and replace it; takes away what others may do.
pub(super) fn check(folder: &Path) -> io::Result<()> {
    for folder in [Some(folder), folder.parent()].into_iter().flatten() {
        let found = folder.symlink_metadata()?;
        if !found.is_dir() || found.uid() != rustix::process::geteuid().as_raw() {
            let what = format!("{} belongs to another user", folder.display());
            return Err(io::Error::new(ErrorKind::PermissionDenied, what));
        }
    }
    if folder.metadata()?.mode() & 0o077 != 0 {
        std::fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Connects to a tap. `None` if nobody listens any more: the socket is removed.
///
/// # Errors
/// When it cannot be connected to for another reason.
pub fn connect(path: &Path) -> io::Result<Option<UnixStream>> {
    match UnixStream::connect(path) {
        Ok(stream) => Ok(Some(stream)),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            // Another viewer may have been faster.
            let _ = std::fs::remove_file(path);
            Ok(None)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use super::*;
    use crate::hub::running;
    use crate::observe::Observing;
    use crate::redact::Redactor;
    use crate::session_file::{Line, LineKind, Opening};

    fn observer() -> Observer {
        let (opening, redactor) = (Opening::now("x".into()), Redactor::default());
        let warn = Box::new(|_: &str| {});
        Observer::start(Observing { opening, redactor, recorder: None, warn }).unwrap()
    }

    fn folder(name: &str) -> PathBuf {
        let own = format!("bowline-hub-{name}-{}", std::process::id());
        std::env::temp_dir().join(own).join("taps")
    }

    #[test]
    fn a_viewer_that_comes_late_sees_the_past() {
        let (folder, observer) = (folder("late"), observer());
        let door = open(&folder, &observer).unwrap();
        assert_eq!(folder.metadata().unwrap().mode() & 0o777, 0o700);
        let note = |text: &str| {
            let text = Some(text.to_owned());
            observer.note(Line { kind: LineKind::Fault, text, ..Line::default() });
        };
        note("before");
        let sockets = running(&folder).unwrap();
        let viewer = connect(&sockets[0]).unwrap().unwrap();
        let mut lines = BufReader::new(viewer).lines().map(|line| line.unwrap());
        assert!(lines.next().unwrap().starts_with(r#"{"kind":"session""#));
        assert!(lines.next().unwrap().contains("before"));
        note("after");
        assert!(lines.next().unwrap().contains("after"));
        observer.end(None);
        assert!(lines.next().unwrap().contains(r#""kind":"end""#));
        drop(door);
        assert!(running(&folder).unwrap().is_empty());
        std::fs::remove_dir_all(folder.parent().unwrap()).unwrap();
    }

    #[test]
    fn what_a_killed_tap_leaves_is_removed() {
        let folder = folder("stale");
        DirBuilder::new().recursive(true).mode(0o755).create(&folder).unwrap();
        drop(UnixListener::bind(folder.join("1.sock")).unwrap());
        let sockets = running(&folder).unwrap();
        assert_eq!(sockets.len(), 1);
        assert_eq!(folder.metadata().unwrap().mode() & 0o777, 0o700);
        assert!(connect(&sockets[0]).unwrap().is_none());
        assert!(running(&folder).unwrap().is_empty());
        std::fs::remove_dir_all(folder.parent().unwrap()).unwrap();
    }
}
