//! The keys that encrypt what is stored.

use std::fs;

use super::{Findings, access::warn_of_others};
use crate::{
    config::{KeyOrigin, SecretSource, Sections},
    keys,
    started::StartRefused,
};

pub(super) fn check(sections: &Sections, findings: &mut Findings) {
    let Some(encryption) = &sections.encryption else {
        return;
    };
    for (index, key) in encryption.keys.iter().enumerate() {
        let section = format!("encryption.keys[{index}]");
        let source = match findings.taken(&section, key.origin()) {
            Some(KeyOrigin::Secret(source)) => source,
            Some(KeyOrigin::Plugin(address)) => {
                if let Some(file) = address.trusted_authorities {
                    let read = fs::read(file)
                        .map_err(|cause| StartRefused::file("reading certificates", file, cause));
                    findings.taken(format!("{section}.trusted_authorities"), read);
                }
                continue;
            }
            None => continue,
        };
        let setting = match source {
            SecretSource::Environment(_) => format!("{section}.environment"),
            SecretSource::File(file) => {
                let setting = format!("{section}.file");
                warn_of_others(&setting, file, findings);
                setting
            }
        };
        let is_empty = source.read().is_ok_and(|secret| secret.expose().is_empty());
        if is_empty {
            findings.mistake(&setting, "the secret is empty");
        }
        findings.taken(setting, keys::read_secret(key.provider, source));
    }
    let active = encryption.keys.iter().filter(|key| key.active).count();
    if active != 1 {
        findings.mistake(
            "encryption.keys",
            format!("exactly one key must be active, and {active} are"),
        );
    }
}
