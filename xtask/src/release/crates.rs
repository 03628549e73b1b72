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
        let readme = must(&format!("tar -xzOf {path} {root}/README.md")).unwrap_or_default();
        for link in relative_links(&readme) {
            problems += &format!("{package}: README.md links to {link}, which is not beside it\n");
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

/// Links that lead to other files of the repository, which a registry does not have.
fn relative_links(text: &str) -> impl Iterator<Item = &str> {
    let links = text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap_or_default());
    links.filter(|link| !link.starts_with("https://") && !link.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_published_links_to_nothing_beside_it() {
        let text = "[a](https://example.com), [b](#below), [c](docs/c.md)";
        assert_eq!(relative_links(text).collect::<Vec<_>>(), ["docs/c.md"]);
        for folder in ["../crates", "../servers"] {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                let file = entry.path().join("README.md");
                let text = fs::read_to_string(&file).unwrap_or_default();
                assert_eq!(relative_links(&text).next(), None, "{}", file.display());
            }
        }
    }

    #[test]
    fn what_is_not_published_says_so() {
        let mut found = Vec::new();
        let folders = ["..", "../crates", "../interop", "../servers"];
        for entry in folders.iter().flat_map(|it| fs::read_dir(it).unwrap().flatten()) {
            let manifest = fs::read_to_string(entry.path().join("Cargo.toml")).unwrap_or_default();
            // Only members of the workspace inherit its edition.
            if manifest.contains("publish = false") && manifest.contains("edition.workspace") {
                let name = manifest.lines().find_map(|line| line.strip_prefix("name = "));
                found.push(name.unwrap().trim_matches('"').to_owned());
            }
        }
        found.sort();
        assert_eq!(found, NOT_PUBLISHED);
    }
}
