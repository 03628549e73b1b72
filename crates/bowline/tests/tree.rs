//! What a server on stdio brings into its author's build.

use std::collections::BTreeSet;
use std::process::Command;

/// How many crates a server on stdio may be made of, besides itself. The official SDK needs 85.
const LIMIT: usize = 47;

#[test]
fn a_server_on_stdio_is_made_of_few_crates() {
    let mut tree = Command::new(env!("CARGO"));
    tree.args(["tree", "--package", "bowline", "--edges", "normal", "--prefix", "none"]);
    let output = tree.arg("--offline").current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let names: BTreeSet<&str> =
        text.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains("tokio"), "{text}");
    assert!(names.len() <= LIMIT, "{} crates: {names:?}", names.len());
}
