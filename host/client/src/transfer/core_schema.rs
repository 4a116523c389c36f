//! Resolves unquoted scalars by the core schema of YAML 1.2.2, section 10.3.2.
//!
//! YAML 1.1 is not supported: `yes`, `on`, `1_000`, `12:30` and dates are strings.

use super::node::Reason;

/// Returns the JSON of an unquoted scalar; `None` if it is a string.
///
/// # Errors
/// When the scalar is a number that JSON can't represent.
pub(crate) fn resolve(text: &str) -> Result<Option<String>, Reason> {
    if is_null(text) {
        return Ok(Some("null".to_owned()));
    }
    match text {
        "true" | "True" | "TRUE" => return Ok(Some("true".to_owned())),
        "false" | "False" | "FALSE" => return Ok(Some("false".to_owned())),
        _ => {}
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Err(NOT_FINITE);
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return in_base(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return in_base(digits, 8);
    }
    Ok(decimal(text.starts_with('-'), unsigned))
}

/// Whether an unquoted scalar is null.
pub(crate) fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

fn in_base(digits: &str, base: u32) -> Result<Option<String>, Reason> {
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(base)) {
        return Ok(None);
    }
    let number = u128::from_str_radix(digits, base).map_err(|_| TOO_LARGE)?;
    Ok(Some(number.to_string()))
}

/// Returns a decimal number in JSON syntax with all digits; `None` if it is not a number.
fn decimal(is_negative: bool, unsigned: &str) -> Option<String> {
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, _)) => (mantissa, unsigned.get(mantissa.len()..)?),
        None => (unsigned, ""),
    };
    if !exponent.is_empty() {
        let power = exponent.get(1..)?;
        let power = power.strip_prefix(['-', '+']).unwrap_or(power);
        if !is_digits(power) {
            return None;
        }
    }
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let has_whole = is_digits(whole);
    let has_fraction = fraction.is_some_and(is_digits);
    let is_number = match fraction {
        None | Some("") => has_whole,
        Some(_) => has_fraction && (has_whole || whole.is_empty()),
    };
    if !is_number {
        return None;
    }
    let sign = if is_negative { "-" } else { "" };
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        significant => significant,
    };
    Some(match fraction {
        None => format!("{sign}{whole}{exponent}"),
        Some("") => format!("{sign}{whole}.0{exponent}"),
        Some(fraction) => format!("{sign}{whole}.{fraction}{exponent}"),
    })
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

const NOT_FINITE: Reason = "infinity and NaN are not allowed";
const TOO_LARGE: Reason = "a hexadecimal or octal number has more than 128 bits";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unquoted_scalars_follow_the_core_schema() {
        for (text, json) in [
            ("", Some("null")),
            ("~", Some("null")),
            ("null", Some("null")),
            ("nULL", None),
            ("true", Some("true")),
            ("FALSE", Some("false")),
            ("yes", None),
            ("on", None),
            ("0", Some("0")),
            ("-0", Some("-0")),
            ("007", Some("7")),
            ("+12", Some("12")),
            ("12345678901234567890123", Some("12345678901234567890123")),
            ("0x1F", Some("31")),
            ("0o17", Some("15")),
            ("0x", None),
            ("0xg", None),
            ("-0x1", None),
            ("1.10", Some("1.10")),
            (".5", Some("0.5")),
            ("-.5e1", Some("-0.5e1")),
            ("5.", Some("5.0")),
            ("5.e3", Some("5.0e3")),
            ("1E+2", Some("1E+2")),
            ("1e400", Some("1e400")),
            (".", None),
            ("-", None),
            ("+", None),
            ("e1", None),
            ("1e", None),
            ("1e+", None),
            ("1.2.3", None),
            ("--1", None),
            ("1_000", None),
            ("12:30", None),
            ("2026-11-22", None),
            ("1 2", None),
            ("١", None),
        ] {
            assert_eq!(resolve(text).unwrap().as_deref(), json, "{text}");
            if let Some(json) = json {
                assert!(serde_json::from_str::<&serde_json::value::RawValue>(json).is_ok());
            }
        }
    }

    #[test]
    fn numbers_that_json_can_t_represent_are_refused() {
        for text in [".inf", "-.INF", "+.Inf", ".nan", ".NaN"] {
            assert_eq!(resolve(text), Err(NOT_FINITE), "{text}");
        }
        let largest = format!("0x{}", "f".repeat(32));
        assert_eq!(resolve(&largest), Ok(Some(u128::MAX.to_string())));
        assert_eq!(resolve(&format!("{largest}f")), Err(TOO_LARGE));
    }
}
