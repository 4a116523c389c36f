//! The results of measurements, and their statistics.

use std::{error::Error, time::Duration};

/// The result of a measurement, or the reason for its failure.
pub(crate) type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Measured values in ascending order.
pub(crate) struct Sample(Vec<f64>);

impl Sample {
    /// Takes values in any order.
    pub(crate) fn new(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    pub(crate) fn median(&self) -> f64 {
        self.percentile(50)
    }

    /// Returns the percentile (nearest rank); NaN without values.
    pub(crate) fn percentile(&self, percent: usize) -> f64 {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0.get(rank - 1).copied().unwrap_or(f64::NAN)
    }

    /// Returns the effect size U / (m n) of the Mann-Whitney U test: the probability that a value of this sample exceeds a
    /// value of the other sample. Ties count half. NaN without values.
    pub(crate) fn exceeds(&self, other: &Self) -> f64 {
        let below = |value: f64| other.0.partition_point(|&of_other| of_other < value);
        let up_to = |value: f64| other.0.partition_point(|&of_other| of_other <= value);
        let twice: usize = self.0.iter().map(|&own| below(own) + up_to(own)).sum();
        number(twice) / 2.0 / number(self.0.len()) / number(other.0.len())
    }
}

/// Converts a duration to microseconds.
pub(crate) fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// Converts a duration to milliseconds.
pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

pub(crate) fn number(count: usize) -> f64 {
    // No count here approaches 2^32.
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_of_the_sample() {
        let sample = Sample::new((1..=200).rev().map(f64::from).collect());
        for (percent, expected) in [(0, 1.0), (50, 100.0), (99, 198.0), (100, 200.0)] {
            assert!(
                (sample.percentile(percent) - expected).abs() < f64::EPSILON,
                "{percent}"
            );
        }
        assert!(Sample::new(Vec::new()).median().is_nan());
    }

    #[test]
    fn exceeds_counts_larger_pairs_and_half_of_ties() {
        let sample = |values: &[f64]| Sample::new(values.to_vec());
        for (one, other, expected) in [
            (&[1.0, 2.0, 3.0][..], &[1.0, 2.0, 3.0][..], 0.5),
            (&[4.0, 5.0], &[1.0, 2.0, 3.0], 1.0),
            (&[1.0], &[1.0, 2.0], 0.25),
        ] {
            let is_exceeded = sample(one).exceeds(&sample(other));
            assert!((is_exceeded - expected).abs() < f64::EPSILON, "{one:?}");
        }
    }
}
