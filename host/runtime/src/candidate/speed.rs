//! How long calls take.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Map, Value};

use super::{Candidate, CandidateFailure, issuerless, on_calling_thread};
use crate::{generator::describe, host::random::RandomSource};

/// How many calls are made before those that are measured.
const CALLS_BEFORE: u32 = 10;

/// How long calls take, one after the other on one thread, each in an instance of its own.
#[derive(Clone, Copy, Debug)]
pub struct Speed {
    /// How many calls were measured.
    pub calls: u32,
    /// Making an instance, and ending it.
    pub instantiation: Quantiles,
    /// The overhead of a call: making an instance, calling the function that has next to nothing to do (`describe`), and
    /// ending the instance. It is what the sandbox and the guest's language cost, whatever the plugin makes.
    pub overhead: Quantiles,
    /// Making a value: the same with `generate`, and what the host checks of the value.
    pub call: Quantiles,
}

/// By when most have ended.
#[derive(Clone, Copy, Debug)]
pub struct Quantiles {
    /// By when half of them have.
    pub p50: Duration,
    /// By when 99 of 100 have.
    pub p99: Duration,
}

impl Candidate {
    /// Measures so many calls with these parameters, or with the first of the `examples` in the parameters schema.
    ///
    /// # Errors
    /// When one of them fails.
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

/// The first of sorted durations that so many of a hundred do not exceed.
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
    fn quantiles_are_of_those_that_were_measured() {
        let durations: Vec<_> = (1..=200).map(Duration::from_millis).collect();
        for (of_hundred, expected_ms) in [(50, 100), (99, 198), (100, 200)] {
            let expected = Duration::from_millis(expected_ms);
            assert_eq!(quantile(&durations, of_hundred), expected);
        }
        assert_eq!(quantile(&durations[..1], 50), Duration::from_millis(1));
    }
}
