//! The rate limit.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// A token bucket: one token per message, refilled over time.
#[derive(Debug)]
pub struct Rate {
    /// Zero for no limit.
    per_second: u32,
    burst: u32,
    level: Mutex<Level>,
}

#[derive(Debug)]
struct Level {
    tokens: f64,
    at: Instant,
}

/// The rate limit is exceeded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the limit of {per_second} messages per second is exceeded; try again in {} ms, or send many \
     at once with send-syslog-batch, which waits as needed",
    .wait.as_millis().max(1)
)]
pub struct TooFast {
    per_second: u32,
    /// When to try again.
    pub wait: Duration,
}

impl Rate {
    /// Allows a sustained rate, and a burst after a pause. Zero per second means no limit.
    pub fn new(per_second: u32, burst: u32) -> Self {
        let burst = burst.max(1);
        let level = Level { tokens: burst.into(), at: Instant::now() };
        Self { per_second, burst, level: Mutex::new(level) }
    }

    /// Takes tokens for some messages, all or none. Never asks for more than a full bucket.
    ///
    /// # Errors
    /// If there are not enough tokens yet.
    pub fn take(&self, messages: usize) -> Result<(), TooFast> {
        if self.per_second == 0 {
            return Ok(());
        }
        let wanted = f64::from(u32::try_from(messages).unwrap_or(u32::MAX).min(self.burst));
        let per_second = f64::from(self.per_second);
        let mut level = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let passed = now.duration_since(level.at).as_secs_f64();
        level.tokens = (level.tokens + passed * per_second).min(self.burst.into());
        level.at = now;
        if level.tokens < wanted {
            let wait = Duration::from_secs_f64((wanted - level.tokens) / per_second);
            return Err(TooFast { per_second: self.per_second, wait });
        }
        level.tokens -= wanted;
        Ok(())
    }

    /// Waits for tokens and takes them. Dropping it takes none.
    pub async fn wait(&self, messages: usize) {
        while let Err(TooFast { wait, .. }) = self.take(messages) {
            tokio::time::sleep(wait).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_bucket_empties_and_fills() {
        let rate = Rate::new(10, 3);
        for _ in 0..3 {
            rate.take(1).unwrap();
        }
        let rejected = rate.take(1).unwrap_err();
        assert!(rejected.wait <= Duration::from_millis(100));
        tokio::time::advance(Duration::from_millis(250)).await;
        rate.take(2).unwrap();
        rate.take(1).unwrap_err();
        tokio::time::advance(Duration::from_secs(60)).await;
        rate.take(1_000).unwrap();
        rate.take(1).unwrap_err();
        rate.wait(3).await;
        rate.take(1).unwrap_err();
    }

    #[tokio::test(start_paused = true)]
    async fn zero_means_no_limit() {
        let rate = Rate::new(0, 0);
        for _ in 0..10_000 {
            rate.take(1).unwrap();
        }
    }
}
