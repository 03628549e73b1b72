//! The container, and the manifests of other package managers.

use std::path::Path;

use super::{DOWNLOADS, PLACE, Release, copy, fill, must, sha256, write};

/// Where systems keep the certificates that they trust.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Lays out the context of the image, and builds it where there is an engine. Elsewhere its steps
/// are what `cargo xtask platforms` tries: the program in an empty root.
pub(super) fn pack(release: &Release) -> Result<String, String> {
    let folder = format!("{PLACE}/docker");
    copy("packaging/docker/Dockerfile", &format!("{folder}/Dockerfile"))?;
    copy(&release.program, &format!("{folder}/bowline"))?;
    copy(CERTIFICATES, &format!("{folder}/ca-certificates.crt"))?;
    for line in super::read(&format!("{folder}/Dockerfile"))?.lines() {
        let source = line.strip_prefix("COPY ").and_then(|rest| rest.split(' ').next());
        if let Some(source) = source.filter(|it| !Path::new(&folder).join(it).exists()) {
            return Err(format!("the Dockerfile copies {source}, which is not there"));
        }
    }
    let engine =
        ["docker", "podman"].into_iter().find(|name| must(&format!("{name} info")).is_ok());
    let Some(engine) = engine else { return Ok("its context; no engine to build it".to_owned()) };
    let image = format!("bowline:{}", release.version);
    must(&format!("{engine} build --quiet --tag {image} {folder}"))?;
    must(&format!("{engine} run --rm {image} --version"))?;
    must(&format!("{engine} image rm {image}"))?;
    Ok(format!("built and run by {engine}"))
}

/// Fills in what is known. Programs for macOS and Windows are built on those systems, and their
/// digests are filled in then.
pub(super) fn templates(release: &Release) -> Result<String, String> {
    let version = release.version.as_str();
    let linux = sha256(&format!("{PLACE}/bowline-{version}-x86_64-unknown-linux-musl.tar.gz"))?;
    let downloads = format!("{DOWNLOADS}{version}");
    let fields =
        [("VERSION", version), ("DOWNLOADS", downloads.as_str()), ("SHA256_LINUX_X64", &linux)];
    let mut open = 0;
    for file in ["homebrew/bowline.rb", "scoop/bowline.json", "winget/bowline.yaml"] {
        let text = fill(&format!("packaging/{file}"), &fields)?;
        open += text.matches("{{").count();
        let name = Path::new(file).file_name().unwrap_or_default().to_string_lossy();
        write(&format!("{PLACE}/{name}"), &text)?;
    }
    Ok(format!("for Homebrew, Scoop and winget; {open} digests of other systems are open"))
}
