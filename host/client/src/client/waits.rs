//! Waits between the attempts of a request: exponential backoff, or longer if the service asks for it.

use std::time::{Duration, SystemTime};

/// A wait before a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wait {
    /// The unavailable service: `the server` or `the identity provider`.
    pub service: &'static str,
    /// The duration of the wait.
    pub duration: Duration,
    /// The maximum number of further waits.
    pub left: u32,
}

pub(super) type OnWait = Box<dyn Fn(Wait) + Send + Sync>;

pub(super) struct Waits {
    /// The maximum number of retries of a request.
    pub(super) retries_max: u32,
    pub(super) on_wait: Option<OnWait>,
}

impl Waits {
    /// Waits before the next retry, after this number of retries. Returns `false` if there must be no further retry.
    pub(super) async fn wait(
        &self,
        service: &'static str,
        retries: u32,
        retry_after: Option<Duration>,
    ) -> bool {
        let Some(duration) = self.duration(retries, retry_after, fastrand::f64()) else {
            return false;
        };
        if let Some(on_wait) = &self.on_wait {
            let left = self.retries_max - retries - 1;
            on_wait(Wait {
                service,
                duration,
                left,
            });
        }
        tokio::time::sleep(duration).await;
        true
    }

    /// Returns the next wait: exponential backoff, at least `Retry-After`. `None` after the last retry, or if `Retry-After` exceeds
    /// [`RETRY_AFTER_MAX`].
    ///
    /// `jitter`, from 0 to 1, lengthens the wait by up to [`JITTER_MAX`], so that clients don't retry simultaneously.
    fn duration(
        &self,
        retries: u32,
        retry_after: Option<Duration>,
        jitter: f64,
    ) -> Option<Duration> {
        let requested = retry_after.unwrap_or_default();
        if retries >= self.retries_max || requested > RETRY_AFTER_MAX {
            return None;
        }
        let backoff = BACKOFF_FIRST
            .saturating_mul(2_u32.saturating_pow(retries))
            .min(BACKOFF_MAX);
        let least = requested.max(backoff);
        Some(least + least.mul_f64(jitter * JITTER_MAX))
    }
}

/// Parses a `Retry-After` header: seconds, or a date (RFC 9110, section 10.2.3).
pub(super) fn parse_retry_after(header: &str, now: SystemTime) -> Option<Duration> {
    let header = header.trim();
    if let Ok(seconds) = header.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(header).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

pub(super) const RETRIES_DEFAULT: u32 = 4;

/// The first wait, without `Retry-After`.
const BACKOFF_FIRST: Duration = Duration::from_millis(500);

/// The longest wait, without `Retry-After`.
const BACKOFF_MAX: Duration = Duration::from_secs(8);

/// The maximum jitter, as a fraction of the wait.
const JITTER_MAX: f64 = 0.5;

/// The longest `Retry-After` to respect. The client does not retry after a longer one.
const RETRY_AFTER_MAX: Duration = Duration::from_mins(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(retries_max: u32) -> Waits {
        Waits {
            retries_max,
            on_wait: None,
        }
    }

    #[test]
    fn waits_double_up_to_a_limit() {
        let waits = waits(7);
        let millis: Vec<_> = (0..8)
            .map(|retries| {
                let wait = waits.duration(retries, None, 0.0);
                wait.map(|wait| wait.as_millis())
            })
            .collect();
        let expected = [500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000].map(Some);
        assert_eq!(millis[..7], expected);
        assert_eq!(millis[7], None);
    }

    #[test]
    fn retry_after_lengthens_waits_up_to_a_minute() {
        let waits = waits(3);
        let cases = [
            (0, 0, Some(500)),
            (0, 2, Some(2_000)),
            (7, 0, Some(7_000)),
            (60, 0, Some(60_000)),
            (61, 0, None),
        ];
        for (requested, retries, expected) in cases {
            let requested = Some(Duration::from_secs(requested));
            let wait = waits.duration(retries, requested, 0.0);
            assert_eq!(wait.map(|wait| wait.as_millis()), expected);
        }
    }

    #[test]
    fn jitter_lengthens_a_wait_by_at_most_half() {
        let waits = waits(1);
        for (requested, jitter, expected) in [
            (None, 0.5, 625),
            (None, 1.0, 750),
            (Some(60), 0.5, 75_000),
            (Some(60), 1.0, 90_000),
        ] {
            let requested = requested.map(Duration::from_secs);
            let wait = waits.duration(0, requested, jitter).unwrap();
            assert_eq!(wait.as_millis(), expected);
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        let cases = [
            ("3", Some(3)),
            (" 0 ", Some(0)),
            ("Sun, 06 Nov 1994 08:49:47 GMT", Some(10)),
            ("Sun, 06 Nov 1994 08:49:27 GMT", Some(0)),
            ("soon", None),
            ("-1", None),
        ];
        for (header, seconds) in cases {
            assert_eq!(
                parse_retry_after(header, now).map(|wait| wait.as_secs()),
                seconds,
                "{header}"
            );
        }
    }
}
