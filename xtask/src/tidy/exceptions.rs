//! Who may break which rule, and why.

/// A file that may break a rule.
pub(super) struct Exception {
    pub(super) path: &'static str,
    /// As the problem names it, in brackets.
    pub(super) rule: &'static str,
    pub(super) reason: &'static str,
}

const fn may(path: &'static str, rule: &'static str, reason: &'static str) -> Exception {
    Exception { path, rule, reason }
}

pub(super) const EXCEPTIONS: &[Exception] = &[
    may("Cargo.lock", "registry", "cargo writes it so"),
    may("bench/rmcp/Cargo.lock", "registry", "cargo writes it so"),
    may("examples/receipts/Cargo.lock", "registry", "cargo writes it so"),
    may("fuzz/Cargo.lock", "registry", "cargo writes it so"),
    may("interop/servers/rmcp/Cargo.lock", "registry", "cargo writes it so"),
    may("interop/servers/rmcp/src/bin/notes.rs", "length", "docs/compare.md compares single files"),
    may("crates/bowline-proto/src/http/authority.rs", "pure", "addresses as data, no sockets"),
    may("xtask/src/tidy/rules.rs", "word", "lists what is forbidden"),
    may("xtask/src/tidy/rules.rs", "registry", "lists what is forbidden"),
    may("xtask/src/tidy/rules.rs", "machine-path", "lists what is forbidden"),
    may("xtask/src/tidy/rules.rs", "english", "lists what is forbidden"),
    may("xtask/src/tidy/tests.rs", "english", "shows what is forbidden"),
    may("CONTRIBUTING.md", "english", "shows what is forbidden"),
    may("xtask/src/tidy/tests.rs", "word", "shows what is forbidden"),
    may("xtask/src/tidy/tests.rs", "registry", "shows what is forbidden"),
    may("xtask/src/tidy/tests.rs", "machine-path", "shows what is forbidden"),
];
