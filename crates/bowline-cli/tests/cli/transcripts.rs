//! The exact output of the commands: `testdata/transcripts/*.txt`.
//!
//! A line that begins with `$` is run; what follows is standard output, then standard error with
//! `! ` before each line, then `= code` if it is not 0. `@name` stands for the URL of a server of
//! `examples/features`, `%` for the ready-made counter after `--`. Times, ports and paths are
//! replaced. `UPDATE=1` rewrites everything but the lines with `$` and `#`.

use std::path::Path;

use bowline_serve::testing::golden;

use crate::fixture::{Folder, PROGRAM, program, said, url};

/// Servers that a transcript can name.
const SERVERS: [&str; 8] =
    ["features", "asks", "works", "pages", "tools", "resources", "prompts", "empty"];

#[test]
fn output_has_not_changed() {
    let mut count = 0;
    for file in std::fs::read_dir("testdata/transcripts").unwrap() {
        let file = file.unwrap().path();
        check(&file);
        count += 1;
    }
    assert!(count >= 5, "only {count} transcripts");
}

fn check(file: &Path) {
    let home = Folder::new();
    let kept = std::fs::read_to_string(file).unwrap();
    let mut text = String::new();
    for line in kept.lines() {
        if line.starts_with('#') {
            text += &format!("{line}\n");
            if let Some((name, content)) =
                line.strip_prefix("# file ").and_then(|it| it.split_once(": "))
            {
                home.write(name, &filled_in(content));
            }
        } else if let Some(command) = line.strip_prefix("$ ") {
            let words = words(&filled_in(command));
            let told = said(program(&home).args(&words[1..]));
            let mut block = told.out.clone();
            if !block.is_empty() && !block.ends_with('\n') {
                block.push('\n');
            }
            for line in told.err.lines() {
                block += &format!("! {line}\n");
            }
            if told.code != Some(0) {
                block += &format!("= {}\n", told.code.unwrap_or(-1));
            }
            text += &format!("$ {command}\n{}\n", replaced(&block, &home));
        }
    }
    golden(file, &text);
}

fn filled_in(command: &str) -> String {
    let mut command = command.replace('%', &format!("-- {PROGRAM} serve counter"));
    for name in SERVERS {
        let mark = format!("@{name}");
        if command.contains(&mark) {
            command = command.replace(&mark, &url(name));
        }
    }
    command
}

/// The words of a command line, with quotes as in a shell.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let (mut is_quoted, mut was_quoted) = (false, false);
    for letter in line.chars() {
        match letter {
            '\'' => (is_quoted, was_quoted) = (!is_quoted, true),
            ' ' if !is_quoted => {
                if !words.last().unwrap().is_empty() || was_quoted {
                    words.push(String::new());
                }
                was_quoted = false;
            }
            _ => words.last_mut().unwrap().push(letter),
        }
    }
    words
}

/// Replaces what differs between runs: times, ports, paths.
fn replaced(text: &str, home: &Folder) -> String {
    let mut text =
        text.replace(&*home.path().to_string_lossy(), "HOME").replace(PROGRAM, "bowline");
    for name in SERVERS {
        // Only servers that were started have a port to replace.
        if text.contains("http://127.0.0.1:") && text.contains(&url(name)) {
            text = text.replace(&url(name), &format!("@{name}"));
            // Columns are as wide as the port is long.
            text = text.lines().map(|line| format!("{}\n", closer(line))).collect();
        }
    }
    let mut clean = String::new();
    for line in text.split_inclusive('\n') {
        let mut parts = line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for at in 1..parts.len() {
            let unit = parts[at].trim_end_matches([',', '\n', ')', ';']).to_owned();
            let is_number = parts[at - 1].trim_start_matches('(').parse::<f64>().is_ok();
            if is_number && ["µs", "ms", "s"].contains(&unit.as_str()) {
                parts[at - 1] = "N".to_owned();
                parts[at] = parts[at].replacen(&unit, "ms", 1);
            }
        }
        clean += &parts.join(" ");
    }
    seconds(&clean)
}

/// A line whose columns are two spaces apart.
fn closer(line: &str) -> String {
    let indent = line.len() - line.trim_start().len();
    let columns = line[indent..].split("  ").map(str::trim).filter(|column| !column.is_empty());
    format!("{}{}", &line[..indent], columns.collect::<Vec<_>>().join("  "))
}

/// Numbers of seconds in JSON.
fn seconds(text: &str) -> String {
    let mut clean = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("econds\":").map(|at| at + "econds\":".len()) {
        clean.push_str(&rest[..at]);
        let number = rest[at..].find([',', '}']).unwrap_or(0);
        clean.push('N');
        rest = &rest[at + number..];
    }
    clean + rest
}
