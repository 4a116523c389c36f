//! `keywright certificates`: the commands of certificates.

mod rotate;

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use serde::Serialize;

use super::{
    get,
    run::{CommandError, Completion, Context, Run, help},
};
use crate::{
    CertificateSummary, CredentialVersion, Error, RegenerateCertificate, SecretJson, input,
    output::Table, secret::Exposed,
};

/// Manage certificate versions and rotate CAs.
#[derive(Debug, Args)]
pub struct Certificates {
    #[command(subcommand)]
    command: CertificatesCommand,
}

#[derive(Debug, Subcommand)]
enum CertificatesCommand {
    /// List certificates, their CAs and the certificates they signed.
    #[command(after_help = help(LIST_EXAMPLES))]
    List {
        /// Name of one certificate. Default: all certificates that you can read.
        name: Option<String>,
        /// Include credentials of other types whose latest version has a certificate.
        #[arg(long)]
        all_types: bool,
    },
    /// Regenerate a certificate, optionally as transitional
    ///
    /// Parameters without an option keep their values.
    #[command(after_help = help(REGENERATE_EXAMPLES))]
    Regenerate {
        /// Name of the certificate.
        name: String,
        /// Make the new version transitional: returned alongside the active version, but not used for signing.
        #[arg(long)]
        transitional: bool,
        /// Sign with the CA's transitional version if it is newer than the active one.
        #[arg(long)]
        allow_transitional_parent_to_sign: bool,
        /// New key length: 2048, 3072 or 4096.
        #[arg(long, value_name = "BITS", value_parser = input::number::<u32>)]
        key_length: Option<u32>,
        /// New validity period in days.
        #[arg(long, value_name = "DAYS", value_parser = input::number::<u32>)]
        duration: Option<u32>,
    },
    Rotate(rotate::Rotate),
    /// Move or clear the transitional flag of a certificate
    ///
    /// Shows the active version and the transitional version after the change.
    #[command(after_help = help(TRANSITIONAL_EXAMPLES))]
    Transitional {
        /// Name of the certificate.
        name: String,
        #[command(flatten)]
        to: TransitionalOptions,
    },
    /// List the versions of a certificate, newest first
    ///
    /// Omits private keys; `keywright get` prints them.
    #[command(after_help = help(VERSIONS_EXAMPLES))]
    Versions {
        /// Name of the certificate.
        name: String,
        /// Only list the active and the transitional version.
        #[arg(long)]
        current: bool,
    },
}

/// The new transitional version.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct TransitionalOptions {
    /// Id of the version to make transitional.
    #[arg(long, value_name = "ID", value_parser = version_id)]
    version: Option<String>,
    /// Make the latest version transitional.
    #[arg(long)]
    latest: bool,
    /// Clear the flag, so that no version is transitional.
    #[arg(long)]
    clear: bool,
}

impl Run for Certificates {
    async fn run(self, context: &Context) -> Result<Completion, CommandError> {
        match self.command {
            CertificatesCommand::List { name, all_types } => {
                let client = context.client()?;
                let certificates = client.certificates(name.as_deref(), all_types).await?;
                if name.is_some() && certificates.is_empty() {
                    return Err(Error::ResponseEmpty.into());
                }
                context.show(&certificates, || certificates_table(&certificates))
            }
            CertificatesCommand::Regenerate {
                name,
                transitional,
                allow_transitional_parent_to_sign,
                key_length,
                duration,
            } => {
                let options = RegenerateCertificate {
                    set_as_transitional: transitional,
                    allow_transitional_parent_to_sign,
                    key_length,
                    duration,
                };
                let client = context.client()?;
                let id = client.certificate(&name).await?.id;
                let version = client.regenerate_certificate(&id, &options).await?;
                get::show(context, &version)
            }
            CertificatesCommand::Rotate(command) => command.run(context).await,
            CertificatesCommand::Transitional { name, to } => {
                let latest = to.latest.then_some("latest");
                let version = to.version.as_deref().or(latest);
                let client = context.client()?;
                let id = client.certificate(&name).await?.id;
                let versions = client.move_transitional_version(&id, version).await?;
                show_public(context, &versions)
            }
            CertificatesCommand::Versions { name, current } => {
                let client = context.client()?;
                let id = client.certificate(&name).await?.id;
                let versions = client.certificate_versions(&id, current).await?;
                show_public(context, &versions)
            }
        }
    }
}

fn version_id(text: &str) -> Result<String, String> {
    let is_id_byte = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    if text.len() == ID_BYTES && text.bytes().all(is_id_byte) {
        return Ok(text.to_owned());
    }
    Err("must be the id of a version; `keywright certificates versions NAME` lists them".to_owned())
}

/// The length of a UUID as text.
const ID_BYTES: usize = 36;

fn certificates_table(certificates: &[CertificateSummary]) -> Table {
    let types = certificates.iter().any(|one| one.credential_type.is_some());
    let row = |certificate: &CertificateSummary| {
        let newest = certificate.versions.first();
        let expires = newest.map_or("", |version| &version.expiry_date);
        let in_transition = certificate.versions.iter().any(|one| one.transitional);
        let mut row = vec![certificate.name.clone()];
        row.extend(types.then(|| certificate.credential_type.clone().unwrap_or_default()));
        row.extend([
            expires.to_owned(),
            certificate.versions.len().to_string(),
            yes(in_transition),
            certificate.signed_by.clone(),
            (certificate.signs.len() + certificate.issued.len()).to_string(),
        ]);
        row
    };
    let mut heads = vec!["NAME"];
    heads.extend(types.then_some("TYPE"));
    heads.extend(["EXPIRES", "VERSIONS", "TRANSITIONAL", "SIGNED BY", "SIGNS"]);
    Table::Rows {
        heads,
        rows: certificates.iter().map(row).collect(),
    }
}

/// Shows versions of a certificate, without their private keys.
fn show_public(
    context: &Context,
    versions: &[CredentialVersion],
) -> Result<Completion, CommandError> {
    let shown: Vec<_> = versions.iter().map(PublicVersion::of).collect();
    context.show(&shown, || {
        let row = |version: &CredentialVersion| {
            vec![
                version.id.clone(),
                version.version_created_at.clone(),
                version.expiry_date.clone().unwrap_or_default(),
                yes(version.transitional == Some(true)),
                yes(version.certificate_authority == Some(true)),
                yes(version.self_signed == Some(true)),
            ]
        };
        Table::Rows {
            heads: vec![
                "ID",
                "CREATED",
                "EXPIRES",
                "TRANSITIONAL",
                "CA",
                "SELF-SIGNED",
            ],
            rows: versions.iter().map(row).collect(),
        }
    })
}

/// A version in the API's format, without the secret fields of its value.
#[derive(Serialize)]
struct PublicVersion<'a> {
    version_created_at: &'a str,
    id: &'a str,
    name: &'a str,
    metadata: Option<Exposed<'a>>,
    value: BTreeMap<&'static str, Option<String>>,
    transitional: Option<bool>,
    certificate_authority: Option<bool>,
    self_signed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generated: Option<bool>,
    expiry_date: Option<&'a str>,
}

impl<'a> PublicVersion<'a> {
    fn of(version: &'a CredentialVersion) -> Self {
        Self {
            version_created_at: &version.version_created_at,
            id: &version.id,
            name: &version.name,
            metadata: version.metadata.as_ref().map(SecretJson::exposed),
            value: ["ca", "certificate"]
                .map(|name| (name, version.public_field(name)))
                .into(),
            transitional: version.transitional,
            certificate_authority: version.certificate_authority,
            self_signed: version.self_signed,
            generated: version.generated,
            expiry_date: version.expiry_date.as_deref(),
        }
    }
}

fn yes(is_set: bool) -> String {
    if is_set { "yes" } else { "" }.to_owned()
}

pub(super) const EXAMPLES: [(&str, &str); 5] = [
    ("certificates list", LIST_EXAMPLES),
    ("certificates regenerate", REGENERATE_EXAMPLES),
    ("certificates rotate", rotate::EXAMPLES),
    ("certificates transitional", TRANSITIONAL_EXAMPLES),
    ("certificates versions", VERSIONS_EXAMPLES),
];

const LIST_EXAMPLES: &str = "\
$ keywright generate /demo/root --type certificate --common-name root --is-ca
$ keywright generate /demo/web --type certificate --common-name web --ca /demo/root
# List all certificates
keywright certificates list
# Show the certificates that a CA signed
keywright certificates list /demo/root --output yaml
# Also list certificates in credentials of other types
keywright certificates list --all-types";

const REGENERATE_EXAMPLES: &str = "\
$ keywright generate /demo/root --type certificate --common-name root --is-ca
$ keywright generate /demo/web --type certificate --common-name web --ca /demo/root
# Renew a certificate for another 90 days
keywright certificates regenerate /demo/web --duration 90
# Add a version of a CA that does not sign yet
keywright certificates regenerate /demo/root --transitional";

const TRANSITIONAL_EXAMPLES: &str = "\
$ keywright generate /demo/root --type certificate --common-name root --is-ca
$ keywright certificates regenerate /demo/root
# Make the latest version transitional, so that the previous version signs
keywright certificates transitional /demo/root --latest
# Clear the flag, so that the latest version signs
keywright certificates transitional /demo/root --clear";

const VERSIONS_EXAMPLES: &str = "\
$ keywright generate /demo/root --type certificate --common-name root --is-ca
$ keywright generate /demo/web --type certificate --common-name web --ca /demo/root
# List all versions of a certificate
keywright certificates versions /demo/web
# Show which version signs and which is transitional
keywright certificates versions /demo/root --current";
