//! The compilers: Debian's Rust with the sources of its standard library, mingw for Windows, zig
//! for everything else.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::debian;
use crate::install::{Environment, Language};
use crate::process::program;

/// Where everything is built. Cargo's lock on it keeps other steps waiting for nothing.
pub(super) const BUILT: &str = "target/platforms/built";

const PLACE: &str = "target/platforms";

/// Members of the workspace that are not published.
pub(crate) const NOT_PUBLISHED: [&str; 8] = [
    "bowline-auth-walk",
    "bowline-bench",
    "bowline-conformance",
    "bowline-examples",
    "bowline-macros-ui",
    "bowline-program-walk",
    "bowline-walk",
    "xtask",
];

/// The compiler and the sources of the standard library, mingw and wine. What they need comes with
/// them, under names that change with each release of the compiler.
const PACKAGES: &str = "rustc-web cargo-web rust-web-src gcc-mingw-w64-x86-64-win32 \
    libz-mingw-w64 wine64";

const ZIG: Environment = Environment {
    source: "packaging/platforms",
    place: PLACE,
    folder: "zig",
    inputs: &["requirements.txt"],
    language: Language::Python,
};

/// The script around zig, with two words to fill in.
const CC: &str = include_str!("../../../packaging/platforms/cc.sh");

/// A system that this machine is not.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Windows,
    MacOs,
    Linux,
    LinuxArm,
}

impl Target {
    /// As Rust calls it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Windows => "x86_64-pc-windows-gnu",
            Self::MacOs => "aarch64-apple-darwin",
            Self::Linux => "x86_64-unknown-linux-musl",
            Self::LinuxArm => "aarch64-unknown-linux-musl",
        }
    }

    /// As zig calls it.
    const fn zig(self) -> &'static str {
        match self {
            Self::Windows => "x86_64-windows-gnu",
            Self::MacOs => "aarch64-macos",
            Self::Linux => "x86_64-linux-musl",
            Self::LinuxArm => "aarch64-linux-musl",
        }
    }
}

/// The compilers, installed.
pub(super) struct Tools {
    debian: PathBuf,
    python: PathBuf,
}

impl Tools {
    /// Installs what is missing, below `target`.
    pub(super) fn install() -> Result<Self, String> {
        let debian = debian::unpack_whole("platforms/debian", PACKAGES)?;
        ZIG.copy(&[])?;
        let requirements = format!("{PLACE}/requirements.txt");
        fs::copy("packaging/platforms/requirements.txt", &requirements)
            .map_err(|error| format!("{requirements}: {error}"))?;
        let python = std::path::absolute(ZIG.install()?).map_err(|error| error.to_string())?;
        Ok(Self { debian, python })
    }

    /// A program of Debian's, which finds its libraries.
    pub(super) fn program(&self, path: &str) -> Command {
        let mut program = program(self.debian.join(path));
        program.env("LD_LIBRARY_PATH", self.debian.join("usr/lib/x86_64-linux-gnu"));
        program
    }

    /// The path of a file in Debian's folder.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.debian.join(path)
    }

    /// Cargo for a target, with warnings as errors.
    pub(super) fn cargo(&self, subcommand: &str, target: Target) -> Result<Command, String> {
        let mut cargo = self.program("usr/bin/cargo");
        cargo.args([subcommand, "--quiet", "--locked", "-Zbuild-std=std", "-Zwarnings"]);
        cargo.args(["--config", "build.warnings=\"deny\"", "--target", target.name()]);
        cargo.env("CARGO_TARGET_DIR", BUILT).env("RUSTC", self.debian.join("usr/bin/rustc"));
        // Nightly options of a stable compiler: to compile the standard library.
        cargo.env("RUSTC_BOOTSTRAP", "1").env("CARGO_PROFILE_DEV_DEBUG", "0");
        cargo.env("CARGO_INCREMENTAL", "0");
        // This process was started by another Cargo.
        cargo.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
        let (cc, ar) = match target {
            Target::Windows => (self.mingw("gcc-win32"), self.mingw("ar")),
            _ => (self.zig(target)?, "ar".into()),
        };
        let name = target.name().replace('-', "_");
        let linker = format!("CARGO_TARGET_{}_LINKER", name.to_uppercase());
        cargo.env(linker, &cc).env(format!("CC_{name}"), cc).env(format!("AR_{name}"), ar);
        if matches!(target, Target::Linux | Target::LinuxArm) {
            // Zig brings the C library and what starts a program.
            let flags = format!("CARGO_TARGET_{}_RUSTFLAGS", name.to_uppercase());
            cargo.env(flags, "-Clink-self-contained=no");
        }
        // No headers of Apple's are needed, and nothing must search for them.
        cargo.env("SDKROOT", "/");
        // Where the compiler looks for `dlltool`.
        let path = std::env::var("PATH").unwrap_or_default();
        cargo.env("PATH", format!("{path}:{}", self.debian.join("usr/bin").display()));
        Ok(cargo)
    }

    /// The path of a program of mingw.
    pub(super) fn mingw(&self, name: &str) -> PathBuf {
        self.debian.join(format!("usr/bin/x86_64-w64-mingw32-{name}"))
    }

    /// Writes the script that compiles C for a target. Returns its path.
    fn zig(&self, target: Target) -> Result<PathBuf, String> {
        let path = Path::new(PLACE).join(format!("cc-{}", target.name()));
        let python = self.python.to_string_lossy();
        let script = CC.replace("PYTHON", &python).replace("ZIG_TARGET", target.zig());
        let write = || {
            // A script that runs must not be replaced.
            if fs::read_to_string(&path).is_ok_and(|text| text == script) {
                return std::path::absolute(&path);
            }
            fs::write(&path, script)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
            std::path::absolute(&path)
        };
        write().map_err(|error| format!("{}: {error}", path.display()))
    }
}
