use crate::Checked;

/// Whole numbers below this bound, 2⁵³, are exact in floating point.
const EXACT_BELOW: f64 = 9_007_199_254_740_992.0;

impl Checked<'_> {
    /// Reads a boolean: `true` or `false`, also as a string in any casing, or the number 1 or 0. `None` for other JSON.
    #[must_use]
    pub fn boolean(self) -> Option<bool> {
        match self.text().trim() {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ if self.is_string() => {
                let word = self.read::<String>().ok()?;
                let is = |expected: &str| word.eq_ignore_ascii_case(expected);
                is("true").then_some(true).or(is("false").then_some(false))
            }
            _ => None,
        }
    }

    /// Reads a signed 64-bit integer: a number without a fraction (`20` or `20.0`), or a string of digits. `None` for other
    /// JSON.
    #[must_use]
    pub fn whole_number(self) -> Option<i64> {
        if self.is_string() {
            return self.read::<String>().ok()?.parse().ok();
        }
        let text = self.text().trim();
        text.parse().ok().or_else(|| {
            let number: f64 = text.parse().ok()?;
            let is_whole = number.fract() == 0.0 && number.abs() < EXACT_BELOW;
            is_whole.then(|| format!("{number:.0}").parse().ok())?
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::check;

    #[test]
    fn booleans_are_read_from_words_in_any_casing_and_from_0_and_1() {
        for (text, expected) in [
            ("true", Some(true)),
            (r#""True""#, Some(true)),
            (r#" "TRUE" "#, Some(true)),
            ("1", Some(true)),
            ("false", Some(false)),
            (r#""False""#, Some(false)),
            (r#""\u0046ALSE""#, Some(false)),
            ("0", Some(false)),
            ("2", None),
            ("1.0", None),
            ("-1", None),
            (r#""1""#, None),
            (r#""yes""#, None),
            (r#""""#, None),
            ("null", None),
            ("[true]", None),
        ] {
            assert_eq!(check(text).unwrap().boolean(), expected, "{text}");
        }
    }

    #[test]
    fn whole_numbers_may_have_a_fraction_of_zero_or_be_strings() {
        for (text, expected) in [
            ("20", Some(20)),
            ("20.0", Some(20)),
            ("-20.00", Some(-20)),
            ("2e1", Some(20)),
            ("0.0", Some(0)),
            (r#""20""#, Some(20)),
            ("9223372036854775807", Some(i64::MAX)),
            ("9007199254740991.0", Some(9_007_199_254_740_991)),
            ("9007199254740992.0", None),
            ("9223372036854775808", None),
            ("20.5", None),
            (r#""20.0""#, None),
            (r#""""#, None),
            ("true", None),
            ("null", None),
            ("[20]", None),
        ] {
            assert_eq!(check(text).unwrap().whole_number(), expected, "{text}");
        }
    }
}
