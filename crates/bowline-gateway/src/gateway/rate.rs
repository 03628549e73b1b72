//! How often each caller may use a server.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// So many calls in so much time, such as `60/min`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// How many, all at once if need be.
    pub calls: u32,
    /// In which time.
    pub per: Duration,
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a rate; help: write 5/s, 60/min or 1000/h");
        let (calls, unit) = text.split_once('/').ok_or_else(wrong)?;
        let calls = calls.trim().parse().ok().filter(|calls| *calls > 0).ok_or_else(wrong)?;
        let seconds = match unit.trim() {
            "s" | "sec" | "second" => 1,
            "m" | "min" | "minute" => 60,
            "h" | "hour" => 3600,
            "d" | "day" => 86_400,
            _ => return Err(wrong()),
        };
        Ok(Self { calls, per: Duration::from_secs(seconds) })
    }
}

/// What callers have used, by server and caller.
#[derive(Default)]
pub(super) struct Used(Mutex<Book>);

#[derive(Default)]
struct Book {
    /// When each has regained all that it used (the generic cell rate algorithm).
    regained: HashMap<(String, String), Instant>,
    swept: Option<Instant>,
}

/// How many callers are remembered. Beyond it, those that have used nothing lately are forgotten,
/// and new ones share one allowance until there is room.
const MOST: usize = 10_000;

/// How often callers are forgotten: that costs a look at each of them.
const SWEEP: Duration = Duration::from_secs(1);

impl Used {
    /// Counts a call, or returns how long to wait for the next one.
    pub(super) fn take(&self, rate: Rate, caller: &str, server: &str) -> Result<(), Duration> {
        let now = Instant::now();
        let each = rate.per / rate.calls;
        let mut book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut key = (server.to_owned(), caller.to_owned());
        if book.regained.len() >= MOST && !book.regained.contains_key(&key) {
            if book.swept.is_none_or(|swept| swept + SWEEP <= now) {
                book.regained.retain(|_, regained| *regained > now);
                book.swept = Some(now);
            }
            if book.regained.len() >= MOST {
                // Not the name of a caller: those are principals and addresses.
                "\n".clone_into(&mut key.1);
            }
        }
        let regained = book.regained.get(&key).copied().unwrap_or(now).max(now) + each;
        let ahead = regained - now;
        if ahead > rate.per {
            return Err(ahead - rate.per);
        }
        book.regained.insert(key, regained);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read() {
        assert_eq!("60/min".parse(), Ok(Rate { calls: 60, per: Duration::from_secs(60) }));
        for wrong in ["60", "0/s", "x/s", "5/week", "-1/s"] {
            assert!(wrong.parse::<Rate>().unwrap_err().contains("help"), "{wrong}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn each_caller_has_its_own_share_and_regains_it() {
        let (used, rate) = (Used::default(), "2/min".parse().unwrap());
        assert_eq!(used.take(rate, "ann", "s"), Ok(()));
        assert_eq!(used.take(rate, "ann", "s"), Ok(()));
        let wait = used.take(rate, "ann", "s").unwrap_err();
        assert_eq!(wait, Duration::from_secs(30));
        assert_eq!(used.take(rate, "bob", "s"), Ok(()));
        assert_eq!(used.take(rate, "ann", "other"), Ok(()));
        tokio::time::advance(wait).await;
        assert_eq!(used.take(rate, "ann", "s"), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn callers_beyond_those_that_are_remembered_are_limited_too() {
        let (used, rate) = (Used::default(), "2/min".parse().unwrap());
        for caller in 0..MOST {
            assert_eq!(used.take(rate, &caller.to_string(), "s"), Ok(()));
        }
        let taken = (0..10).filter(|it| used.take(rate, &format!("new-{it}"), "s").is_ok());
        assert_eq!(taken.count(), 2);
        // Those that are known keep their own share.
        assert_eq!(used.take(rate, "7", "s"), Ok(()));
        tokio::time::advance(Duration::from_secs(61)).await;
        assert_eq!(used.take(rate, "another", "s"), Ok(()));
        assert_eq!(used.take(rate, "another", "s"), Ok(()));
        assert!(used.0.lock().unwrap().regained.len() < MOST);
    }
}
