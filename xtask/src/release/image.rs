//! The container, and the manifests of other package managers.

use std::path::Path;

use super::{
    Build, DOWNLOADS, Release, System, archive_name, copy, fill, must, renew, sha256, write,
};
use crate::need::is_root;
use crate::platforms::put_null;

/// The manifests of winget, which are three.
const WINGET: &str = "winget/BowlineMcp.Bowline";

/// Where systems keep the certificates that they trust.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// The root that the image would have.
const ROOT: &str = "target/release-tree/image";

/// Lays out the context of the image, and builds it where there is an engine. Elsewhere its steps
/// are taken without one.
pub(super) fn pack(release: &Release) -> Result<String, String> {
    let folder = format!("{}/docker", release.place);
    copy("packaging/docker/Dockerfile", &format!("{folder}/Dockerfile"))?;
    copy(&release.program, &format!("{folder}/bowline"))?;
    copy(CERTIFICATES, &format!("{folder}/ca-certificates.crt"))?;
    let steps = super::read(&format!("{folder}/Dockerfile"))?;
    lay_out(&steps, &folder)?;
    let engine =
        ["docker", "podman"].into_iter().find(|name| must(&format!("{name} info")).is_ok());
    let Some(engine) = engine else {
        if release.is_static {
            attempt(&steps)?;
            return Ok("its steps, run in a root of its own; no engine here".to_owned());
        }
        return Ok("its context; no engine here, and no static program".to_owned());
    };
    let image = format!("bowline:{}", release.version);
    must(&format!("{engine} build --quiet --tag {image} {folder}"))?;
    must(&format!("{engine} run --rm {image} --version"))?;
    must(&format!("{engine} image rm {image}"))?;
    Ok(format!("built and run by {engine}"))
}

/// Copies into the root what the image gets.
fn lay_out(steps: &str, folder: &str) -> Result<(), String> {
    renew(ROOT)?;
    for line in steps.lines() {
        let mut words = line.split(' ');
        if let (Some("COPY"), Some(from), Some(to)) = (words.next(), words.next(), words.next()) {
            copy(&format!("{folder}/{from}"), &format!("{ROOT}{to}"))?;
        }
    }
    put_null(ROOT)
}

/// Runs the program in the root as the image would: by its entry point, and by its name, as those
/// do who replace the entry point. As the image's user, if this one may become it.
fn attempt(steps: &str) -> Result<(), String> {
    let named = |what: &str| steps.lines().find_map(|line| line.strip_prefix(what));
    let user = named("USER ").ok_or("the Dockerfile names no user")?;
    let entry = named("ENTRYPOINT ").ok_or("the Dockerfile has no entry point")?;
    let entry = entry.trim_matches(['[', ']', '"']);
    let inside = match is_root() {
        true => format!("chroot --userspec={user} {ROOT}"),
        false => format!("unshare --map-root-user chroot {ROOT}"),
    };
    // Where engines look for a program that has no path.
    let path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    for program in [entry, "bowline"] {
        let said = must(&format!(
            "env --ignore-environment {path} {inside} {program} call increment -- {entry} serve \
             counter"
        ))?;
        if !said.ends_with("\n1\n") {
            return Err(said);
        }
    }
    Ok(())
}

/// Fills in what is known. A program for macOS is built on that system, and its digest is filled in
/// then.
pub(super) fn templates(release: &Release) -> Result<String, String> {
    let (version, place) = (release.version.as_str(), release.place);
    let downloads = format!("{DOWNLOADS}{version}");
    let mut sums = Vec::new();
    for Build { system, .. } in &release.builds {
        let sum = sha256(&format!("{place}/{}", archive_name(release, system)))?;
        let System { os, cpu, .. } = system;
        sums.push((format!("SHA256_{os}_{cpu}").to_uppercase(), sum));
    }
    let mut fields = vec![("VERSION", version), ("DOWNLOADS", downloads.as_str())];
    fields.extend(sums.iter().map(|(name, sum)| (name.as_str(), sum.as_str())));
    let winget = ["", ".installer", ".locale.en-US"].map(|part| format!("{WINGET}{part}.yaml"));
    let others = ["homebrew/bowline.rb", "scoop/bowline.json"].map(str::to_owned);
    let mut open = 0;
    for file in others.iter().chain(&winget) {
        let text = fill(&format!("packaging/{file}"), &fields)?;
        open += text.matches("{{").count();
        let name = Path::new(file).file_name().unwrap_or_default().to_string_lossy();
        write(&format!("{place}/{name}"), &text)?;
    }
    Ok(format!("for Homebrew, Scoop and winget; {open} digests of other systems are open"))
}
