//! What the compiler says to the likeliest mistakes, and the shortest program that it accepts.
//!
//! `TRYBUILD=overwrite cargo test -p bowline-macros --test compile` writes down what it says now.

use std::process::Command;

/// The compiler whose words `tests/ui/compiler` holds. Others say the same a little differently.
const COMPILER: &str = "rustc 1.95.";

#[test]
fn mistakes_are_explained() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/pass/*.rs");
    // In our own words.
    cases.compile_fail("tests/ui/fail/*.rs");
    let version = Command::new("rustc").arg("--version").output().unwrap().stdout;
    if version.starts_with(COMPILER.as_bytes()) {
        cases.compile_fail("tests/ui/compiler/*.rs");
    } else {
        println!("skipped tests/ui/compiler, which is for {COMPILER}x");
    }
}
