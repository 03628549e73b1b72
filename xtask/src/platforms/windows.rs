//! The program for Windows, under wine.
//!
//! Shown: both ends on stdio, scripts and their quoting, the end of descendants, where settings
//! are, line endings. Wine cannot show what consoles do, such as Ctrl-C and colours there, nor how
//! services, virus scanners and file locks of Windows behave.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use super::tools::{Target, Tools};
use super::{PATIENCE, Part, build, checked};
use crate::process::{Ran, run, run_within};

/// How often to look whether something has begun or ended, as long as patience lasts.
const PAUSE: Duration = Duration::from_millis(100);

/// Wine, with the program in its current folder.
struct Wine<'a> {
    tools: &'a Tools,
    /// Its registry and drives.
    prefix: PathBuf,
    /// Where the program is.
    folder: PathBuf,
}

pub(super) fn part(tools: &Tools) -> Part {
    let mut part = checked(tools, Target::Windows);
    let built = build(tools, Target::Windows);
    part.count("built", built.as_ref().map(drop).map_err(Clone::clone));
    let Ok(built) = built else { return part };
    let wine = match Wine::prepare(tools, &built) {
        Ok(wine) => wine,
        Err(why) => {
            part.count("wine", Err(why));
            return part;
        }
    };
    let counter = ["--", "bowline.exe", "serve", "counter"];
    let with = |words: &[&'static str]| [words, &counter].concat();
    part.count("info", wine.says(&with(&["info"]), "counter"));
    part.count("call", wine.says(&with(&["call", "increment"]), "1\r\n"));
    part.count("check", wine.says(&with(&["check"]), ", 0 broken (must)"));
    part.count("scripts and quoting", wine.scripts());
    part.count("descendants", wine.descendants());
    part.count("settings and CRLF", wine.settings());
    part.count("colours", wine.says(&with(&["tools", "--color", "always"]), "\u{1b}["));
    wine.stop();
    part
}

/// Writes a script that starts a program of Windows. Returns its path.
pub(super) fn starter(tools: &Tools, program: &str) -> Result<String, String> {
    let wine = Wine::prepare(tools, program)?;
    let file = "target/platforms/bowline-under-wine";
    let mut script = "#!/bin/sh\n".to_owned();
    let command = wine.command("bowline.exe", &[]);
    for (name, value) in command.get_envs() {
        let name = name.display();
        script += &match value {
            Some(value) => format!("export {name}='{}'\n", value.display()),
            None => format!("unset {name}\n"),
        };
    }
    let (folder, start) = (wine.folder.display(), command.get_program().display());
    script += &format!("cd '{folder}'\nexec '{start}' bowline.exe \"$@\"\n");
    let written = fs::write(file, script)
        .and_then(|()| fs::set_permissions(file, fs::Permissions::from_mode(0o755)));
    written.map_err(|error| format!("{file}: {error}"))?;
    Ok(file.to_owned())
}

impl<'a> Wine<'a> {
    fn prepare(tools: &'a Tools, built: &str) -> Result<Self, String> {
        let said = |error: std::io::Error| format!("target/platforms: {error}");
        let folder = std::path::absolute("target/platforms/windows").map_err(said)?;
        fs::create_dir_all(&folder).map_err(said)?;
        fs::copy(built, folder.join("bowline.exe")).map_err(said)?;
        let mut library = tools.program("usr/bin/x86_64-w64-mingw32-gcc-win32");
        library.args(["-shared", "-O1", "-o"]).arg(folder.join("bcryptprimitives.dll"));
        library.args(["packaging/platforms/bcryptprimitives.c", "-ladvapi32"]);
        let made = run(library);
        if !made.ok {
            return Err(made.output);
        }
        // Debian's is a script that looks for the real one where it would be installed.
        let server = tools.path("usr/lib/wine/wineserver");
        if fs::read(&server).is_ok_and(|script| script.starts_with(b"#!")) {
            fs::remove_file(&server).map_err(said)?;
            fs::copy(tools.path("usr/lib/wine/wineserver64"), &server).map_err(said)?;
        }
        let prefix = std::path::absolute("target/platforms/wine").map_err(said)?;
        let wine = Self { tools, prefix, folder };
        if !wine.prefix.join("system.reg").exists() {
            // A library of another package, which wine's own need.
            let system = wine.prefix.join("drive_c/windows/system32");
            fs::create_dir_all(&system).map_err(said)?;
            let zlib = tools.path("usr/x86_64-w64-mingw32/lib/zlib1.dll");
            fs::copy(zlib, system.join("zlib1.dll")).map_err(said)?;
            let ran = run_within(wine.command("wineboot", &["--init"]), PATIENCE);
            if !ran.ok {
                return Err(ran.output);
            }
        }
        Ok(wine)
    }

    /// A program for Windows.
    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut wine = self.tools.program("usr/lib/wine/wine64");
        wine.arg(program).args(arguments).current_dir(&self.folder);
        self.environment(&mut wine);
        wine
    }

    fn environment(&self, command: &mut Command) {
        command.env("WINEPREFIX", &self.prefix).env("WINEARCH", "win64").env("WINEDEBUG", "-all");
        // No offers to download a browser or .NET.
        command.env("WINEDLLOVERRIDES", "mscoree,mshtml=").env_remove("DISPLAY");
        // Windows looks in the current folder first; Rust does not.
        command.env("WINEPATH", &self.folder);
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        run_within(self.command("bowline.exe", arguments), PATIENCE)
    }

    fn says(&self, arguments: &[&str], expected: &str) -> Result<(), String> {
        let ran = self.run(arguments);
        // Wine turns line feeds of nobody into others.
        let is_said = ran.said().replace("\r\n", "\n").contains(&expected.replace("\r\n", "\n"));
        if ran.ok && is_said { Ok(()) } else { Err(ran.output) }
    }

    fn write(&self, file: &Path, text: &str) -> Result<(), String> {
        let said = |error: std::io::Error| format!("{}: {error}", file.display());
        let file = self.folder.join(file);
        fs::create_dir_all(file.parent().unwrap_or(&file)).map_err(said)?;
        fs::write(&file, text).map_err(said)
    }

    /// A script is started as `npx` is: without its extension, and its arguments arrive whole.
    fn scripts(&self) -> Result<(), String> {
        let skill = "---\r\nname: tidy\r\ndescription: Tidies & \"sorts\".\r\n---\r\nTidy.\r\n";
        self.write(Path::new("my skills (1)/tidy/SKILL.md"), skill)?;
        self.write(Path::new("start.cmd"), "@bowline.exe serve %*\r\n")?;
        let served = ["skills", "--", "start", "--skills", "my skills (1)"];
        self.says(&served, "tidy")?;
        self.says(&["doctor", "--", "start", "counter"], "start.")
    }

    /// What a server has started ends with it.
    fn descendants(&self) -> Result<(), String> {
        // It says where it listens, in a file.
        let log = self.folder.join("descendant.log");
        self.write(Path::new("descendant.log"), "")?;
        let script = "@start \"\" /b bowline.exe serve counter --http 127.0.0.1:0 \
                      >nul 2>descendant.log\r\n@bowline.exe serve counter\r\n";
        self.write(Path::new("family.cmd"), script)?;
        let mut debug = self.command("bowline.exe", &["debug", "--", "family"]);
        debug.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = debug.spawn().map_err(|error| format!("wine: {error}"))?;
        let port = || port_in(&fs::read_to_string(&log).unwrap_or_default());
        let is_open = || port().is_some_and(is_open);
        let begun = becomes(is_open);
        let input = child.stdin.take();
        if let Some(mut input) = input {
            let _ = input.write_all(b"quit\n");
        }
        let ended = begun && becomes(|| !is_open());
        let _ = child.kill();
        let _ = child.wait();
        let log = fs::read_to_string(log).unwrap_or_default();
        match (begun, ended) {
            (true, true) => Ok(()),
            (false, _) => Err(format!("the descendant did not start: {log}")),
            (true, false) => Err(format!("the descendant runs on after its server: {log}")),
        }
    }

    /// A client's file is found where Windows has settings, and keeps its line endings.
    fn settings(&self) -> Result<(), String> {
        let found = run_within(self.command("cmd", &["/c", "echo %APPDATA%"]), PATIENCE);
        let appdata = found.output.lines().last().unwrap_or_default().trim().to_owned();
        let Some(below) = appdata.strip_prefix("C:\\") else {
            return Err(format!("no folder for settings: {}", found.output));
        };
        let folder = self.prefix.join("drive_c").join(below.replace('\\', "/"));
        let file = folder.join("Claude/claude_desktop_config.json");
        let text = "{\r\n  \"mcpServers\": {\r\n    \"mine\": { \"command\": \"bowline.exe\", \
                    \"args\": [\"serve\", \"counter\"] }\r\n  }\r\n}\r\n";
        self.write(&file, text)?;
        self.says(&["info", "mine"], "counter")?;
        self.says(
            &["config", "add", "other", "http://127.0.0.1:9/mcp", "--client", "claude-desktop"],
            "",
        )?;
        let text = fs::read_to_string(&file).map_err(|error| error.to_string())?;
        let is_whole = text.contains("\"other\"")
            && text.matches('\n').count() == text.matches("\r\n").count();
        if is_whole { Ok(()) } else { Err(format!("the file lost its line endings: {text:?}")) }
    }

    /// Ends what wine leaves behind.
    fn stop(&self) {
        let mut server = self.tools.program("usr/lib/wine/wineserver64");
        self.environment(&mut server);
        server.arg("--kill");
        let _ = run_within(server, PATIENCE);
    }
}

fn is_open(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok()
}

/// The port after the address, in a log.
fn port_in(log: &str) -> Option<u16> {
    let (_, rest) = log.split_once("127.0.0.1:")?;
    let end = rest.find(|letter: char| !letter.is_ascii_digit())?;
    rest[..end].parse().ok()
}

fn becomes(is_so: impl Fn() -> bool) -> bool {
    (0..PATIENCE.as_millis() / PAUSE.as_millis()).any(|_| {
        let is_so = is_so();
        if !is_so {
            thread::sleep(PAUSE);
        }
        is_so
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_read_when_it_is_whole() {
        assert_eq!(port_in("serving at http://127.0.0.1:4711/mcp\r\n"), Some(4711));
        for log in ["", "serving at http://127.0.0.1:47", "127.0.0.1:/"] {
            assert_eq!(port_in(log), None, "{log}");
        }
    }
}
