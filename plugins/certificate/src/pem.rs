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
    fn both_labels_of_certificates_are_read() {
        let text = encode(&[1, 2, 3]).unwrap();
        for text in [text.replace("CERTIFICATE", "X509 CERTIFICATE"), text] {
            assert_eq!(first_certificate(&text), Some(vec![1, 2, 3]));
        }
    }
}
