//! Faults on purpose, so that authors can test their clients: messages that come late or never,
//! connections that break, error statuses. Seeded: the same seed and the same messages fail in the
//! same way.

use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What goes wrong, as `--fault` says it: `delay=200ms,drop=0.01,cut-after=3,status=503`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FaultPlan {
    /// How much later each message of the server arrives.
    pub delay: Option<Duration>,
    /// The share of the server's messages that never arrive, from 0 to 1.
    pub drop: f64,
    /// After how many messages of the server the connection breaks.
    pub cut_after: Option<u64>,
    /// The status of HTTP requests that do not reach the server, and the share of them.
    pub status: Option<(u16, f64)>,
}

impl FromStr for FaultPlan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut plan = Self::default();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let (name, value) = word.split_once('=').ok_or_else(|| expected(word))?;
            match name {
                "delay" => plan.delay = Some(milliseconds(value)?),
                "drop" => plan.drop = share(value)?,
                "cut-after" => {
                    let count = value.parse().map_err(|_| format!("{word}: expected a number"))?;
                    plan.cut_after = Some(count);
                }
                "status" => {
                    let (status, of) = value.split_once('@').unwrap_or((value, "1"));
                    let status = status.parse().ok().filter(|status| (400..600).contains(status));
                    let status = status.ok_or_else(|| format!("{word}: expected 400 to 599"))?;
                    plan.status = Some((status, share(of)?));
                }
                _ => return Err(expected(word)),
            }
        }
        Ok(plan)
    }
}

fn expected(word: &str) -> String {
    format!("{word:?}: expected delay=200ms, drop=0.01, cut-after=3 or status=503")
}

fn milliseconds(text: &str) -> Result<Duration, String> {
    let wrong = || format!("delay={text}: expected a time, as in 200ms or 1.5s");
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, 0.001),
        None => (text.strip_suffix('s').unwrap_or(text), 1.0),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(number * unit).map_err(|_| wrong())
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| format!("{text:?}: expected a share from 0 to 1"))
}

/// What viewers see beside a message that is dropped.
pub(crate) const IS_DROPPED: &str = "dropped the message above on purpose";
/// What viewers see beside a message at which the connection breaks.
pub(crate) const IS_CUT: &str = "broke the connection before the message above on purpose";

/// What happens to one message of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It arrives, so much later.
    Passes(Option<Duration>),
    /// It never arrives.
    IsDropped,
    /// It never arrives, and the connection breaks.
    IsCut,
}

/// Decides what goes wrong.
#[derive(Debug)]
pub struct Faults {
    plan: FaultPlan,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    random: u64,
    messages: u64,
}

impl Faults {
    /// The faults of a plan. The same seed gives the same faults.
    #[must_use]
    pub fn new(plan: FaultPlan, seed: u64) -> Self {
        Self { plan, state: Mutex::new(State { random: seed, messages: 0 }) }
    }

    /// What happens to the next message of the server.
    pub fn next(&self) -> Fate {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if self.plan.cut_after.is_some_and(|after| state.messages >= after) {
            return Fate::IsCut;
        }
        state.messages += 1;
        if state.is_hit(self.plan.drop) { Fate::IsDropped } else { Fate::Passes(self.plan.delay) }
    }

    /// The status with which the next HTTP request is rejected, if it is.
    pub fn status(&self) -> Option<u16> {
        let (status, share) = self.plan.status?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_hit(share).then_some(status)
    }
}

impl State {
    /// Whether something that happens to this share of all cases happens now.
    fn is_hit(&mut self, share: f64) -> bool {
        // SplitMix64: well spread for any seed, and short enough to be obviously repeatable.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let unit = ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64;
        unit < share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_read() {
        let plan: FaultPlan = "delay=200ms, drop=0.01,cut-after=3,status=503@0.5".parse().unwrap();
        let expected = FaultPlan {
            delay: Some(Duration::from_millis(200)),
            drop: 0.01,
            cut_after: Some(3),
            status: Some((503, 0.5)),
        };
        assert_eq!(plan, expected);
        for text in ["dance", "drop=2", "drop=x", "delay=-1s", "cut-after=x", "status=200", "x=1"] {
            assert!(text.parse::<FaultPlan>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_seed_repeats_its_faults() {
        let plan = FaultPlan { drop: 0.3, ..FaultPlan::default() };
        let fates = |seed| {
            let faults = Faults::new(plan.clone(), seed);
            (0..1000).map(|_| faults.next()).collect::<Vec<_>>()
        };
        assert_eq!(fates(1), fates(1));
        assert_ne!(fates(1), fates(2));
        let dropped = fates(1).iter().filter(|fate| **fate == Fate::IsDropped).count();
        assert!((200..400).contains(&dropped), "{dropped}");
    }

    #[test]
    fn a_connection_breaks_after_so_many_messages() {
        let plan = FaultPlan { cut_after: Some(2), ..FaultPlan::default() };
        let faults = Faults::new(plan, 0);
        let fates = [faults.next(), faults.next(), faults.next(), faults.next()];
        assert_eq!(fates, [Fate::Passes(None), Fate::Passes(None), Fate::IsCut, Fate::IsCut]);
    }
}
