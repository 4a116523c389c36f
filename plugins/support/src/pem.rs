use base64ct::{Base64, Encoding};

/// Decodes the first PEM block with one of these labels. Accepts other text around it and lines of any length, because values that
/// callers set are stored unchanged. Returns `None` if there is no such block or its base64 is malformed.
pub fn first_block(text: &str, labels: &[&str]) -> Option<Vec<u8>> {
    let (begin, label) = labels
        .iter()
        .filter_map(|label| Some((text.find(&format!("-----BEGIN {label}-----"))?, label)))
        .min()?;
    let (_, rest) = text.get(begin..)?.split_once(label)?;
    let rest = rest.strip_prefix("-----")?;
    let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
    let body: String = body.split_ascii_whitespace().collect();
    Base64::decode_vec(&body).ok()
}

/// The label of public keys of any type (RFC 7468, section 13).
pub const PUBLIC_KEY: &str = "PUBLIC KEY";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_well_formed_blocks_with_the_label_are_decoded() {
        for (text, expected) in [
            (
                "-----BEGIN A-----\nAQI=\n-----END A-----\n",
                Some(&[1, 2][..]),
            ),
            ("a\n-----BEGIN A-----A Q\tI=-----END A-----b", Some(&[1, 2])),
            ("-----BEGIN A-----\nAQI=\n-----END B-----\n", None),
            ("-----BEGIN A-----\nAQI\n-----END A-----\n", None),
            (
                "-----BEGIN A-----\n-----BEGIN A-----\n-----END A-----\n",
                None,
            ),
            ("-----BEGIN AN A-----\nAQI=\n-----END AN A-----\n", None),
            ("-----BEGIN A-----", None),
        ] {
            assert_eq!(first_block(text, &["A"]).as_deref(), expected, "{text}");
        }
    }
}
