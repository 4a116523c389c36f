//! Comparison of PEM certificates (RFC 7468).

/// Returns the first certificate of a PEM text without whitespace. Equal results mean equal certificates. The signing CA comes
/// first: a server with `concatenate_cas` appends a second CA certificate.
pub(crate) fn first_certificate(pem: &str) -> String {
    let first = pem.split_inclusive(END).next().unwrap_or_default();
    first.split_whitespace().collect()
}

const END: &str = "-----END CERTIFICATE-----";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_compared_regardless_of_line_breaks() {
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
