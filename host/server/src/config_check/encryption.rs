//! Encryption keys.

use keywright_crypto::{ConfiguredKey, ConfiguredKeys};

use super::{Findings, access::warn_if_world_accessible};
use crate::{
    config::{KeyConfig, KeyOrigin, SecretSource, Sections},
    keys,
    started::StartRefused,
};

/// Reads the keys as a server does, without calling key management plugins.
pub(super) fn check(sections: &Sections, findings: &mut Findings) {
    let Some(encryption) = &sections.encryption else {
        return;
    };
    let mut keys = Vec::with_capacity(encryption.keys.len());
    for (index, key) in encryption.keys.iter().enumerate() {
        let section = format!("encryption.keys[{index}]");
        keys.extend(check_key(&section, key, findings));
    }
    // If a key can't be read, the keys can't be compared.
    if keys.len() == encryption.keys.len()
        && let Err(refused) = ConfiguredKeys::new(keys)
    {
        findings.mistake("encryption.keys", refused);
    }
}

fn check_key(section: &str, key: &KeyConfig, findings: &mut Findings) -> Option<ConfiguredKey> {
    let origin = findings.taken(section, key.origin())?;
    let setting = match &origin {
        KeyOrigin::Secret(_, SecretSource::Environment(_)) => format!("{section}.environment"),
        KeyOrigin::Secret(_, SecretSource::File(file)) => {
            let setting = format!("{section}.file");
            warn_if_world_accessible(&setting, file, findings);
            setting
        }
        KeyOrigin::Plugin(address) => {
            let authorities = keys::read_authorities(address);
            findings.taken(format!("{section}.trusted_authorities"), authorities)?;
            section.to_owned()
        }
    };
    let source = findings.taken(&setting, keys::source_of(&origin))?;
    let checked = source.check();
    let checked = checked.map_err(|refused| StartRefused::new(refused.to_string()));
    findings.taken(setting, checked)?;
    Some(ConfiguredKey {
        source,
        is_active: key.active,
    })
}
