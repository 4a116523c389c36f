//! The configured plugins and their roles.

use crate::{
    config::{PluginConfig, RuntimeConfig},
    refused::{PluginRefused, Refusal},
};

/// Returns the configured plugins, generators first.
pub(crate) fn roles(config: &RuntimeConfig) -> impl Iterator<Item = Role<'_>> {
    let generators = config.generators.iter();
    generators
        .map(|(name, config)| Role {
            name,
            config,
            is_generator: true,
        })
        .chain(config.resolver.iter().map(|config| Role {
            name: RESOLVER_NAME,
            config,
            is_generator: false,
        }))
}

/// A plugin to be loaded.
#[derive(Clone, Copy)]
pub(crate) struct Role<'a> {
    pub(crate) name: &'a str,
    pub(crate) config: &'a PluginConfig,
    pub(crate) is_generator: bool,
}

impl Role<'_> {
    /// Checks that its limits are in range.
    ///
    /// # Errors
    /// The first limit that is not.
    pub(crate) fn check_limits(&self) -> Result<(), PluginRefused> {
        match self.config.limits.out_of_bounds() {
            Some((limit, min, max)) => {
                Err(self.refused(Refusal::LimitOutOfBounds { limit, min, max }))
            }
            None => Ok(()),
        }
    }

    /// Returns the error for a plugin that can't be loaded.
    pub(crate) fn refused(&self, refusal: Refusal) -> PluginRefused {
        PluginRefused {
            plugin: self.name.to_owned(),
            is_generator: self.is_generator,
            component: self.config.component.to_string(),
            refusal,
        }
    }
}

/// The resolver's name in messages.
const RESOLVER_NAME: &str = "resolver";
