//! Everything that a release publishes, in `target/release-artifacts`: the program for each system
//! that can be built for here, a Debian package, bundles and entries for the registry of MCP,
//! packages for npm and `PyPI`, the context of a container, manifests of other package managers,
//! checksums and a bill of materials.
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
use std::time::Duration;

use crate::options::Options;
use crate::platforms::{self, Target};
use crate::process::{command, run_within};
use crate::step::Outcome;

/// Where everything is put.
const PLACE: &str = "target/release-artifacts";
/// Where packages with the program that tests use are put, which is not for publishing.
const TRIAL: &str = "target/release-trial";
/// Where a release can be downloaded.
const DOWNLOADS: &str = "https://github.com/bowline-mcp/bowline/releases/download/v";

/// What all parts share.
struct Release {
    version: String,
    /// The program for this machine, and whether it is the static one.
    program: String,
    is_static: bool,
    /// The program for every system, this one first.
    builds: Vec<Build>,
    /// Where everything is put.
    place: &'static str,
}

/// The program for one system.
struct Build {
    system: &'static System,
    program: String,
    /// What starts it here.
    start: String,
}

/// A system that programs are published for.
struct System {
    target: Target,
    /// As npm calls it, and its processor.
    os: &'static str,
    cpu: &'static str,
    /// As wheels call it.
    wheel: &'static str,
    /// The name of the program.
    file: &'static str,
}

const SYSTEMS: [System; 1] = [System {
    target: Target::Linux,
    os: "linux",
    cpu: "x64",
    wheel: "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
    file: "bowline",
}];

type Part = fn(&Release) -> Result<String, String>;

/// The parts. Each says in a few words what it made and tried.
const PARTS: [(&str, Part); 7] = [
    ("crates", crates::pack),
    ("programs", programs),
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
    outcome.note = format!("{} in {}", release.version, release.place);
    outcome
}

fn prepare(is_quick: bool) -> Result<Release, String> {
    let place = if is_quick { TRIAL } else { PLACE };
    renew(place)?;
    let manifest = read("Cargo.toml")?;
    let version = manifest.lines().find_map(|line| line.strip_prefix("version = \""));
    let version = version.map(|rest| rest.trim_end_matches('"').to_owned());
    let version = version.ok_or("Cargo.toml has no version")?;
    let mut builds = Vec::new();
    for system in SYSTEMS.iter().take(if is_quick { 1 } else { SYSTEMS.len() }) {
        let (program, start) = match is_quick {
            true => quick().map(|program| (program.clone(), program))?,
            false => platforms::published(system.target)?,
        };
        builds.push(Build { system, program, start });
    }
    let program = builds[0].program.clone();
    Ok(Release { version, program, is_static: !is_quick, builds, place })
}

/// The program as tests use it, to try the packages with. It is not static, so not for publishing.
fn quick() -> Result<String, String> {
    must("cargo build --quiet --workspace --all-features --bin bowline")?;
    let program = "target/release-tree/bowline";
    renew("target/release-tree")?;
    must(&format!("strip -o {program} target/debug/bowline"))?;
    Ok(program.to_owned())
}

/// The programs in archives, with their licences. Each is started.
fn programs(release: &Release) -> Result<String, String> {
    let mut made = Vec::new();
    for build in &release.builds {
        let file = archive(release, build)?;
        if release.is_static {
            names_no_place(&build.program)?;
        }
        let server = match build.system.os {
            // Wine finds it beside the client.
            "win32" => build.system.file,
            _ => &build.start,
        };
        says_one(&format!("{} call increment -- {server} serve counter", build.start))?;
        let size = fs::metadata(&build.program).map_or(0, |it| it.len()) >> 20;
        made.push(format!("{file} ({size} MiB unpacked)"));
    }
    Ok(made.join(", "))
}

/// The name of an archive.
fn archive_name(release: &Release, system: &System) -> String {
    let ending = if system.os == "win32" { "zip" } else { "tar.gz" };
    format!("bowline-{}-{}.{ending}", release.version, system.target.name())
}

fn archive(release: &Release, build: &Build) -> Result<String, String> {
    let file = archive_name(release, build.system);
    let name = file.trim_end_matches(".tar.gz").trim_end_matches(".zip");
    let folder = format!("target/release-tree/{name}");
    renew(&folder)?;
    copy(&build.program, &format!("{folder}/{}", build.system.file))?;
    copy("packaging/README.md", &format!("{folder}/README.md"))?;
    for file in ["LICENSE-MIT", "LICENSE-APACHE"] {
        copy(file, &format!("{folder}/{file}"))?;
    }
    let path = format!("{}/{file}", release.place);
    if build.system.os == "win32" {
        must(&format!("python3 packaging/release/pack.py zip {path} {folder}"))?;
        return Ok(file);
    }
    let whole = path.trim_end_matches(".gz");
    must(&format!(
        "tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --format=ustar \
         -C target/release-tree -cf {whole} {name}"
    ))?;
    must(&format!("gzip --no-name --force {whole}"))?;
    Ok(file)
}

/// A program that names the folders in which it was built differs elsewhere.
fn names_no_place(program: &str) -> Result<(), String> {
    let bytes = fs::read(program).map_err(|error| format!("{program}: {error}"))?;
    let here = std::env::current_dir().map_err(|error| error.to_string())?;
    let home = std::env::var("HOME").unwrap_or_default() + "/.cargo";
    for place in [here.to_string_lossy().as_ref(), &home] {
        let mut parts = bytes.windows(place.len());
        if let Some(at) = parts.position(|part| part == place.as_bytes()) {
            let end = bytes.len().min(at + 200);
            let said = String::from_utf8_lossy(&bytes[at..end]).into_owned();
            return Err(format!("{program} names a folder of this machine: {said}"));
        }
    }
    Ok(())
}

/// Runs a call of the counter.
fn says_one(line: &str) -> Result<(), String> {
    let said = must(line)?;
    if said.replace('\r', "").ends_with("\n1\n") { Ok(()) } else { Err(said) }
}

/// The digests of all files, as `sha256sum` checks them.
fn sums(release: &Release) -> Result<String, String> {
    let place = release.place;
    let mut names = Vec::new();
    for entry in fs::read_dir(place).map_err(|error| error.to_string())? {
        let path = entry.map_err(|error| error.to_string())?.path();
        if path.is_file() {
            names.push(path.to_string_lossy().into_owned());
        }
    }
    names.sort();
    let mut text = String::new();
    for name in &names {
        text +=
            &format!("{}  {}\n", sha256(name)?, name.trim_start_matches(place).trim_matches('/'));
    }
    write(&format!("{place}/SHA256SUMS"), &text)?;
    must(&format!("env -C {place} sha256sum --check --quiet SHA256SUMS"))?;
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

/// Runs a program that must succeed, within half an hour.
fn must(line: &str) -> Result<String, String> {
    let ran = run_within(command(line), Duration::from_secs(30 * 60));
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
