//! Removes whitespace from JSON.

/// Removes whitespace between tokens; numbers and strings are unchanged.
pub(crate) fn compact(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    let mut is_in_string = false;
    let mut is_escaped = false;
    for character in json.chars() {
        if is_in_string {
            match character {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                '"' => is_in_string = false,
                _ => {}
            }
        } else if character == '"' {
            is_in_string = true;
        } else if matches!(character, ' ' | '\t' | '\n' | '\r') {
            continue;
        }
        text.push(character);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whitespace_is_removed_only_between_tokens() {
        for (json, compacted) in [
            (" { \"a b\" :\t[ 1 ,\r\n2 ] } ", r#"{"a b":[1,2]}"#),
            (r#"{ "a" : " \" \\" }"#, r#"{"a":" \" \\"}"#),
            (r#"[ "\\" , " ä " ]"#, r#"["\\"," ä "]"#),
            ("12345678901234567890.10", "12345678901234567890.10"),
        ] {
            assert_eq!(compact(json), compacted);
        }
    }
}
