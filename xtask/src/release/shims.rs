//! Packages for npm and `PyPI` that carry the program: made, installed from the local file into an
//! empty folder, and run.

use std::path::Path;

use super::{Build, Release, System, copy, fill, must, renew, says_one, write};

pub(super) fn pack(release: &Release) -> Result<String, String> {
    let npm = npm(release)?;
    let python = python(release)?;
    Ok(format!("{npm}; {python}"))
}

fn npm(release: &Release) -> Result<String, String> {
    let version = release.version.as_str();
    let main = "target/release-tree/npm/bowline";
    renew(main)?;
    let mut carriers = Vec::new();
    for build in &release.builds {
        let System { os, cpu, file, .. } = build.system;
        let name = format!("bowline-{os}-{cpu}");
        let folder = format!("target/release-tree/npm/{name}");
        renew(&folder)?;
        let fields =
            [("VERSION", version), ("NAME", &name), ("OS", os), ("CPU", cpu), ("FILE", file)];
        write(&format!("{folder}/package.json"), &fill("packaging/npm/platform.json", &fields)?)?;
        copy(&build.program, &format!("{folder}/{file}"))?;
        must(&format!("npm pack --silent --pack-destination {} ./{folder}", release.place))?;
        carriers.push(format!("\"{name}\": \"{version}\""));
    }
    let fields = [("VERSION", version), ("CARRIERS", &carriers.join(", "))];
    write(&format!("{main}/package.json"), &fill("packaging/npm/package.json", &fields)?)?;
    copy("packaging/npm/bowline.js", &format!("{main}/bowline.js"))?;
    copy("packaging/README.md", &format!("{main}/README.md"))?;
    must(&format!("npm pack --silent --pack-destination {} ./{main}", release.place))?;
    attempt_npm(release)?;
    Ok("npx bowline".to_owned())
}

/// Installs the packages for this machine, uses them and removes them.
fn attempt_npm(release: &Release) -> Result<(), String> {
    let place = "target/release-tree/npm/used";
    renew(place)?;
    write(&format!("{place}/package.json"), "{ \"private\": true }\n")?;
    let file = |name: &str| -> Result<String, String> {
        let path = format!("{}/{name}-{}.tgz", release.place, release.version);
        let path = std::path::absolute(path).map_err(|error| error.to_string())?;
        Ok(path.display().to_string())
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
        false => Ok(()),
    }
}

fn python(release: &Release) -> Result<String, String> {
    for Build { system, program, .. } in &release.builds {
        must(&format!(
            "python3 packaging/release/pack.py wheel {} {program} {} packaging/README.md {} {}",
            release.place, release.version, system.wheel, system.file
        ))?;
    }
    let wheel = format!(
        "{}/bowline_mcp-{}-py3-none-{}.whl",
        release.place, release.version, release.builds[0].system.wheel
    );
    let place = "target/release-tree/python";
    must(&format!("python3 -m venv --clear {place}"))?;
    let pip = format!("{place}/bin/python -m pip --quiet --disable-pip-version-check");
    must(&format!("{pip} install --no-index {wheel}"))?;
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
