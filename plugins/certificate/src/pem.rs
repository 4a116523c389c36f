//! The format of stored certificates: PEM with lines of 64 characters that end with a line feed.

use der::pem::LineEnding;
use keywright_plugin_support::{Failure, first_block};

/// Encodes a certificate as PEM.
pub fn encode(certificate: &[u8]) -> Result<String, Failure> {
    der::pem::encode_string(LABEL, LineEnding::LF, certificate)
        .map_err(|error| Failure::Other(format!("could not encode the certificate: {error}")))
}

/// Decodes the first certificate in a text.
pub fn first_certificate(text: &str) -> Option<Vec<u8>> {
    first_block(text, &LABELS)
}

const LABEL: &str = "CERTIFICATE";

/// The labels of certificates (RFC 7468, section 5).
const LABELS: [&str; 2] = [LABEL, "X509 CERTIFICATE"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoding_and_decoding_round_trip() {
        let bytes: Vec<u8> = (0..=255).collect();
        let text = encode(&bytes).unwrap();
        assert!(text.lines().all(|line| line.len() <= 64));
        assert!(text.ends_with("-----END CERTIFICATE-----\n"));
        assert_eq!(first_certificate(&text), Some(bytes));
    }

    #[test]
    fn first_certificate_is_found_in_other_text() {
        let first = "-----BEGIN CERTIFICATE-----\r\nAQ\r\nID\r\n-----END CERTIFICATE-----";
        let text = format!("subject=x\n{first}\r\nnoise\n{}", encode(&[9]).unwrap());
        assert_eq!(first_certificate(&text), Some(vec![1, 2, 3]));
        let older = text.replacen("CERTIFICATE", "X509 CERTIFICATE", 2);
        assert_eq!(first_certificate(&older), Some(vec![1, 2, 3]));
    }

    #[test]
    fn malformed_pem_is_rejected() {
        for text in [
            "",
            "AQID",
            "-----BEGIN CERTIFICATE-----\nAQID",
            &encode(&[9]).unwrap().replace('Q', "!"),
        ] {
            assert_eq!(first_certificate(text), None, "{text}");
        }
    }
}
