//! How commands reach a registry.

use std::path::PathBuf;

use clap::Args;
use keywright_registry::RegistryHost;

use crate::{
    config::{RegistryConfig, RegistryHostConfig},
    started::StartRefused,
};

/// How a registry is reached.
#[derive(Debug, Args)]
pub(super) struct RegistryArguments {
    /// The user as who the registry is asked.
    #[arg(long, value_name = "NAME", requires = "password_file", help_heading = HEADING)]
    user: Option<String>,
    /// The file with the user's password or access token.
    #[arg(long, value_name = "FILE", requires = "user", help_heading = HEADING)]
    password_file: Option<PathBuf>,
    /// A file with users and passwords as Docker and other tools write it at a login, such as `~/.docker/config.json`.
    #[arg(long, value_name = "FILE", conflicts_with = "user", help_heading = HEADING)]
    docker_config: Option<PathBuf>,
    /// The file with authorities to trust, PEM, in the place of the platform's. Registries on this machine are then asked by
    /// https, too.
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    trusted_authorities: Option<PathBuf>,
    /// Use plain http, which protects nothing that is sent. Registries on this machine are asked by it anyway; to another one no
    /// password is sent in this way.
    #[arg(long, conflicts_with = "trusted_authorities", help_heading = HEADING)]
    plain_http: bool,
}

impl RegistryArguments {
    /// The configuration that says the same of a registry.
    pub(super) fn config(&self, host: &RegistryHost) -> Result<RegistryConfig, StartRefused> {
        let has_password = self.user.is_some() || self.docker_config.is_some();
        if self.plain_http && has_password && !host.is_loopback() {
            return Err(StartRefused::new(
                "a password is not sent by plain http, except to this machine; leave --plain-http out",
            ));
        }
        let known = RegistryHostConfig::of_arguments(
            host.clone(),
            self.user.clone(),
            self.password_file.clone(),
            self.trusted_authorities.clone(),
            self.plain_http(),
        );
        Ok(RegistryConfig {
            docker_config: self.docker_config.clone(),
            hosts: vec![known],
            ..RegistryConfig::default()
        })
    }

    /// Whether it is plain http, where the arguments say that.
    fn plain_http(&self) -> Option<bool> {
        let is_protected = self.trusted_authorities.is_some();
        (self.plain_http || is_protected).then_some(self.plain_http)
    }
}

/// The heading of these arguments in help.
const HEADING: &str = "Registry";
