//! Programs of Debian that tests run: unpacked below `target`, not installed.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::need::is_root;
use crate::process::{Ran, command, run};

/// A program, and where tests find it.
struct Unpacked {
    /// Its folder below `target`.
    name: &'static str,
    packages: &'static str,
    /// The variable that names the folder. With `_MISSING` after it, it says why there is none,
    /// which fails the tests.
    variable: &'static str,
}

/// Unpacks packages into `target/name` unless they are there. Returns the folder.
pub(crate) fn unpack(name: &'static str, packages: &'static str) -> Result<PathBuf, String> {
    Unpacked { name, packages, variable: "" }.unpack()
}

const ALL: [Unpacked; 4] = [
    // The daemon, its TLS module, and the libraries that only it needs, for `mcp-logger`.
    Unpacked {
        name: "rsyslog",
        packages: "rsyslog rsyslog-openssl libestr0 libfastjson4 liblognorm5",
        variable: "BOWLINE_RSYSLOG",
    },
    // The voice, a player, and the libraries of both, for the operator.
    Unpacked {
        name: "espeak",
        packages: "espeak-ng espeak-ng-data libespeak-ng1 libsonic0 libpcaudio0 alsa-utils \
                   libasound2 libasound2-data libpulse0 libasyncns0 libdbus-1-3 libsndfile1 \
                   libflac12 libogg0 libopus0 libvorbis0a libvorbisenc2 libmp3lame0 libmpg123-0 \
                   libx11-6 libxcb1 libxau6 libxdmcp6 libbsd0 libmd0",
        variable: "BOWLINE_ESPEAK",
    },
    // The stores of fleets, with the libraries that only they need.
    Unpacked {
        name: "postgres",
        packages: "postgresql-15 postgresql-client-15 libpq5 libicu72 libxml2 libldap-2.5-0 \
                   libsasl2-2 libreadline8 libgssapi-krb5-2 libkrb5-3 libk5crypto3 \
                   libkrb5support0 libkeyutils1 libcom-err2",
        variable: "BOWLINE_POSTGRES",
    },
    Unpacked {
        name: "redis",
        packages: "redis-server redis-tools liblzf1 libjemalloc2",
        variable: "BOWLINE_REDIS",
    },
];

/// The variables that tell tests where everything is.
pub(crate) fn variables() -> Vec<(String, OsString)> {
    variables_of(|_| true)
}

/// The same for the stores of fleets.
pub(crate) fn stores() -> Vec<(String, OsString)> {
    variables_of(|it| ["postgres", "redis"].contains(&it.name))
}

fn variables_of(is_wanted: impl Fn(&Unpacked) -> bool) -> Vec<(String, OsString)> {
    let variable = |it: &Unpacked| match it.unpack() {
        Ok(folder) => (it.variable.to_owned(), folder.into()),
        Err(reason) => (format!("{}_MISSING", it.variable), reason.into()),
    };
    ALL.iter().filter(|it| is_wanted(it)).map(variable).collect()
}

impl Unpacked {
    /// Downloads and unpacks it unless it is there. Returns the folder.
    fn unpack(&self) -> Result<PathBuf, String> {
        let folder = format!("target/{}", self.name);
        let broken = |error: std::io::Error| format!("{folder}: {error}");
        fs::create_dir_all(&folder).map_err(broken)?;
        let place = fs::canonicalize(&folder).map_err(broken)?;
        let stamp = place.join(".unpacked");
        if fs::read_to_string(&stamp).is_ok_and(|unpacked| unpacked == self.packages) {
            return Ok(place);
        }
        println!("{} is missing, downloading it into {folder}:", self.name);
        self.download(&place)?;
        for entry in fs::read_dir(&place).map_err(broken)? {
            let package = entry.map_err(broken)?.path();
            if package.extension().is_some_and(|extension| extension == "deb") {
                let mut dpkg = command("dpkg -x");
                dpkg.arg(&package).arg(&place);
                must(dpkg)?;
                fs::remove_file(&package).map_err(broken)?;
            }
        }
        fs::write(&stamp, self.packages).map_err(broken)?;
        Ok(place)
    }

    fn download(&self, folder: &Path) -> Result<(), String> {
        let line = format!("apt-get download {}", self.packages);
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
                "{} could not be downloaded; it is Debian's, which needs apt-get and dpkg.\n\n\
                 {}{said}",
                self.name,
                updated.err().unwrap_or_default()
            )
        })
    }
}

fn must(command: Command) -> Result<(), String> {
    let Ran { ok, output } = run(command);
    if ok { Ok(()) } else { Err(output) }
}
