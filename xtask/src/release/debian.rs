//! The Debian package: the program, manual pages, completions and a unit for the gateway. It is
//! installed into an empty root, used there, and removed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::{Release, copy, must, read, renew, write};

const TREE: &str = "target/release-tree/debian";
const ROOT: &str = "target/release-tree/root";

/// Where completions of a shell belong.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/bowline"),
    ("zsh", "usr/share/zsh/vendor-completions/_bowline"),
    ("fish", "usr/share/fish/vendor_completions.d/bowline.fish"),
];

pub(super) fn pack(release: &Release) -> Result<String, String> {
    lay_out(release)?;
    let name = format!("bowline_{}_amd64.deb", release.version);
    // Times in the archive are those of the tree.
    must(&format!("find {TREE} -exec touch --no-dereference --date=@0 {{}} +"))?;
    let package = format!("{}/{name}", release.place);
    must(&format!(
        "env SOURCE_DATE_EPOCH=0 dpkg-deb --root-owner-group -Zxz -z3 --build {TREE} {package}"
    ))?;
    attempt(&package)?;
    Ok(format!("{name}, installed, used and removed"))
}

fn lay_out(release: &Release) -> Result<(), String> {
    renew(TREE)?;
    copy(&release.program, &format!("{TREE}/usr/bin/bowline"))?;
    mode(&format!("{TREE}/usr/bin/bowline"), 0o755)?;
    let pages = format!("{TREE}/usr/share/man/man1");
    must(&format!("{} man --dir {pages}", release.program))?;
    must(&format!("gzip --no-name --best --recursive {pages}"))?;
    for (shell, file) in SHELLS {
        let script = must(&format!("{} completions {shell}", release.program))?;
        // The first line is the command.
        let script = script.split_once('\n').map_or("", |(_, script)| script);
        put(file, script)?;
    }
    copy(
        "packaging/debian/bowline-gateway.service",
        &format!("{TREE}/usr/lib/systemd/system/bowline-gateway.service"),
    )?;
    copy("examples/gateway.toml", &format!("{TREE}/etc/bowline/gateway.toml"))?;
    let licences = read("LICENSE-MIT")? + "\n\n" + &read("LICENSE-APACHE")?;
    put("usr/share/doc/bowline/copyright", &licences)?;
    let bytes = must(&format!("du --summarize --apparent-size --block-size=1024 {TREE}"))?;
    let size = bytes.lines().last().unwrap_or_default().split_whitespace().next().unwrap_or("0");
    let control = read("packaging/debian/control")?;
    let control = control.replace("VERSION", &release.version).replace("SIZE", size);
    put("DEBIAN/control", &control)?;
    put("DEBIAN/conffiles", "/etc/bowline/gateway.toml\n")?;
    for script in ["postinst", "prerm", "postrm"] {
        copy(&format!("packaging/debian/{script}"), &format!("{TREE}/DEBIAN/{script}"))?;
        mode(&format!("{TREE}/DEBIAN/{script}"), 0o755)?;
    }
    Ok(())
}

fn put(file: &str, text: &str) -> Result<(), String> {
    let path = format!("{TREE}/{file}");
    let folder = Path::new(&path).parent().unwrap_or_else(|| Path::new(TREE));
    fs::create_dir_all(folder).map_err(|error| format!("{path}: {error}"))?;
    write(&path, text)?;
    mode(&path, 0o644)
}

fn mode(file: &str, mode: u32) -> Result<(), String> {
    fs::set_permissions(file, fs::Permissions::from_mode(mode))
        .map_err(|error| format!("{file}: {error}"))
}

/// Installs it into an empty root, uses what it brought, and removes it without a trace.
fn attempt(package: &str) -> Result<(), String> {
    renew(ROOT)?;
    for folder in ["info", "updates", "triggers"] {
        let folder = format!("{ROOT}/var/lib/dpkg/{folder}");
        fs::create_dir_all(&folder).map_err(|error| format!("{folder}: {error}"))?;
    }
    write(&format!("{ROOT}/var/lib/dpkg/status"), "")?;
    // Its scripts run outside the root, so the way to them must not depend on where.
    let root = std::path::absolute(ROOT).map_err(|error| error.to_string())?;
    let root = root.display();
    let dpkg = format!(
        "dpkg --root={root} --force-not-root --force-script-chrootless --force-bad-path --log=/dev/null"
    );
    must(&format!("{dpkg} --install {package}"))?;
    let program = format!("{ROOT}/usr/bin/bowline");
    must(&format!("{program} --version"))?;
    must(&format!("{program} gateway check {ROOT}/etc/bowline/gateway.toml"))?;
    let called = must(&format!("{program} call increment -- {program} serve counter"))?;
    if !called.ends_with("\n1\n") {
        return Err(called);
    }
    must(&format!("gzip --test {ROOT}/usr/share/man/man1/bowline-gateway.1.gz"))?;
    must(&format!("bash -n {ROOT}/{}", SHELLS[0].1))?;
    verify_unit(&program)?;
    must(&format!("{dpkg} --purge bowline"))?;
    let left = must(&format!("find {ROOT}/usr {ROOT}/etc -type f"));
    // Folders that the package brought are gone as well.
    match left {
        Ok(said) if said.lines().count() > 1 => Err(format!("left behind:\n{said}")),
        _ => Ok(()),
    }
}

/// Has systemd, where it is, read the unit, which names the program that is installed here.
fn verify_unit(program: &str) -> Result<(), String> {
    const UNIT: &str = "bowline-gateway.service";
    if must("systemd-analyze --version").is_err() {
        return Ok(());
    }
    let program = std::path::absolute(program).map_err(|error| format!("{program}: {error}"))?;
    let unit = read(&format!("{ROOT}/usr/lib/systemd/system/{UNIT}"))?;
    let file = format!("target/release-tree/{UNIT}");
    write(&file, &unit.replace("/usr/bin/bowline", &program.to_string_lossy()))?;
    let said = must(&format!("systemd-analyze verify --man=no {file}"))?;
    // It only warns of what it ignores, and of units of other packages as well.
    match said.lines().skip(1).any(|line| line.contains(UNIT)) {
        true => Err(said),
        false => Ok(()),
    }
}
