//! The plugins and their sandbox.

use std::{path::PathBuf, sync::Arc};

use keywright_runtime::{LoadRefused, Runtime, RuntimeConfig, SandboxConfig, SystemRandom};

use super::{Findings, access::check_private_folder};
use crate::{config::Sections, started::StartRefused};

/// Looks the sandbox over, and loads each plugin as the server does, but for the compiled ones that the server has kept:
/// they are compiled anew, and nothing is kept.
pub(super) async fn check(sections: Sections, loads_plugins: bool, findings: &mut Findings) {
    if let Some(sandbox) = &sections.plugins {
        let folder = &sandbox.cache_directory;
        check_private_folder("plugins.cache_directory", folder, findings);
    }
    if !loads_plugins {
        return;
    }
    let config = RuntimeConfig {
        sandbox: sections
            .plugins
            .unwrap_or_else(|| SandboxConfig::new(PathBuf::new())),
        generators: sections.generators,
        resolver: sections.resolver,
    };
    let checked =
        tokio::task::spawn_blocking(move || Runtime::check(&config, Arc::new(SystemRandom))).await;
    let refusals = match checked {
        Ok(refusals) => refusals,
        Err(cause) => vec![LoadRefused::Threads(cause.into())],
    };
    for refused in refusals {
        let setting = match &refused {
            LoadRefused::Plugin(plugin) if plugin.is_generator => {
                format!("generators.{}.{}", plugin.plugin, plugin.refusal.setting())
            }
            LoadRefused::Plugin(plugin) => format!("resolver.{}", plugin.refusal.setting()),
            LoadRefused::SettingOutOfBounds { setting, .. } => format!("plugins.{setting}"),
            _ => "plugins".to_owned(),
        };
        let refused = Err::<(), _>(StartRefused::while_doing("loading it", refused));
        findings.taken(setting, refused);
    }
}
