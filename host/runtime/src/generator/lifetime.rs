//! The lifetime that a generator returns for a new value.

use chrono::{DateTime, Utc};
use keywright_core::credential::Lifetime;

use crate::{
    bindings::{exports::keywright::generator::expiry, keywright::generator::types::Failure},
    exported::Function,
};

/// The name of the guest's function in logs and metrics.
pub(super) const EXPIRES: &str = "expires";

/// The maximum of the times in a lifetime, in seconds since 1970: the last second of the year 9999.
const LIFETIME_SECONDS_MAX: u64 = 253_402_300_799;

/// Converts a returned lifetime, or returns the rule that it breaks.
pub(super) fn checked_lifetime(
    returned: expiry::Lifetime,
    now_seconds: u64,
) -> Result<Lifetime, &'static str> {
    let checked = |seconds: Option<u64>| match seconds {
        None => Ok(None),
        Some(seconds) if seconds < now_seconds => Err("has a time before the call"),
        Some(seconds) if seconds > LIFETIME_SECONDS_MAX => Err("has a time after the year 9999"),
        Some(seconds) => Ok(i64::try_from(seconds)
            .ok()
            .and_then(|seconds| DateTime::<Utc>::from_timestamp(seconds, 0))),
    };
    let lifetime = Lifetime {
        expires_at: checked(returned.expires_seconds)?,
        rotate_at: checked(returned.rotate_seconds)?,
    };
    let is_rotated_late = lifetime
        .rotate_at
        .zip(lifetime.expires_at)
        .is_some_and(|(rotate_at, expires_at)| rotate_at > expires_at);
    if is_rotated_late {
        return Err("has a rotate-seconds after its expires-seconds");
    }
    Ok(lifetime)
}

/// `expiry.expires`.
pub(super) struct Expires;

impl Function for Expires {
    type Parameters<'a> = (&'a expiry::NewValue,);
    type Result = Result<expiry::Lifetime, Failure>;
    const INTERFACE: &'static str = "keywright:generator/expiry";
    const NAME: &'static str = EXPIRES;
}
