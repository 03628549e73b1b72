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

/// Unpacks the newest packages, and all that they need and this machine lacks, into `target/name`
/// unless they are there. Returns the folder.
pub(crate) fn unpack_whole(name: &'static str, packages: &'static str) -> Result<PathBuf, String> {
    Unpacked { name, packages, variable: "" }.unpack_by(|folder| {
        // Old lists know old packages under the same names. Without a network, they must do.
        let said = update().err().unwrap_or_default();
        let mut apt = command("apt-get install --simulate --reinstall --no-install-recommends");
        apt.args(packages.split_whitespace());
        let Ran { ok, output } = run(apt);
        match ok {
            true => download(folder, &to_install(&output)).map_err(|why| said + &why),
            false => Err(said + &output),
        }
    })
}

/// The packages that `apt-get --simulate` would install.
fn to_install(simulated: &str) -> String {
    let names = simulated.lines().filter_map(|line| line.strip_prefix("Inst ")?.split(' ').next());
    names.collect::<Vec<_>>().join(" ")
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
    fn unpack(&self) -> Result<PathBuf, String> {
        self.unpack_by(|folder| {
            download(folder, self.packages).or_else(|_| {
                // A fresh machine has no package lists.
                let updated = update();
                download(folder, self.packages)
                    .map_err(|said| updated.err().unwrap_or_default() + &said)
            })
        })
    }

    /// Downloads and unpacks it unless it is there. Returns the folder.
    fn unpack_by(&self, download: impl Fn(&Path) -> Result<(), String>) -> Result<PathBuf, String> {
        let folder = format!("target/{}", self.name);
        let broken = |error: std::io::Error| format!("{folder}: {error}");
        fs::create_dir_all(&folder).map_err(broken)?;
        let place = fs::canonicalize(&folder).map_err(broken)?;
        let stamp = place.join(".unpacked");
        if fs::read_to_string(&stamp).is_ok_and(|unpacked| unpacked == self.packages) {
            return Ok(place);
        }
        println!("{} is missing, downloading it into {folder}:", self.name);
        download(&place).map_err(|said| {
            format!(
                "{} could not be downloaded; it is Debian's, which needs apt-get and dpkg.\n\n{said}",
                self.name
            )
        })?;
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
}

fn download(folder: &Path, packages: &str) -> Result<(), String> {
    let line = format!("apt-get download {packages}");
    println!("    {line}");
    let mut apt = command(&line);
    apt.current_dir(folder);
    must(apt)
}

fn update() -> Result<(), String> {
    let line = format!("{}apt-get update", if is_root() { "" } else { "sudo " });
    println!("    {line}");
    must(command(&line))
}

fn must(command: Command) -> Result<(), String> {
    let Ran { ok, output } = run(command);
    if ok { Ok(()) } else { Err(output) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_be_installed_is_named_by_the_simulation() {
        let said = "Reading package lists...\n2 newly installed, 1 reinstalled.\n\
                    Inst libllvm22 (1:22.1 Debian:12/oldstable [amd64])\n\
                    Inst rustc-web [1.85.0] (1.96.0 Debian-Security:12 [amd64])\n\
                    Conf libllvm22 (1:22.1 Debian:12/oldstable [amd64])\n";
        assert_eq!(to_install(said), "libllvm22 rustc-web");
    }
}
