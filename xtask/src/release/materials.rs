//! The bill of materials: every crate that is compiled into the program, in `CycloneDX`.

use std::collections::BTreeMap;

use super::{Release, must, read};

/// A crate.
struct Component {
    name: String,
    version: String,
    license: String,
    is_ours: bool,
}

/// The digests of crates, by name and version.
type Sums = BTreeMap<(String, String), String>;

fn bill(components: &[Component], sums: &Sums, version: &str) -> String {
    let parts: Vec<String> = components
        .iter()
        .map(|it| {
            let Component { name, version, license, .. } = it;
            let url = format!("pkg:cargo/{name}@{version}");
            let mut part = format!(
                "    {{\n      \"type\": \"library\",\n      \"bom-ref\": \"{url}\",\n      \
                 \"name\": \"{name}\",\n      \"version\": \"{version}\",\n      \
                 \"purl\": \"{url}\",\n      \"licenses\": [{{ \"expression\": \"{license}\" }}]"
            );
            if let Some(sum) = sums.get(&(name.clone(), version.clone())) {
                part += &format!(
                    ",\n      \"hashes\": [{{ \"alg\": \"SHA-256\", \"content\": \"{sum}\" }}]"
                );
            }
            part + "\n    }"
        })
        .collect();
    format!(
        "{{\n  \"bomFormat\": \"CycloneDX\",\n  \"specVersion\": \"1.5\",\n  \"version\": 1,\n  \
         \"metadata\": {{\n    \"component\": {{ \"type\": \"application\", \"name\": \"bowline\", \
         \"version\": \"{version}\" }}\n  }},\n  \"components\": [\n{}\n  ]\n}}\n",
        parts.join(",\n")
    )
}

/// Writes the bill. Every component has a licence, and a digest unless it is ours.
pub(super) fn write(release: &Release) -> Result<String, String> {
    let tree = must(
        "cargo tree --offline --package bowline-cli --edges normal --prefix none \
         --target x86_64-unknown-linux-musl --format {p}|{l}",
    )?;
    let components = components(&tree);
    let sums = sums(&read("Cargo.lock")?);
    for it in &components {
        let has_sum = sums.contains_key(&(it.name.clone(), it.version.clone()));
        if it.license.is_empty() || !(it.is_ours || has_sum) {
            return Err(format!("{} {} has no licence or no digest", it.name, it.version));
        }
    }
    let text = bill(&components, &sums, &release.version);
    super::write(&format!("{}/bowline-{}.cdx.json", release.place, release.version), &text)?;
    Ok(format!("{} components", components.len()))
}

/// Reads lines such as `bytes v1.10.1|MIT` and `bowline v0.1.0 (/path)|MIT OR Apache-2.0`.
fn components(tree: &str) -> Vec<Component> {
    let mut all = BTreeMap::new();
    for line in tree.lines() {
        let Some((package, license)) = line.split_once('|') else { continue };
        let mut words = package.split(' ');
        let (Some(name), Some(version)) = (words.next(), words.next()) else { continue };
        let Some(version) = version.strip_prefix('v') else { continue };
        let is_ours = words.any(|word| word.starts_with("(/"));
        // What has been printed before is marked.
        let license = license.trim_end_matches(" (*)").replace('/', " OR ").replace("  ", " ");
        let (name, version) = (name.to_owned(), version.to_owned());
        let key = (name.clone(), version.clone());
        all.insert(key, Component { name, version, license, is_ours });
    }
    all.into_values().collect()
}

/// The digests in a lock file, by name and version.
fn sums(lock: &str) -> Sums {
    let member = |block: &str, name: &str| {
        let start = format!("{name} = \"");
        let line = block.lines().find_map(|line| line.strip_prefix(start.as_str()))?;
        Some(line.trim_end_matches('"').to_owned())
    };
    let blocks = lock.split("[[package]]").skip(1);
    let found = blocks.filter_map(|block| {
        let key = (member(block, "name")?, member(block, "version")?);
        Some((key, member(block, "checksum")?))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_are_read_once_with_their_digests() {
        let tree = "$ cargo tree\nbowline-cli v0.1.0 (/x/y)|MIT OR Apache-2.0\n\
                    bytes v1.10.1|MIT\nbytes v1.10.1|MIT (*)\nhttp v1.0.0|MIT/Apache-2.0\n";
        let found = components(tree);
        let names: Vec<_> = found.iter().map(|it| (it.name.as_str(), it.is_ours)).collect();
        assert_eq!(names, [("bowline-cli", true), ("bytes", false), ("http", false)]);
        assert_eq!(found[2].license, "MIT OR Apache-2.0");
        let lock = "[[package]]\nname = \"bytes\"\nversion = \"1.10.1\"\nchecksum = \"ab\"\n";
        let sums = sums(lock);
        assert_eq!(sums[&("bytes".to_owned(), "1.10.1".to_owned())], "ab");
        let text = bill(&found, &sums, "0.1.0");
        assert!(text.contains("\"purl\": \"pkg:cargo/bytes@1.10.1\""), "{text}");
        assert_eq!(text.matches("SHA-256").count(), 1);
    }
}
