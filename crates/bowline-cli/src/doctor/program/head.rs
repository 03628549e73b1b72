//! The first bytes of a program: what it is, and which machine it is built for.

use std::path::Path;

/// What the first bytes say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Head {
    /// `#!interpreter argument`.
    Script {
        interpreter: String,
        argument: Option<String>,
        /// Whether the line ends with a carriage return.
        has_return: bool,
    },
    /// A script with a byte order mark before `#!`.
    MarkedScript,
    /// A program for another machine or system, by name.
    Foreign(&'static str),
    Empty,
    /// A program for this machine, or something unknown.
    Other,
}

pub(super) fn inspect(bytes: &[u8]) -> Head {
    inspect_on(bytes, std::env::consts::OS, std::env::consts::ARCH)
}

fn inspect_on(bytes: &[u8], system: &str, machine: &str) -> Head {
    match bytes {
        // An unreadable file looks empty, too, but few programs are unreadable.
        [] => Head::Empty,
        [0xef, 0xbb, 0xbf, b'#', b'!', ..] => Head::MarkedScript,
        [b'#', b'!', rest @ ..] => script(rest),
        [0x7f, b'E', b'L', b'F', ..] => elf(bytes, system, machine),
        [0xcf | 0xce, 0xfa, 0xed, 0xfe, ..] | [0xca, 0xfe, 0xba, 0xbe, ..] if system != "macos" => {
            Head::Foreign("macOS")
        }
        [b'M', b'Z', ..] if system != "windows" => Head::Foreign("Windows"),
        _ => Head::Other,
    }
}

fn script(rest: &[u8]) -> Head {
    let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    let line = String::from_utf8_lossy(&rest[..end]);
    let has_return = line.ends_with('\r');
    let line = line.trim();
    let (interpreter, argument) = match line.split_once([' ', '\t']) {
        Some((interpreter, argument)) => (interpreter, Some(argument.trim().to_owned())),
        None => (line, None),
    };
    Head::Script { interpreter: interpreter.to_owned(), argument, has_return }
}

fn elf(bytes: &[u8], system: &str, machine: &str) -> Head {
    if matches!(system, "macos" | "windows") {
        return Head::Foreign("Linux");
    }
    let is_big = bytes.get(5) == Some(&2);
    let Some(&[one, two]) = bytes.get(18..20) else { return Head::Other };
    let number =
        if is_big { u16::from_be_bytes([one, two]) } else { u16::from_le_bytes([one, two]) };
    let (built_for, runs_on): (&'static str, &[&str]) = match number {
        0x03 => ("x86", &["x86", "x86_64"]),
        0x28 => ("arm", &["arm", "aarch64"]),
        0x3e => ("x86_64", &["x86_64"]),
        0xb7 => ("aarch64", &["aarch64"]),
        0xf3 => ("riscv", &["riscv64", "riscv32"]),
        0x15 => ("powerpc64", &["powerpc64"]),
        0x16 => ("s390x", &["s390x"]),
        _ => return Head::Other,
    };
    if runs_on.contains(&machine) { Head::Other } else { Head::Foreign(built_for) }
}

/// The interpreter that usually runs a file with this extension.
pub(super) fn interpreter_for(at: &Path) -> Option<&'static str> {
    match at.extension()?.to_str()? {
        "py" => Some("python3"),
        "js" | "mjs" | "cjs" => Some("node"),
        "ts" => Some("npx tsx"),
        "sh" => Some("sh"),
        "rb" => Some("ruby"),
        "jar" => Some("java -jar"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_tell_what_it_is() {
        let elf = |machine: u8| {
            let mut bytes = vec![0; 64];
            bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
            bytes[18] = machine;
            bytes
        };
        let script = |interpreter: &str, argument: Option<&str>, has_return| Head::Script {
            interpreter: interpreter.to_owned(),
            argument: argument.map(str::to_owned),
            has_return,
        };
        for (bytes, system, machine, expected) in [
            (b"#!/bin/sh\nx".to_vec(), "linux", "x86_64", script("/bin/sh", None, false)),
            (
                b"#! /usr/bin/env -S node --x\n".to_vec(),
                "linux",
                "x86_64",
                script("/usr/bin/env", Some("-S node --x"), false),
            ),
            (
                b"#!/usr/bin/env python3\r\n".to_vec(),
                "linux",
                "x86_64",
                script("/usr/bin/env", Some("python3"), true),
            ),
            (b"\xef\xbb\xbf#!/bin/sh\n".to_vec(), "linux", "x86_64", Head::MarkedScript),
            (elf(0x3e), "linux", "x86_64", Head::Other),
            (elf(0x3e), "linux", "aarch64", Head::Foreign("x86_64")),
            (elf(0xb7), "linux", "x86_64", Head::Foreign("aarch64")),
            (elf(0x03), "linux", "x86_64", Head::Other),
            (elf(0x3e), "macos", "aarch64", Head::Foreign("Linux")),
            (b"\xcf\xfa\xed\xfe....".to_vec(), "linux", "x86_64", Head::Foreign("macOS")),
            (b"MZ\x90".to_vec(), "linux", "x86_64", Head::Foreign("Windows")),
            (b"MZ\x90".to_vec(), "windows", "x86_64", Head::Other),
            (b"".to_vec(), "linux", "x86_64", Head::Empty),
            (b"echo hi\n".to_vec(), "linux", "x86_64", Head::Other),
        ] {
            assert_eq!(inspect_on(&bytes, system, machine), expected, "{bytes:?} on {system}");
        }
    }
}
