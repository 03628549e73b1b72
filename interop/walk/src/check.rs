//! Checks, and how they are reported.

use std::error::Error;
use std::fmt::Debug;
use std::time::Duration;

use bowline::Revision;
use tokio::time::timeout;

use crate::Mode;
use crate::lacks::find_lack;

/// The outcome of a check.
pub(crate) type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// A check, and the first revision that has the feature.
pub(crate) type Named = (&'static str, Option<Revision>);

/// The time limit of a check: longer than an interpreter takes to start on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
/// The time limit of a check that is known to fail.
const SHORT_PATIENCE: Duration = Duration::from_secs(1);

/// Reports the outcomes of one walk.
pub(crate) struct Report<'a> {
    server: &'a str,
    transport: &'a str,
    mode: Mode,
    has_failed: bool,
}

impl<'a> Report<'a> {
    pub(crate) fn new(server: &'a str, transport: &'a str, mode: Mode) -> Self {
        Self { server, transport, mode, has_failed: false }
    }

    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Runs a check. What a server is known to lack must fail: an entry that no longer applies must
    /// be removed from the list.
    pub(crate) async fn check(&mut self, name: &str, work: impl Future<Output = Outcome>) {
        let lack = find_lack(self.server, self.transport, self.mode.revision, name);
        let patience = if lack.is_some() { SHORT_PATIENCE } else { PATIENCE };
        let outcome = match timeout(patience, work).await {
            Ok(outcome) => outcome,
            Err(_) => Err("timed out".into()),
        };
        let mode = self.mode.name();
        match (outcome, lack) {
            (Ok(()), None) => println!("ok {mode} {name}"),
            (Err(_), Some(reason)) => println!("lacks {mode} {name}: {reason}"),
            (Ok(()), Some(reason)) => {
                self.has_failed = true;
                println!("not ok {mode} {name}: passes, but was expected to fail because {reason}");
            }
            (Err(error), None) => {
                self.has_failed = true;
                let reason = error.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
                println!("not ok {mode} {name}: {reason}");
            }
        }
    }
}

/// Fails unless both are equal.
pub(crate) fn same<T: PartialEq + Debug + ?Sized>(what: &str, found: &T, wanted: &T) -> Outcome {
    if found == wanted {
        return Ok(());
    }
    Err(format!("{what}: {found:?}, expected {wanted:?}").into())
}

/// Fails unless a condition holds.
pub(crate) fn is_so(what: &str, it_is: bool) -> Outcome {
    if it_is { Ok(()) } else { Err(what.into()) }
}

/// Waits until a condition holds.
pub(crate) async fn until<F: Future<Output = Outcome<bool>>>(is_so: impl Fn() -> F) -> Outcome {
    while !is_so().await? {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}
