//! Everything that a release publishes, in `target/release-artifacts`: the static program, a
//! Debian package, bundles and entries for the registry of MCP, packages for npm and `PyPI`, the
//! context of a container, templates for other package managers, checksums and a bill of materials.
//!
//! The same source gives the same bytes: times, owners and orders are fixed. Each package is
//! installed, used and removed where that needs neither a network nor an account.

mod bundle;
mod crates;
mod debian;
mod image;
mod materials;
mod shims;

use std::fs;
use std::path::Path;

use crate::options::Options;
use crate::platforms;
use crate::process::{command, run};
use crate::step::Outcome;

/// Where everything is put.
const PLACE: &str = "target/release-artifacts";
/// Where a release can be downloaded.
const DOWNLOADS: &str = "https://github.com/bowline-mcp/bowline/releases/download/v";

/// What all parts share.
struct Release {
    version: String,
    /// The static program.
    program: String,
}

type Part = fn(&Release) -> Result<String, String>;

/// The parts. Each says in a few words what it made and tried.
const PARTS: [(&str, Part); 7] = [
    ("crates", crates::pack),
    ("program", program),
    ("debian", debian::pack),
    ("shims", shims::pack),
    ("bundles", bundle::pack),
    ("image", image::pack),
    ("materials", materials::write),
];

/// Makes and tries everything; with `--quick`, with the program that tests use.
pub(crate) fn step(options: &Options) -> Outcome {
    let release = match prepare(options.quick) {
        Ok(release) => release,
        Err(why) => return Outcome::one(false, why),
    };
    let mut outcome = Outcome::default();
    // Templates are filled in with the sums of everything else.
    let parts = PARTS.iter().copied().chain([("templates", image::templates as Part)]);
    for (name, part) in parts.chain([("sums", sums as Part)]) {
        match part(&release) {
            Ok(made) => {
                outcome.passed += 1;
                outcome.table += &format!("    {name:10} ok     {made}\n");
            }
            Err(why) => {
                outcome.failed += 1;
                outcome.table += &format!("    {name:10} FAILED\n");
                outcome.output += &format!("{name}\n{why}\n\n");
            }
        }
    }
    outcome.note = format!("{} in {PLACE}", release.version);
    outcome
}

fn prepare(is_quick: bool) -> Result<Release, String> {
    if Path::new(PLACE).exists() {
        fs::remove_dir_all(PLACE).map_err(|error| format!("{PLACE}: {error}"))?;
    }
    fs::create_dir_all(PLACE).map_err(|error| format!("{PLACE}: {error}"))?;
    let manifest = read("Cargo.toml")?;
    let version = manifest.lines().find_map(|line| line.strip_prefix("version = \""));
    let version = version.map(|rest| rest.trim_end_matches('"').to_owned());
    let version = version.ok_or("Cargo.toml has no version")?;
    let program = if is_quick { quick()? } else { platforms::static_program()? };
    Ok(Release { version, program })
}

/// The program as tests use it, to try the packages with. It is not static, so not for publishing.
fn quick() -> Result<String, String> {
    must("cargo build --quiet --package bowline-cli --all-features --bin bowline")?;
    let program = "target/release-tree/bowline";
    renew("target/release-tree")?;
    must(&format!("strip -o {program} target/debug/bowline"))?;
    Ok(program.to_owned())
}

/// The program in an archive, with its licences.
fn program(release: &Release) -> Result<String, String> {
    let name = format!("bowline-{}-x86_64-unknown-linux-musl", release.version);
    let folder = format!("target/release-tree/{name}");
    renew(&folder)?;
    copy(&release.program, &format!("{folder}/bowline"))?;
    for file in ["README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        copy(file, &format!("{folder}/{file}"))?;
    }
    let archive = format!("{PLACE}/{name}.tar.gz");
    let whole = archive.trim_end_matches(".gz");
    must(&format!(
        "tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --format=ustar \
         -C target/release-tree -cf {whole} {name}"
    ))?;
    must(&format!("gzip --no-name --force {whole}"))?;
    let size = fs::metadata(&release.program).map_or(0, |it| it.len()) >> 20;
    Ok(format!("{name}.tar.gz, {size} MiB unpacked"))
}

/// The digests of all files, as `sha256sum` checks them.
fn sums(_: &Release) -> Result<String, String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(PLACE).map_err(|error| error.to_string())? {
        let path = entry.map_err(|error| error.to_string())?.path();
        if path.is_file() {
            names.push(path.to_string_lossy().into_owned());
        }
    }
    names.sort();
    let mut text = String::new();
    for name in &names {
        text +=
            &format!("{}  {}\n", sha256(name)?, name.trim_start_matches(PLACE).trim_matches('/'));
    }
    write(&format!("{PLACE}/SHA256SUMS"), &text)?;
    must(&format!("env -C {PLACE} sha256sum --check --quiet SHA256SUMS"))?;
    Ok(format!("SHA256SUMS of {} files", names.len()))
}

fn sha256(file: &str) -> Result<String, String> {
    let said = must(&format!("sha256sum {file}"))?;
    let line = said.lines().last().unwrap_or_default();
    Ok(line.split(' ').next().unwrap_or_default().to_owned())
}

/// Fills in the fields of a template.
fn fill(template: &str, fields: &[(&str, &str)]) -> Result<String, String> {
    let mut text = read(template)?;
    for (name, value) in fields {
        text = text.replace(&format!("{{{{{name}}}}}"), value);
    }
    Ok(text)
}

/// Runs a program that must succeed.
fn must(line: &str) -> Result<String, String> {
    let ran = run(command(line));
    if ran.ok { Ok(ran.output) } else { Err(ran.output) }
}

fn read(file: &str) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))
}

fn write(file: &str, text: &str) -> Result<(), String> {
    fs::write(file, text).map_err(|error| format!("{file}: {error}"))
}

/// Copies a file, and creates the folders above it.
fn copy(from: &str, to: &str) -> Result<(), String> {
    let said = |error: std::io::Error| format!("{to}: {error}");
    if let Some(folder) = Path::new(to).parent() {
        fs::create_dir_all(folder).map_err(said)?;
    }
    fs::copy(from, to).map(drop).map_err(|error| format!("{from}: {error}"))
}

/// An empty folder.
fn renew(folder: &str) -> Result<(), String> {
    let said = |error: std::io::Error| format!("{folder}: {error}");
    if Path::new(folder).exists() {
        fs::remove_dir_all(folder).map_err(said)?;
    }
    fs::create_dir_all(folder).map_err(said)
}
