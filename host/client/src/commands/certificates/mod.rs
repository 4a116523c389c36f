//! `keywright certificates`: the verbs of certificates, one file each.

mod list;
mod regenerate;
mod rotate;
mod shown;
mod transitional;
mod versions;

use clap::{Args, Subcommand};

use super::{Completion, Context, Failure, Verb, VerbExamples};

/// Manage certificate versions and rotate CAs.
#[derive(Debug, Args)]
pub struct Certificates {
    #[command(subcommand)]
    verb: CertificatesVerb,
}

#[derive(Debug, Subcommand)]
enum CertificatesVerb {
    List(list::List),
    Regenerate(regenerate::Regenerate),
    Rotate(rotate::Rotate),
    Transitional(transitional::Transitional),
    Versions(versions::Versions),
}

impl Verb for Certificates {
    async fn run(self, context: &Context) -> Result<Completion, Failure> {
        match self.verb {
            CertificatesVerb::List(verb) => verb.run(context).await,
            CertificatesVerb::Regenerate(verb) => verb.run(context).await,
            CertificatesVerb::Rotate(verb) => verb.run(context).await,
            CertificatesVerb::Transitional(verb) => verb.run(context).await,
            CertificatesVerb::Versions(verb) => verb.run(context).await,
        }
    }
}

pub(super) const EXAMPLES: [VerbExamples; 5] = [
    VerbExamples::new("certificates list", list::EXAMPLES),
    VerbExamples::new("certificates regenerate", regenerate::EXAMPLES),
    VerbExamples::new("certificates rotate", rotate::EXAMPLES),
    VerbExamples::new("certificates transitional", transitional::EXAMPLES),
    VerbExamples::new("certificates versions", versions::EXAMPLES),
];

/// Commands that generate a CA and a certificate that it signs.
pub(super) const AUTHORITY_AND_LEAF: &[&str] = &[
    AUTHORITY,
    "keywright generate /demo/web --type certificate --common-name web --ca /demo/root",
];

const AUTHORITY: &str =
    "keywright generate /demo/root --type certificate --common-name root --is-ca";
