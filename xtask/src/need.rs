//! Programs that a step needs, and how to install them.
//!
//! A fresh machine needs nothing but Rust: what is missing is installed, and the output says what
//! and how. Where that fails, the message says what to do by hand.

use std::sync::Mutex;

use crate::process::{Ran, command, run};

/// A program, and where it comes from.
#[derive(Clone, Copy)]
pub(crate) struct Need {
    /// Asked for `--version` to see whether it is there, unless it has arguments of its own.
    program: &'static str,
    how: How,
}

/// Where a program comes from.
#[derive(Clone, Copy)]
pub(crate) enum How {
    /// A component of the Rust toolchain.
    Component(&'static str),
    /// A package of Debian and its kin.
    Package(&'static str),
    /// A crate, compiled here.
    Crate(&'static str),
}

/// States a need; nothing happens until [`Need::meet`].
pub(crate) const fn need(program: &'static str, how: How) -> Need {
    Need { program, how }
}

impl Need {
    /// Installs the program if it is missing.
    pub(crate) fn meet(self) -> Result<(), String> {
        if self.is_met() {
            return Ok(());
        }
        // Lanes run side by side, and package managers do not.
        static INSTALLING: Mutex<()> = Mutex::new(());
        let _installing = INSTALLING.lock().expect("no lane panics");
        let lines = self.how.lines(is_root());
        println!("{} is missing, installing it:", self.program);
        let mut said = String::new();
        for line in &lines {
            println!("    {line}");
            let mut install = command(line);
            // Nobody is there to answer a question.
            install.env("DEBIAN_FRONTEND", "noninteractive");
            let Ran { ok, output } = run(install);
            said += &output;
            if !ok {
                break;
            }
        }
        if self.is_met() {
            return Ok(());
        }
        Err(format!(
            "{} is missing and could not be installed.\n\
             Install it by hand, for example with `{}`, and run this again.\n\n{said}",
            self.program,
            lines.join(" && "),
        ))
    }

    fn is_met(self) -> bool {
        // Looking for the file is not enough: rustup leaves one for components that are not there.
        match self.program.contains(' ') {
            true => run(command(self.program)).ok,
            false => run(command(&format!("{} --version", self.program))).ok,
        }
    }
}

impl How {
    fn lines(self, root: bool) -> Vec<String> {
        let sudo = if root { "" } else { "sudo " };
        match self {
            Self::Component(name) => vec![format!("rustup component add {name}")],
            Self::Package(name) => vec![
                format!("{sudo}apt-get update"),
                format!("{sudo}apt-get install --yes --no-install-recommends {name}"),
            ],
            Self::Crate(name) => vec![format!("cargo install --locked {name}")],
        }
    }
}

pub(crate) fn is_root() -> bool {
    let Ran { ok, output } = run(command("id -u"));
    ok && output.lines().last() == Some("0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_here_is_left_alone() {
        assert_eq!(need("cargo", How::Component("cargo")).meet(), Ok(()));
    }

    #[test]
    fn packages_are_installed_as_root() {
        let line = |root| How::Package("g++").lines(root).pop().unwrap();
        assert!(line(true).starts_with("apt-get install"));
        assert!(line(false).starts_with("sudo apt-get install"));
    }
}
