//! The probability of an observation with a correct generator, as upper bounds in natural logarithms.

/// The threshold of implausibility: 10⁻⁹.
pub(super) const IMPLAUSIBLE: f64 = -20.723;

/// Returns the probability that at most `found` of `looked_at` bits affect the value if the fraction `share` of all bits does.
///
/// Uses the bound of Chernoff and Hoeffding (W. Hoeffding, "Probability inequalities for sums of bounded random variables",
/// 1963, theorem 1): `exp(-n·D(found/n ‖ share))`.
///
/// The minimum of `share` follows from the edge-isoperimetric inequality of the hypercube (L. Harper, 1964): for the inputs
/// of a value with probability `p`, on average at least `log2(1/p)` bits each change the value when flipped. The number
/// of such bits, averaged over all streams, is therefore at least the entropy of the values.
pub(super) fn ln_chance_of_at_most(found: u32, looked_at: u32, share: f64) -> f64 {
    let found_share = f64::from(found) / f64::from(looked_at.max(1));
    if found_share >= share {
        return 0.0;
    }
    let counting = if found == 0 {
        0.0
    } else {
        found_share * (found_share / share).ln()
    };
    let idle = (1.0 - found_share) * ((1.0 - found_share) / (1.0 - share)).ln();
    -f64::from(looked_at) * (counting + idle)
}

/// Returns the probability of this number of equal pairs among values with this entropy.
///
/// By the birthday bound, each of the `n(n-1)/2` pairs is equal with a probability of at most `2^-bits`. Their number is
/// treated as a Poisson variable, and its tail bounded by Chernoff's `exp(-λ)·(eλ/d)^d`. With 2,000 values, a single pair is
/// implausible for 53 or more declared bits.
pub(super) fn ln_chance_of_repetitions(pairs: u32, values: u32, entropy_bits: u32) -> f64 {
    let values = f64::from(values);
    let ln_expected = (values * (values - 1.0) / 2.0).max(1.0).ln()
        - f64::from(entropy_bits) * std::f64::consts::LN_2;
    let expected = ln_expected.exp();
    let pairs = f64::from(pairs);
    if pairs <= expected {
        return 0.0;
    }
    pairs * (1.0 + ln_expected - pairs.ln()) - expected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn likely_observations_are_plausible() {
        assert!(ln_chance_of_at_most(64, 128, 0.5) >= IMPLAUSIBLE);
        assert!(ln_chance_of_at_most(50, 128, 0.5) >= IMPLAUSIBLE);
        assert!(ln_chance_of_at_most(0, 8, 0.5) >= IMPLAUSIBLE);
        assert!(ln_chance_of_repetitions(0, 2_000, 128) >= IMPLAUSIBLE);
        assert!(ln_chance_of_repetitions(200, 2_000, 13) >= IMPLAUSIBLE);
    }

    #[test]
    fn unlikely_observations_are_implausible() {
        assert!(ln_chance_of_at_most(20, 128, 0.5) < IMPLAUSIBLE);
        assert!(ln_chance_of_at_most(0, 1_024, 0.03) < IMPLAUSIBLE);
        assert!(ln_chance_of_repetitions(1, 2_000, 52) >= IMPLAUSIBLE);
        assert!(ln_chance_of_repetitions(1, 2_000, 53) < IMPLAUSIBLE);
        assert!(ln_chance_of_repetitions(1, 2_000, 4_096) < IMPLAUSIBLE);
        assert!(ln_chance_of_repetitions(1_000, 2_000, 13) < IMPLAUSIBLE);
    }
}
