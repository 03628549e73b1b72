//! Programs that are missing or broken, on a real file system.

use std::os::unix::fs::PermissionsExt;

use super::*;

/// A directory for one test, removed at the end.
struct Sandbox(PathBuf);

impl Sandbox {
    fn new(name: &str) -> Self {
        let at = std::env::temp_dir().join(format!("bowline-doctor-{name}-{}", std::process::id()));
        fs::create_dir_all(&at).unwrap();
        Self(at)
    }

    fn put(&self, name: &str, bytes: &[u8], mode: u32) -> PathBuf {
        let at = self.0.join(name);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(&at, bytes).unwrap();
        fs::set_permissions(&at, fs::Permissions::from_mode(mode)).unwrap();
        at
    }

    fn wanted(&self, program: &str) -> Wanted {
        Wanted {
            program: program.to_owned(),
            path: self.0.join("bin").into_os_string(),
            home: Some(self.0.join("home")),
            directory: Some(self.0.clone()),
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn each_fault_has_its_cause() {
    let sandbox = Sandbox::new("faults");
    sandbox.put("bin/good", b"#!/bin/sh\n", 0o755);
    sandbox.put("bin/plain", b"#!/bin/sh\n", 0o644);
    sandbox.put("server.py", b"print()\n", 0o644);
    sandbox.put("crlf", b"#!/bin/sh\r\necho\r\n", 0o755);
    sandbox.put("marked", b"\xef\xbb\xbf#!/bin/sh\n", 0o755);
    sandbox.put("orphan", b"#!/no/such/interpreter\n", 0o755);
    sandbox.put("by-env", b"#!/usr/bin/env no-such-interpreter\n", 0o755);
    sandbox.put("windows", b"MZ\x90\0", 0o755);
    sandbox.put("empty", b"", 0o755);
    sandbox.put("home/.local/bin/hidden", b"#!/bin/sh\n", 0o755);
    sandbox.put("home/.nvm/versions/node/v20/bin/my-npx", b"#!/bin/sh\n", 0o755);
    for (program, cause, fix) in [
        ("nowhere", "nowhere does not exist", "full path"),
        ("./nowhere", "./nowhere does not exist", "--cwd"),
        ("./bin", "is a directory", "inside"),
        ("plain", "not marked as executable", "chmod +x"),
        ("./server.py", "not marked as executable", "python3"),
        ("./crlf", "Windows line ending", "sed"),
        ("./marked", "byte order mark", "without"),
        ("./orphan", "/no/such/interpreter, does not exist", "Install"),
        ("./by-env", "no-such-interpreter, is not in PATH", "Install"),
        ("./windows", "built for Windows", "build for this machine"),
        ("./empty", "empty file", "again"),
        ("hidden", "which is not in PATH", ".local/bin/hidden"),
        ("my-npx", "which is not in PATH", "v20/bin/my-npx"),
        ("uvx", "uvx does not exist", "Install uv"),
        ("~/server", "used literally", "full path"),
        ("$HOME/server", "used literally", "full path"),
        ("good --flag", "are one word", "Separate"),
        ("", "the command is empty", "--"),
    ] {
        let (seen, found) = sandbox.wanted(program).locate().expect_err(program);
        assert!(found.cause.contains(cause), "{program}: {found:?}");
        assert!(found.fix.contains(fix), "{program}: {found:?}");
        assert!(!seen.is_empty());
    }
}

#[test]
fn programs_are_found_and_traps_are_reported() {
    let sandbox = Sandbox::new("found");
    let good = sandbox.put("bin/good", b"#!/bin/sh\n", 0o755);
    let (seen, advice) = sandbox.wanted("good").locate().unwrap();
    assert_eq!(seen, format!("{}, a script for /bin/sh", good.display()));
    assert_eq!(advice, None);
    assert!(sandbox.wanted("./bin/good").find().is_ok());

    sandbox.put("home/.local/bin/mine", b"\x7fELF", 0o755);
    let mut wanted = sandbox.wanted("mine");
    wanted.path = sandbox.0.join("home/.local/bin").into_os_string();
    let advice = wanted.locate().unwrap().1.unwrap();
    assert!(advice.cause.contains("shorter PATH"), "{advice:?}");
}

#[test]
fn the_working_directory_is_checked() {
    let sandbox = Sandbox::new("directory");
    let file = sandbox.put("file", b"", 0o644);
    let mut wanted = sandbox.wanted("x");
    assert!(wanted.check_directory().is_ok());
    for (directory, cause) in [(file, "is not a directory"), (sandbox.0.join("gone"), "not exist")]
    {
        wanted.directory = Some(directory);
        let step = wanted.check_directory().unwrap_err();
        assert!(step.seen.contains(cause) && step.diagnosis.unwrap().cause.contains(cause));
    }
}
