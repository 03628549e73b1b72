//! Golden files: the exact output of a program.

use std::path::Path;

/// Compares a text with a golden file, ignoring white space at the ends of lines. `UPDATE=1`
/// rewrites the file.
pub fn golden(file: &Path, text: &str) {
    let text: String = text.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(file.parent().expect("a file is in a folder")).expect("a folder");
        std::fs::write(file, text).expect("it can be written");
        return;
    }
    let kept = std::fs::read_to_string(file).unwrap_or_default();
    assert_eq!(text, kept, "{} differs; UPDATE=1 rewrites it", file.display());
}
