//! The form in which certificates are stored: PEM with lines of 64 characters, each ended by a line feed.

use base64ct::{Base64, Encoding};
use der::pem::LineEnding;
use keywright_plugin_support::Failure;

/// Writes a certificate.
///
/// # Errors
///
/// [`Failure::Other`], when it can't be written; nothing a caller sends leads there.
pub fn written(certificate: &[u8]) -> Result<String, Failure> {
    der::pem::encode_string(LABEL, LineEnding::LF, certificate)
        .map_err(|error| Failure::Other(format!("the certificate can't be written: {error}")))
}

/// Reads the first certificate of a text, whatever stands before and after it and however long its lines are: what a
/// caller set is kept as it was.
#[must_use]
pub fn first_certificate(text: &str) -> Option<Vec<u8>> {
    let (begin, label) = LABELS
        .iter()
        .filter_map(|label| Some((text.find(&format!("-----BEGIN {label}-----"))?, label)))
        .min()?;
    let (_, rest) = text.get(begin..)?.split_once(label)?;
    let rest = rest.strip_prefix("-----")?;
    let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
    let body: String = body.split_ascii_whitespace().collect();
    Base64::decode_vec(&body).ok()
}

const LABEL: &str = "CERTIFICATE";

/// What a block with a certificate may call itself (RFC 7468, section 5).
const LABELS: [&str; 2] = [LABEL, "X509 CERTIFICATE"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_again() {
        let bytes: Vec<u8> = (0..=255).collect();
        let text = written(&bytes).unwrap();
        assert!(text.lines().all(|line| line.len() <= 64));
        assert!(text.ends_with("-----END CERTIFICATE-----\n"));
        assert_eq!(first_certificate(&text), Some(bytes));
    }

    #[test]
    fn the_first_certificate_is_read_whatever_surrounds_it() {
        let first = "-----BEGIN CERTIFICATE-----\r\nAQ\r\nID\r\n-----END CERTIFICATE-----";
        let text = format!("subject=x\n{first}\r\nnoise\n{}", written(&[9]).unwrap());
        assert_eq!(first_certificate(&text), Some(vec![1, 2, 3]));
        let older = text.replacen("CERTIFICATE", "X509 CERTIFICATE", 2);
        assert_eq!(first_certificate(&older), Some(vec![1, 2, 3]));
    }

    #[test]
    fn what_is_no_certificate_is_not_read() {
        for text in [
            "",
            "AQID",
            "-----BEGIN CERTIFICATE-----\nAQID",
            &written(&[9]).unwrap().replace('Q', "!"),
        ] {
            assert_eq!(first_certificate(text), None, "{text}");
        }
    }
}
