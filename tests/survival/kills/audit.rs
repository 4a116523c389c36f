//! The audit trail of a round.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::Value;

/// The part of an audit trail that was read so far.
#[derive(Debug, Default)]
pub(super) struct AuditTrail {
    bytes_read: usize,
}

impl AuditTrail {
    /// Asserts that the lines added since the last call contain all these requests. The last line may be incomplete if
    /// the server was killed while writing it.
    pub(super) fn verify(&mut self, directory: &Path, acknowledged: &[String]) {
        let trail = fs::read(directory.join("audit.log")).unwrap();
        let added = &trail[self.bytes_read..];
        self.bytes_read = trail.len();
        let lines = added.split(|byte| *byte == b'\n');
        let lines: Vec<&[u8]> = lines.filter(|line| !line.is_empty()).collect();
        let mut request_ids = BTreeSet::new();
        for (position, line) in lines.iter().enumerate() {
            match serde_json::from_slice::<Value>(line) {
                Ok(event) => {
                    request_ids.insert(event["request_id"].as_str().unwrap().to_owned());
                }
                Err(cause) => {
                    let line = String::from_utf8_lossy(line);
                    assert_eq!(position + 1, lines.len(), "{cause} in {line}");
                }
            }
        }
        for request_id in acknowledged {
            assert!(
                request_ids.contains(request_id),
                "no event has the id {request_id}"
            );
        }
    }
}
