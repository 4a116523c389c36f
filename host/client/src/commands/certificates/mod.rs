//! `keywright certificates`: the commands of certificates.

mod rotate;

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::run::{
    AUTHORITY, AUTHORITY_AND_LEAF, CommandExamples, Completion, Context, Example, Failure, Run,
    help,
};
use crate::{
    CertificateSummary, CredentialVersion, RegenerateCertificate, SecretJson, TransitionalVersion,
    output::{Render, Table},
    secret::Exposed,
};

/// Manage certificate versions and rotate CAs.
#[derive(Debug, Args)]
pub struct Certificates {
    #[command(subcommand)]
    command: CertificatesCommand,
}

#[derive(Debug, Subcommand)]
enum CertificatesCommand {
    List(List),
    Regenerate(Regenerate),
    Rotate(rotate::Rotate),
    Transitional(Transitional),
    Versions(Versions),
}

impl Run for Certificates {
    async fn run(self, context: &Context) -> Result<Completion, Failure> {
        match self.command {
            CertificatesCommand::List(command) => command.run(context).await,
            CertificatesCommand::Regenerate(command) => command.run(context).await,
            CertificatesCommand::Rotate(command) => command.run(context).await,
            CertificatesCommand::Transitional(command) => command.run(context).await,
            CertificatesCommand::Versions(command) => command.run(context).await,
        }
    }
}

/// List certificates, their CAs and the certificates they signed.
#[derive(Debug, Args)]
#[command(after_help = help(LIST_EXAMPLES))]
struct List {
    /// Name of one certificate. Default: all certificates that you can read.
    name: Option<String>,
    /// Include credentials of other types whose latest version has a certificate.
    #[arg(long)]
    all_types: bool,
}

impl Run for List {
    async fn run(self, context: &Context) -> Result<Completion, Failure> {
        let client = context.client()?;
        let certificates = match (&self.name, self.all_types) {
            (Some(name), false) => vec![client.certificate(name).await?],
            (Some(name), true) => vec![client.certificate_of_any_type(name).await?],
            (None, false) => client.certificates().await?,
            (None, true) => client.certificates_of_all_types().await?,
        };
        context.output.show(certificates.as_slice())?;
        Ok(Completion::Full)
    }
}

/// Regenerate a certificate, optionally transitional.
///
/// Parameters without an option keep their values.
#[derive(Debug, Args)]
#[command(after_help = help(REGENERATE_EXAMPLES))]
struct Regenerate {
    /// Name of the certificate.
    name: String,
    /// Make the new version transitional: returned alongside the active version, but not used for signing.
    #[arg(long)]
    transitional: bool,
    /// Sign with the CA's transitional version if it is newer than the active one.
    #[arg(long)]
    allow_transitional_parent_to_sign: bool,
    /// New key length: 2048, 3072 or 4096.
    #[arg(long, value_name = "BITS")]
    key_length: Option<u32>,
    /// New validity period in days.
    #[arg(long, value_name = "DAYS")]
    duration: Option<u32>,
}

impl Run for Regenerate {
    async fn run(self, context: &Context) -> Result<Completion, Failure> {
        let client = context.client()?;
        let id = client.certificate(&self.name).await?.id;
        let options = RegenerateCertificate {
            set_as_transitional: self.transitional,
            allow_transitional_parent_to_sign: self.allow_transitional_parent_to_sign,
            key_length: self.key_length,
            duration: self.duration,
        };
        let version = client.regenerate_certificate(&id, &options).await?;
        context.output.show(&version)?;
        Ok(Completion::Full)
    }
}

/// Move or clear the transitional flag of a certificate.
///
/// Shows the active version and the transitional version after the change.
#[derive(Debug, Args)]
#[command(after_help = help(TRANSITIONAL_EXAMPLES))]
struct Transitional {
    /// Name of the certificate.
    name: String,
    #[command(flatten)]
    to: TransitionalOptions,
}

/// The new transitional version.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct TransitionalOptions {
    /// Id of the version to make transitional.
    #[arg(long, value_name = "ID")]
    version: Option<String>,
    /// Make the latest version transitional.
    #[arg(long)]
    latest: bool,
    /// Clear the flag, so that no version is transitional.
    #[arg(long)]
    clear: bool,
}

impl Run for Transitional {
    async fn run(self, context: &Context) -> Result<Completion, Failure> {
        let client = context.client()?;
        let id = client.certificate(&self.name).await?.id;
        let to = match &self.to.version {
            Some(version) => TransitionalVersion::Id(version),
            None if self.to.latest => TransitionalVersion::Latest,
            None => TransitionalVersion::None,
        };
        let versions = client.move_transitional_version(&id, to).await?;
        context.output.show(&PublicVersions(&versions))?;
        Ok(Completion::Full)
    }
}

/// List the versions of a certificate, newest first.
///
/// Omits private keys; `keywright get` prints them.
#[derive(Debug, Args)]
#[command(after_help = help(VERSIONS_EXAMPLES))]
struct Versions {
    /// Name of the certificate.
    name: String,
    /// Only list the active and the transitional version.
    #[arg(long)]
    current: bool,
}

impl Run for Versions {
    async fn run(self, context: &Context) -> Result<Completion, Failure> {
        let client = context.client()?;
        let id = client.certificate(&self.name).await?.id;
        let versions = if self.current {
            client.current_certificate_versions(&id).await?
        } else {
            client.certificate_versions(&id).await?
        };
        context.output.show(&PublicVersions(&versions))?;
        Ok(Completion::Full)
    }
}

/// Versions of a certificate, without their private keys.
struct PublicVersions<'a>(&'a [CredentialVersion]);

impl Render for [CertificateSummary] {
    fn json(&self) -> Result<Box<RawValue>, serde_json::Error> {
        to_raw_value(self)
    }

    fn table(&self) -> Table {
        let types = self.iter().any(|one| one.credential_type.is_some());
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
            rows: self.iter().map(row).collect(),
        }
    }
}

impl Render for PublicVersions<'_> {
    fn json(&self) -> Result<Box<RawValue>, serde_json::Error> {
        let versions: Vec<_> = self.0.iter().map(PublicVersion::of).collect();
        to_raw_value(&versions)
    }

    fn table(&self) -> Table {
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
            rows: self.0.iter().map(row).collect(),
        }
    }
}

/// A version in the API's format, without the secret fields of its value.
#[derive(Serialize)]
struct PublicVersion<'a> {
    version_created_at: &'a str,
    id: &'a str,
    name: &'a str,
    metadata: Option<Exposed<'a>>,
    value: PublicValue,
    transitional: Option<bool>,
    certificate_authority: Option<bool>,
    self_signed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generated: Option<bool>,
    expiry_date: Option<&'a str>,
}

#[derive(Serialize)]
struct PublicValue {
    ca: Option<String>,
    certificate: Option<String>,
}

impl<'a> PublicVersion<'a> {
    fn of(version: &'a CredentialVersion) -> Self {
        Self {
            version_created_at: &version.version_created_at,
            id: &version.id,
            name: &version.name,
            metadata: version.metadata.as_ref().map(SecretJson::exposed),
            value: PublicValue {
                ca: version.public_field("ca"),
                certificate: version.public_field("certificate"),
            },
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

pub(super) const EXAMPLES: [CommandExamples; 5] = [
    CommandExamples::new("certificates list", LIST_EXAMPLES),
    CommandExamples::new("certificates regenerate", REGENERATE_EXAMPLES),
    CommandExamples::new("certificates rotate", rotate::EXAMPLES),
    CommandExamples::new("certificates transitional", TRANSITIONAL_EXAMPLES),
    CommandExamples::new("certificates versions", VERSIONS_EXAMPLES),
];

const LIST_EXAMPLES: &[Example] = &[
    Example {
        does: "List all certificates",
        line: "keywright certificates list",
        before: AUTHORITY_AND_LEAF,
    },
    Example {
        does: "Show the certificates that a CA signed",
        line: "keywright certificates list /demo/root --output yaml",
        before: AUTHORITY_AND_LEAF,
    },
    Example {
        does: "Also list certificates in credentials of other types",
        line: "keywright certificates list --all-types",
        before: AUTHORITY_AND_LEAF,
    },
];

const REGENERATE_EXAMPLES: &[Example] = &[
    Example {
        does: "Renew a certificate for another 90 days",
        line: "keywright certificates regenerate /demo/web --duration 90",
        before: AUTHORITY_AND_LEAF,
    },
    Example {
        does: "Add a version of a CA that does not sign yet",
        line: "keywright certificates regenerate /demo/root --transitional",
        before: AUTHORITY_AND_LEAF,
    },
];

const TRANSITIONAL_EXAMPLES: &[Example] = &[
    Example {
        does: "Return the latest version, but sign with the previous version",
        line: "keywright certificates transitional /demo/root --latest",
        before: TWO_VERSIONS,
    },
    Example {
        does: "Return only the active version",
        line: "keywright certificates transitional /demo/root --clear",
        before: TWO_VERSIONS,
    },
];

const TWO_VERSIONS: &[&str] = &[AUTHORITY, "keywright certificates regenerate /demo/root"];

const VERSIONS_EXAMPLES: &[Example] = &[
    Example {
        does: "List all versions of a certificate",
        line: "keywright certificates versions /demo/web",
        before: AUTHORITY_AND_LEAF,
    },
    Example {
        does: "Show which version signs and which is transitional",
        line: "keywright certificates versions /demo/root --current",
        before: AUTHORITY_AND_LEAF,
    },
];
