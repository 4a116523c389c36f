//! Registries. No request is sent.

use super::{Findings, access::warn_if_world_accessible};
use crate::config::Sections;

pub(super) fn check(sections: &Sections, findings: &mut Findings) {
    let Some(registry) = &sections.registry else {
        return;
    };
    if let Some(file) = &registry.docker_config {
        findings.taken("registry.docker_config", registry.read_docker_config());
        warn_if_world_accessible("registry.docker_config", file, findings);
    }
    for (index, known) in registry.hosts.iter().enumerate() {
        let setting = format!("registry.hosts[{index}]");
        findings.taken(&setting, registry.registry(known.host()));
        if let Some(file) = &known.password_file {
            warn_if_world_accessible(&format!("{setting}.password_file"), file, findings);
        }
        if known.exposes_password() {
            let what = "plain_http sends the password unencrypted over the network";
            findings.warning(&setting, what);
        }
    }
}
