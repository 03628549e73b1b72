//! Bundles of the ready-made servers for desktop clients (`.mcpb`), and their entries for the
//! registry (`server.json`).

use std::fs;

use super::{DOWNLOADS, PLACE, Release, copy, fill, must, renew, sha256, write};
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
    let mut entries = String::new();
    for (name, about) in SERVERS {
        let fields = [("NAME", name), ("ABOUT", about), ("VERSION", release.version.as_str())];
        let folder = format!("target/release-tree/mcpb/{name}");
        renew(&folder)?;
        let manifest = format!("{folder}/manifest.json");
        write(&manifest, &fill("packaging/mcpb/manifest.json", &fields)?)?;
        must(&format!(
            "node target/mcpb/node_modules/@anthropic-ai/mcpb/dist/cli/cli.js validate {manifest}"
        ))?;
        copy(&release.program, &format!("{folder}/server/bowline"))?;
        let bundle = format!("{PLACE}/bowline-{name}-{}-linux-x64.mcpb", release.version);
        must(&format!("python3 packaging/release/pack.py zip {bundle} {folder}"))?;
        attempt(name, &bundle, &release.program)?;
        let sum = sha256(&bundle)?;
        let fields = [&fields[..], &[("DOWNLOADS", &downloads), ("SHA256", &sum)]].concat();
        let entry = format!("{PLACE}/{name}.server.json");
        write(&entry, &fill("packaging/mcpb/server.json", &fields)?)?;
        entries += &format!(" {entry}");
    }
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
    let python = SCHEMAS.install()?;
    match must(&format!("{} packaging/release/pack.py validate{entries}", python.display())) {
        Ok(_) => Ok("valid"),
        Err(said) if said.contains("URLError") || said.contains("timed out") => {
            Ok("not validated: their schema cannot be downloaded here")
        }
        Err(said) => Err(said),
    }
}
