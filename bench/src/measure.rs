//! Measurements, and how several become one figure.

use std::time::Duration;

use crate::machine::Cpu;

/// One measurement of a client or server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) calls: u64,
    pub(crate) seconds: f64,
    /// CPU time in seconds.
    pub(crate) cpu: f64,
    pub(crate) user: f64,
    /// Memory at the end, in bytes.
    pub(crate) resident: u64,
}

impl Sample {
    pub(crate) fn new(calls: u64, took: Duration, (from, to): (Cpu, Cpu), resident: u64) -> Self {
        let cpu = to.all.saturating_sub(from.all).as_secs_f64();
        let user = to.user.saturating_sub(from.user).as_secs_f64();
        Self { calls, seconds: took.as_secs_f64(), cpu, user, resident }
    }

    pub(crate) fn calls_per_second(&self) -> f64 {
        self.calls as f64 / self.seconds
    }

    /// CPU microseconds per call.
    pub(crate) fn cpu_per_call(&self) -> f64 {
        self.cpu * 1e6 / self.calls as f64
    }

    /// The part of it outside the kernel.
    pub(crate) fn user_per_call(&self) -> f64 {
        self.user * 1e6 / self.calls as f64
    }
}

/// The median.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

/// The median of a figure over rounds.
pub(crate) fn middle(samples: &[Sample], figure: impl Fn(&Sample) -> f64) -> f64 {
    median(samples.iter().map(figure))
}

/// The median of ratios, each taken within its round.
pub(crate) fn ratio(over: &[Sample], under: &[Sample], figure: impl Fn(&Sample) -> f64) -> f64 {
    median(over.iter().zip(under).map(|(over, under)| figure(over) / figure(under)))
}

/// The exponent of growth: the slope of the regression line on logarithmic axes. 0 is constant, 1
/// linear.
pub(crate) fn exponent(points: &[(f64, f64)]) -> f64 {
    let logs: Vec<(f64, f64)> = points.iter().map(|(x, y)| (x.ln(), y.max(1e-12).ln())).collect();
    let count = logs.len() as f64;
    let mean = |pick: fn(&(f64, f64)) -> f64| logs.iter().map(pick).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let covariance: f64 = logs.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let variance: f64 = logs.iter().map(|point| (point.0 - x).powi(2)).sum();
    covariance / variance
}

/// The exponent of the steepest step from one point to the next.
pub(crate) fn steepest(points: &[(f64, f64)]) -> f64 {
    points.windows(2).map(exponent).fold(f64::NEG_INFINITY, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0]), 2.5);
        assert_eq!(median([f64::NAN, 1.0]), 1.0);
        assert!(median([]).is_nan());
    }

    #[test]
    fn the_exponent_tells_how_a_cost_grows() {
        let cost = |power: f64| [1.0, 10.0, 100.0, 1000.0].map(|x: f64| (x, 7.0 * x.powf(power)));
        for power in [0.0, 1.0, 2.0] {
            assert!((exponent(&cost(power)) - power).abs() < 1e-9, "{power}");
            assert!((steepest(&cost(power)) - power).abs() < 1e-9, "{power}");
        }
        assert!(steepest(&[(1.0, 1.0), (2.0, 1.0), (4.0, 4.0)]) > 1.9);
    }
}
