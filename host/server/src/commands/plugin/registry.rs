//! The registry arguments of commands.

use std::path::PathBuf;

use clap::Args;
use keywright_registry::RegistryHost;

use crate::{
    config::{RegistryConfig, RegistryHostConfig},
    started::StartRefused,
};

/// Access to a registry.
#[derive(Debug, Args)]
pub(super) struct RegistryArguments {
    /// The user to log in as
    #[arg(long, value_name = "NAME", requires = "password_file", help_heading = HEADING)]
    user: Option<String>,
    /// The file that contains the user's password or access token
    #[arg(long, value_name = "FILE", requires = "user", help_heading = HEADING)]
    password_file: Option<PathBuf>,
    /// A Docker login file with users and passwords, such as `~/.docker/config.json`
    #[arg(long, value_name = "FILE", conflicts_with = "user", help_heading = HEADING)]
    docker_config: Option<PathBuf>,
    /// The file with the CA certificates to trust, PEM, instead of the platform's. Registries on this machine are then
    /// also accessed over HTTPS.
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    trusted_authorities: Option<PathBuf>,
    /// Use plain HTTP, which protects nothing in transit. It is the default for registries on this machine; passwords
    /// are never sent to others this way.
    #[arg(long, conflicts_with = "trusted_authorities", help_heading = HEADING)]
    plain_http: bool,
}

impl RegistryArguments {
    /// Returns the configuration for a registry.
    pub(super) fn config(&self, host: &RegistryHost) -> Result<RegistryConfig, StartRefused> {
        let has_password = self.user.is_some() || self.docker_config.is_some();
        if self.plain_http && has_password && !host.is_loopback() {
            return Err(StartRefused::new(
                "passwords are sent over plain HTTP only to this machine; omit --plain-http",
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

    /// Returns the choice between plain HTTP and HTTPS, if the arguments make one.
    fn plain_http(&self) -> Option<bool> {
        let is_protected = self.trusted_authorities.is_some();
        (self.plain_http || is_protected).then_some(self.plain_http)
    }
}

/// The help heading of these arguments.
const HEADING: &str = "Registry";
