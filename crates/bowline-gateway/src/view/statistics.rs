//! How long answers take, by method.

use std::collections::{BTreeMap, VecDeque};

/// The most answers of one method that count.
const SAMPLES: usize = 5_000;

/// Times by method.
#[derive(Debug, Default)]
pub struct MethodTimes {
    methods: BTreeMap<String, Times>,
}

/// The times of one method.
#[derive(Debug, Default)]
pub struct Times {
    /// How many answers there were.
    pub count: u64,
    /// How many of them were errors.
    pub errors: u64,
    latest: VecDeque<f64>,
}

impl MethodTimes {
    pub(super) fn add(&mut self, method: &str, took: f64, is_error: bool) {
        if !self.methods.contains_key(method) {
            self.methods.insert(method.to_owned(), Times::default());
        }
        let Some(times) = self.methods.get_mut(method) else { return };
        times.count += 1;
        times.errors += u64::from(is_error);
        if times.latest.len() >= SAMPLES {
            times.latest.pop_front();
        }
        times.latest.push_back(took);
    }

    /// All methods, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Times)> {
        self.methods.iter().map(|(method, times)| (method.as_str(), times))
    }
}

impl Times {
    /// The times in seconds under which 50, 95 and 99 of 100 answers came.
    #[must_use]
    pub fn percentiles(&self) -> [f64; 3] {
        let mut sorted: Vec<f64> = self.latest.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        [0.50, 0.95, 0.99].map(|share| percentile(&sorted, share))
    }
}

/// The value under which this share of sorted values is, by the nearest rank.
#[must_use]
pub fn percentile(sorted: &[f64], share: f64) -> f64 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small count")]
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}
