//! Packages for npm and `PyPI` that carry the program: made, installed from the local file into an
//! empty folder, and run.

use std::fs;
use std::path::Path;

use super::{PLACE, Release, copy, fill, must, renew, write};

pub(super) fn pack(release: &Release) -> Result<String, String> {
    let npm = npm(release)?;
    let python = python(release)?;
    Ok(format!("{npm}; {python}"))
}

fn npm(release: &Release) -> Result<String, String> {
    let fields = [("VERSION", release.version.as_str())];
    let (main, carrier) = ("target/release-tree/npm/bowline", "target/release-tree/npm/linux-x64");
    renew(main)?;
    renew(carrier)?;
    write(&format!("{main}/package.json"), &fill("packaging/npm/package.json", &fields)?)?;
    copy("packaging/npm/bowline.js", &format!("{main}/bowline.js"))?;
    copy("crates/bowline-cli/README.md", &format!("{main}/README.md"))?;
    write(&format!("{carrier}/package.json"), &fill("packaging/npm/platform.json", &fields)?)?;
    copy(&release.program, &format!("{carrier}/bowline"))?;
    must(&format!("npm pack --silent --pack-destination {PLACE} ./{main} ./{carrier}"))?;
    let place = "target/release-tree/npm/used";
    renew(place)?;
    write(&format!("{place}/package.json"), "{ \"private\": true }\n")?;
    let version = &release.version;
    let file = |name: &str| -> Result<String, String> {
        let path = std::path::absolute(format!("{PLACE}/{name}-{version}.tgz"));
        Ok(path.map_err(|error| error.to_string())?.display().to_string())
    };
    // Without a network: nothing but the two files is needed.
    must(&format!(
        "npm install --silent --offline --no-audit --no-fund --prefix {place} {} {}",
        file("bowline-linux-x64")?,
        file("bowline")?
    ))?;
    let npx = format!("npx --offline --no-install --prefix {place} bowline");
    must(&format!("{npx} --version"))?;
    says_one(&format!("{npx} call increment -- {} serve counter", release.program))?;
    must(&format!("npm uninstall --silent --offline --prefix {place} bowline bowline-linux-x64"))?;
    match Path::new(&format!("{place}/node_modules/.bin/bowline")).exists() {
        true => Err("npm uninstall left the command behind".to_owned()),
        false => Ok("npx bowline".to_owned()),
    }
}

fn python(release: &Release) -> Result<String, String> {
    let Release { version, program } = release;
    must(&format!(
        "python3 packaging/release/pack.py wheel {PLACE} {program} {version} \
         crates/bowline-cli/README.md"
    ))?;
    let wheel = fs::read_dir(PLACE).map_err(|error| error.to_string())?.flatten();
    let wheel =
        wheel.map(|entry| entry.path()).find(|it| it.extension().is_some_and(|it| it == "whl"));
    let wheel = wheel.ok_or("there is no wheel")?;
    let place = "target/release-tree/python";
    must(&format!("python3 -m venv --clear {place}"))?;
    let pip = format!("{place}/bin/python -m pip --quiet --disable-pip-version-check");
    must(&format!("{pip} install --no-index {}", wheel.display()))?;
    // The second name is that of the package, for `uvx bowline-mcp`.
    for name in ["bowline", "bowline-mcp"] {
        says_one(&format!(
            "{place}/bin/{name} call increment -- {place}/bin/bowline serve counter"
        ))?;
    }
    must(&format!("{pip} uninstall --yes bowline-mcp"))?;
    match Path::new(&format!("{place}/bin/bowline")).exists() {
        true => Err("pip uninstall left the command behind".to_owned()),
        false => Ok("pip install bowline-mcp".to_owned()),
    }
}

/// Runs a call of the counter.
fn says_one(line: &str) -> Result<(), String> {
    let said = must(line)?;
    if said.ends_with("\n1\n") { Ok(()) } else { Err(said) }
}
