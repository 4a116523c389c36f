//! Text from guests, other programs and callers, and durations, in logs and responses.

use std::time::Duration;

use keywright_json::is_control_or_invisible;

/// Truncates untrusted text and replaces control and invisible characters, so that it is safe to print and to log.
pub fn sanitized(text: &str) -> String {
    let visible = |character: char| {
        if is_control_or_invisible(character) {
            ' '
        } else {
            character
        }
    };
    text.chars()
        .take(SANITIZED_CHARACTERS_MAX)
        .map(visible)
        .collect()
}

/// Returns a duration for the log: in milliseconds, rounded to whole microseconds.
pub fn duration_ms(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1_000_000.0).round() / 1_000.0
}

/// The maximum length of sanitized text.
pub const SANITIZED_CHARACTERS_MAX: usize = 200;
