//! Bundles of the ready-made servers for desktop clients (`.mcpb`), and their entries for the
//! registry (`server.json`).

use std::fs;

use super::{DOWNLOADS, Release, copy, fill, must, renew, sha256, write};
use crate::install;
use crate::install::{Environment, Language};

/// The ready-made servers, and what they are in a sentence of at most a hundred characters.
const SERVERS: [(&str, &str); 4] = [
    (
        "mcp-logger",
        "Sends syslog: RFC 3164 and 5424, over UDP, TCP, TLS and Unix sockets, in any encoding",
    ),
    ("counter", "A counter: tools, resources, prompts, subscriptions, progress, an app and a task"),
    ("example", "A calculator that learns functions, and the weather of any place"),
    ("operator", "Speaks aloud: operators with voices, styles and a queue"),
];

/// The makers' own program, which knows what clients accept.
const VALIDATOR: (&str, &str) = ("@anthropic-ai/mcpb", "2.1.2");

/// What reads the schema of the registry.
const SCHEMAS: Environment = Environment {
    source: "packaging/release",
    place: "target/release-tree",
    folder: "schemas",
    inputs: &["requirements.txt"],
    language: Language::Python,
};

pub(super) fn pack(release: &Release) -> Result<String, String> {
    let validator = std::path::Path::new("target/mcpb");
    install::package(validator, VALIDATOR.0, VALIDATOR.1)?;
    let downloads = format!("{DOWNLOADS}{}", release.version);
    // A bundle has one program for each system, whatever its processor.
    let builds: Vec<_> = release.builds.iter().filter(|build| build.system.cpu == "x64").collect();
    let platforms: Vec<_> = builds.iter().map(|it| format!("\"{}\"", it.system.os)).collect();
    let platforms = platforms.join(", ");
    let mut entries = String::new();
    for (name, about) in SERVERS {
        let version = release.version.as_str();
        let fields =
            [("NAME", name), ("ABOUT", about), ("VERSION", version), ("PLATFORMS", &platforms)];
        let folder = format!("target/release-tree/mcpb/{name}");
        renew(&folder)?;
        let manifest = format!("{folder}/manifest.json");
        write(&manifest, &fill("packaging/mcpb/manifest.json", &fields)?)?;
        must(&format!(
            "node target/mcpb/node_modules/@anthropic-ai/mcpb/dist/cli/cli.js validate {manifest}"
        ))?;
        for build in &builds {
            copy(&build.program, &format!("{folder}/server/{}", build.system.file))?;
        }
        let bundle = format!("{}/bowline-{name}-{version}.mcpb", release.place);
        must(&format!("python3 packaging/release/pack.py zip {bundle} {folder}"))?;
        attempt(name, &bundle, &release.program)?;
        let sum = sha256(&bundle)?;
        let fields = [&fields[..], &[("DOWNLOADS", &downloads), ("SHA256", &sum)]].concat();
        let entry = format!("{}/{name}.server.json", release.place);
        write(&entry, &fill("packaging/mcpb/server.json", &fields)?)?;
        entries += &format!(" {entry}");
    }
    let entry = format!("{}/bowline.server.json", release.place);
    let all = [("VERSION", release.version.as_str())];
    write(&entry, &fill("packaging/npm/server.json", &all)?)?;
    entries += &format!(" {entry}");
    Ok(format!("{} bundles, started; entries {}", SERVERS.len(), validate(&entries)?))
}

/// Unpacks a bundle and starts it as its manifest says.
fn attempt(name: &str, bundle: &str, client: &str) -> Result<(), String> {
    let folder = "target/release-tree/mcpb/used";
    renew(folder)?;
    must(&format!("unzip -q {bundle} -d {folder}"))?;
    must(&format!("{client} info -- {folder}/server/bowline serve {name}")).map(drop)
}

/// Checks the entries against the schema that they name, if that can be downloaded.
fn validate(entries: &str) -> Result<&'static str, String> {
    fs::create_dir_all(SCHEMAS.place).map_err(|error| error.to_string())?;
    let requirements = format!("{}/requirements.txt", SCHEMAS.place);
    copy("packaging/release/requirements.txt", &requirements)?;
    SCHEMAS.copy(&[])?;
    let validated = SCHEMAS.install().and_then(|python| {
        must(&format!("{} packaging/release/pack.py validate{entries}", python.display()))
    });
    match validated {
        Ok(_) => Ok("valid"),
        Err(said) if is_offline(&said) => {
            Ok("not validated: their schema, or what reads it, cannot be downloaded here")
        }
        Err(said) => Err(said),
    }
}

/// Whether pip or Python's library failed because of the network.
fn is_offline(said: &str) -> bool {
    const SIGNS: [&str; 5] =
        ["URLError", "timed out", "ConnectionError", "ConnectTimeoutError", "ProxyError"];
    SIGNS.iter().any(|sign| said.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::*;

    #[test]
    fn an_entry_names_only_packages_that_name_it() {
        let server = read("../packaging/mcpb/server.json").unwrap();
        assert!(!server.contains("\"npm\""), "the package names another server");
        let name = |file: &str, member: &str| {
            let text = read(file).unwrap();
            let line = text.lines().find(|line| line.trim().starts_with(member)).unwrap();
            line.split('"').nth(3).unwrap().to_owned()
        };
        let (package, server) = ("../packaging/npm/package.json", "../packaging/npm/server.json");
        assert_eq!(name(package, "\"mcpName\""), name(server, "\"name\""));
        assert_eq!(name(package, "\"name\""), name(server, "\"identifier\""));
    }

    #[test]
    fn a_missing_network_is_told_from_a_wrong_pin() {
        let gone = "WARNING: Retrying after connection broken by \
                    'NewConnectionError('...: Name or service not known')'\nERROR: No matching";
        assert!(is_offline(gone));
        assert!(!is_offline("ERROR: No matching distribution found for jsonschema==0.0.0"));
    }
}
