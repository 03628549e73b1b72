//! Every crate as it would be published: complete, described, with its licences.

use std::fs;

use super::{Release, must};
use crate::platforms::NOT_PUBLISHED;

/// What each package must have, beside its manifest.
const FILES: [&str; 3] = ["README.md", "LICENSE-MIT", "LICENSE-APACHE"];
/// What its manifest must say.
const MEMBERS: [&str; 6] =
    ["description = ", "keywords = ", "categories = ", "license = ", "readme = ", "repository = "];

/// Packages all of them. They are compiled by the tests, not here.
pub(super) fn pack(release: &Release) -> Result<String, String> {
    let excluded: String = NOT_PUBLISHED.iter().map(|name| format!(" --exclude {name}")).collect();
    // Those of an earlier run are in the way of nothing but this count.
    let _ = fs::remove_dir_all("target/package");
    must(&format!(
        "cargo package --workspace{excluded} --no-verify --allow-dirty --offline --quiet"
    ))?;
    let ending = format!("-{}.crate", release.version);
    let (mut count, mut problems) = (0, String::new());
    for entry in fs::read_dir("target/package").map_err(|error| error.to_string())? {
        let path = entry.map_err(|error| error.to_string())?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(package) = name.strip_suffix(&ending) else { continue };
        count += 1;
        let path = path.display();
        let files = must(&format!("tar -tzf {path}"))?;
        let root = format!("{package}-{}", release.version);
        for file in FILES {
            if !files.lines().any(|line| line == format!("{root}/{file}")) {
                problems += &format!("{package}: {file} is missing\n");
            }
        }
        let manifest = must(&format!("tar -xzOf {path} {root}/Cargo.toml"))?;
        for member in
            MEMBERS.iter().filter(|it| !manifest.lines().any(|line| line.starts_with(*it)))
        {
            problems +=
                &format!("{package}: its manifest has no {}\n", member.trim_end_matches(" = "));
        }
        if !manifest.contains("[package.metadata.docs.rs]") {
            problems += &format!("{package}: its manifest says nothing to docs.rs\n");
        }
    }
    match (count, problems.is_empty()) {
        (0, _) => Err("no package was made".to_owned()),
        (_, true) => Ok(format!("{count} packages with README, licences and metadata")),
        (_, false) => Err(problems),
    }
}
