//! The keys that encrypt what is stored.

use super::{Findings, access::warn_of_others};
use crate::{
    config::{SecretSource, Sections},
    keys,
};

pub(super) fn check(sections: &Sections, findings: &mut Findings) {
    let Some(encryption) = &sections.encryption else {
        return;
    };
    for (index, key) in encryption.keys.iter().enumerate() {
        let section = format!("encryption.keys[{index}]");
        let Some(source) = findings.taken(&section, key.source()) else {
            continue;
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
        findings.taken(setting, keys::read_key(key));
    }
    let active = encryption.keys.iter().filter(|key| key.active).count();
    if active != 1 {
        findings.mistake(
            "encryption.keys",
            format!("exactly one key must be active, and {active} are"),
        );
    }
}
