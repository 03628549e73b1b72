//! Debian's rsyslogd, which `mcp-logger` is tested with: unpacked below `target`, not installed.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::need::is_root;
use crate::process::{Ran, command, run};

const FOLDER: &str = "target/rsyslog";

/// The daemon, its TLS module, and the libraries that only it needs.
const PACKAGES: &str = "rsyslog rsyslog-openssl libestr0 libfastjson4 liblognorm5";

/// The variable that tells the tests where it is, or why it is missing, which fails them.
pub(crate) fn variable() -> (&'static str, OsString) {
    match unpack() {
        Ok(folder) => ("BOWLINE_RSYSLOG", folder.into()),
        Err(reason) => ("BOWLINE_RSYSLOG_MISSING", reason.into()),
    }
}

/// Downloads and unpacks it unless it is there. Returns the folder.
fn unpack() -> Result<PathBuf, String> {
    let broken = |error: std::io::Error| format!("{FOLDER}: {error}");
    fs::create_dir_all(FOLDER).map_err(broken)?;
    let folder = fs::canonicalize(FOLDER).map_err(broken)?;
    let stamp = folder.join(".unpacked");
    if fs::read_to_string(&stamp).is_ok_and(|unpacked| unpacked == PACKAGES) {
        return Ok(folder);
    }
    println!("rsyslogd is missing, downloading it into {FOLDER}:");
    download(&folder)?;
    for entry in fs::read_dir(&folder).map_err(broken)? {
        let package = entry.map_err(broken)?.path();
        if package.extension().is_some_and(|extension| extension == "deb") {
            let mut dpkg = command("dpkg -x");
            dpkg.arg(&package).arg(&folder);
            must(dpkg)?;
            fs::remove_file(&package).map_err(broken)?;
        }
    }
    fs::write(&stamp, PACKAGES).map_err(broken)?;
    Ok(folder)
}

fn download(folder: &Path) -> Result<(), String> {
    let line = format!("apt-get download {PACKAGES}");
    println!("    {line}");
    let download = || {
        let mut apt = command(&line);
        apt.current_dir(folder);
        must(apt)
    };
    if download().is_ok() {
        return Ok(());
    }
    // A fresh machine has no package lists.
    let sudo = if is_root() { "" } else { "sudo " };
    let update = format!("{sudo}apt-get update");
    println!("    {update}");
    let updated = must(command(&update));
    download().map_err(|said| {
        format!(
            "rsyslogd could not be downloaded; the logger is tested with Debian's, which needs \
             apt-get and dpkg.\n\n{}{said}",
            updated.err().unwrap_or_default()
        )
    })
}

fn must(command: Command) -> Result<(), String> {
    let Ran { ok, output } = run(command);
    if ok { Ok(()) } else { Err(output) }
}
