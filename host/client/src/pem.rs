//! Certificates as PEM (RFC 7468), as far as they are told apart here.

/// The first certificate of a text, without what stands between its lines: two are the same when these are. A server that is
/// told to concatenate authorities appends a second one to the one that signed.
pub(crate) fn first_certificate(pem: &str) -> String {
    let first = pem.split_inclusive(END).next().unwrap_or_default();
    first.split_whitespace().collect()
}

const END: &str = "-----END CERTIFICATE-----";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_several_certificates_is_told_whatever_its_lines() {
        let [old, new] = ["old", "new"]
            .map(|body| format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----"));
        let cases = [
            (new.clone(), true),
            (format!("\n{new}\n").replace('\n', "\r\n"), true),
            (format!("{new}\n{old}\n"), true),
            (format!("{old}\n{new}\n"), false),
            (old.clone(), false),
            (String::new(), false),
        ];
        for (authorities, expected) in cases {
            let is_same = first_certificate(&authorities) == first_certificate(&new);
            assert_eq!(is_same, expected, "{authorities}");
        }
    }
}
