//! Measuring the duration of calls.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Map, Value};

use super::{Candidate, CandidateFailure, issuerless, on_calling_thread};
use crate::{generator::describe, host::random::RandomSource};

/// The number of warm-up calls before the measured calls.
const CALLS_BEFORE: u32 = 10;

/// The durations of sequential calls on one thread, each in a fresh instance.
#[derive(Clone, Copy, Debug)]
pub struct Speed {
    /// The number of measured calls.
    pub calls: u32,
    /// Creating and dropping an instance.
    pub instantiation: Quantiles,
    /// The overhead of a call: creating an instance, calling a trivial function (`describe`), and dropping the instance. This is
    /// the cost of the sandbox and the guest's language.
    pub overhead: Quantiles,
    /// Generating a value: the same with `generate`, including the host's checks of the value.
    pub call: Quantiles,
}

/// Quantiles of durations.
#[derive(Clone, Copy, Debug)]
pub struct Quantiles {
    /// The median.
    pub p50: Duration,
    /// The 99th percentile.
    pub p99: Duration,
}

impl Candidate {
    /// Measures `calls` calls with these parameters, or with the first of the `examples` in the parameters schema.
    ///
    /// # Errors
    /// If a call fails.
    pub fn measure(
        &self,
        given: Option<Map<String, Value>>,
        calls: u32,
        now_seconds: u64,
        random: Arc<dyn RandomSource>,
    ) -> Result<Speed, CandidateFailure> {
        on_calling_thread(|| {
            let guest = self.guest(random)?;
            let given = match given {
                Some(given) => guest.requested(&given.into())?,
                None => guest.description.parameters_schema.example(),
            };
            let parameters = issuerless(&guest, &given)?.to_json();
            let instantiation = quantiles(calls, || {
                let made = guest.plugin.instantiate();
                made.map_err(|fault| guest.plugin.faulted(fault).into())
            })?;
            let overhead = quantiles(calls, || {
                let described = describe(&guest.plugin, &guest.exports);
                described.map(drop).map_err(|refusal| self.refused(refusal))
            })?;
            let call = quantiles(calls, || {
                let value = guest.generate(parameters.clone(), now_seconds, None);
                value.map(drop).map_err(CandidateFailure::from)
            })?;
            Ok(Speed {
                calls,
                instantiation,
                overhead,
                call,
            })
        })?
    }
}

fn quantiles(
    calls: u32,
    mut call: impl FnMut() -> Result<(), CandidateFailure>,
) -> Result<Quantiles, CandidateFailure> {
    for _ in 0..CALLS_BEFORE {
        call()?;
    }
    let mut durations = Vec::new();
    for _ in 0..calls {
        let begun = Instant::now();
        call()?;
        durations.push(begun.elapsed());
    }
    durations.sort();
    Ok(Quantiles {
        p50: quantile(&durations, 50),
        p99: quantile(&durations, 99),
    })
}

/// Returns a percentile of sorted durations.
fn quantile(durations: &[Duration], of_hundred: usize) -> Duration {
    let rank = (durations.len() * of_hundred).div_ceil(100);
    durations
        .get(rank.saturating_sub(1))
        .copied()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_measured_durations() {
        let durations: Vec<_> = (1..=200).map(Duration::from_millis).collect();
        for (of_hundred, expected_ms) in [(50, 100), (99, 198), (100, 200)] {
            let expected = Duration::from_millis(expected_ms);
            assert_eq!(quantile(&durations, of_hundred), expected);
        }
        assert_eq!(quantile(&durations[..1], 50), Duration::from_millis(1));
    }
}
