//! What the compiler says to the likeliest mistakes, and programs that it accepts.
//!
//! `TRYBUILD=overwrite cargo test -p bowline-macros-ui --test compile` writes down what it says.

use std::process::Command;

// What compiles is compiled here: for it, `trybuild` would build all dependencies.
#[path = "ui/pass/hello.rs"]
#[expect(dead_code, reason = "it would serve this test's standard input")]
mod hello;
#[path = "ui/pass/without_serde.rs"]
mod without_serde;

/// The compiler whose words `tests/ui/compiler` holds. Others say the same a little differently.
const COMPILER: &str = "rustc 1.95.";

#[test]
fn programs_without_mistakes_run() {
    let _ = bowline_macros_ui::strict::server();
    without_serde::main();
}

#[test]
fn mistakes_are_explained() {
    let cases = trybuild::TestCases::new();
    // In our own words.
    cases.compile_fail("tests/ui/fail/*.rs");
    let version = Command::new("rustc").arg("--version").output().unwrap().stdout;
    if version.starts_with(COMPILER.as_bytes()) {
        cases.compile_fail("tests/ui/compiler/*.rs");
    } else {
        println!("skipped tests/ui/compiler, which is for {COMPILER}x");
    }
}
