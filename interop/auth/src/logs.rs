//! Captures all logs at the finest level, to search them for secrets.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracing_subscriber::fmt::MakeWriter;

use crate::control::Issuer;
use crate::{Outcome, holds};

/// Shorter texts are not secrets.
const SHORTEST: usize = 16;

/// The logs of this process and of those it started.
#[derive(Clone, Default)]
pub(crate) struct Logs(Arc<Mutex<Vec<u8>>>);

impl Logs {
    /// Starts capturing.
    pub(crate) fn capture() -> Self {
        let logs = Self::default();
        tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_ansi(false)
            .with_writer(logs.clone())
            .init();
        logs
    }

    /// Adds what another process logged.
    pub(crate) fn add(&self, bytes: &[u8]) {
        self.lock().extend_from_slice(bytes);
    }

    /// Checks that no secret that the issuer ever saw is in the logs.
    pub(crate) async fn check(&self, issuer: Issuer) -> Outcome {
        let mut secrets = issuer.state().await?.secrets;
        let credentials = issuer.credentials().await?;
        secrets.push(credentials.secret);
        secrets.extend(credentials.key.lines().nth(1).map(str::to_owned));
        secrets.retain(|secret| secret.len() >= SHORTEST);
        holds("hardly any secrets", secrets.len() > 100)?;
        let logs = String::from_utf8_lossy(&self.lock()).into_owned();
        holds("hardly any logs", logs.lines().count() > 100)?;
        for crate_name in ["bowline_auth::client", "bowline::"] {
            holds(format!("nothing from {crate_name} in the logs"), logs.contains(crate_name))?;
        }
        let Some(secret) = secrets.iter().find(|secret| logs.contains(secret.as_str())) else {
            return Ok(());
        };
        let line = logs.lines().find(|line| line.contains(secret.as_str()));
        Err(format!("a secret in the logs: {}", line.unwrap_or_default()).into())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Logs to standard error, which the parent process captures.
pub(crate) fn to_stderr() {
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(io::stderr)
        .init();
}

impl Write for Logs {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.add(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Logs {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
