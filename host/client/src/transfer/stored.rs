//! What the server has of a credential, as an export writes it.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use super::{
    node::{Node, Reason},
    write::Written,
};
use crate::{Client, CredentialVersion, Error, Find, pem::first_certificate};

/// A credential that the server has.
pub(crate) struct Stored {
    /// What is written of it.
    pub(crate) written: Written,
    /// Who signed it, where it is a certificate that names a stored authority, and that one's name is not written.
    pub(crate) not_named: Option<Signer>,
}

/// An authority whose name can't stand in an export: the certificate has its own copy of that one's certificate then.
#[derive(Debug)]
pub(crate) enum Signer {
    /// The version of it that is in use is another one.
    Before(String),
    /// The server says that it is not there, or hidden from the caller.
    Hidden(String),
}

/// Why a credential can't be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotRead {
    /// The server does not give it.
    #[error(transparent)]
    Refused(#[from] Error),
    /// What it gives is not understood.
    #[error("the answer of the server is not understood: {0}")]
    Malformed(Reason),
}

/// The authorities whose certificates were looked at, so that each is read once for all that it signed.
#[derive(Default)]
pub(crate) struct Authorities {
    known: Mutex<HashMap<String, InUse>>,
}

/// What is known of an authority's version in use.
#[derive(Clone, PartialEq, Eq)]
enum InUse {
    /// Its certificate, in the form of [`first_certificate`].
    Certificate(String),
    /// It has none.
    NoCertificate,
    /// The authority is not there, or hidden from the caller.
    Hidden,
}

impl Stored {
    /// Reads the version in use.
    pub(crate) async fn read(
        client: &Client,
        authorities: &Authorities,
        name: &str,
    ) -> Result<Self, NotRead> {
        let version = client.current_version(name).await?;
        let mut value = Node::from_json(version.value.expose()).map_err(NotRead::Malformed)?;
        let mut not_named = None;
        if version.credential_type == CERTIFICATE
            && let Some(ca_name) = signed_by(client, &version).await?
        {
            let own_copy = version.value.member("ca").and_then(|ca| ca.text());
            let own_copy = own_copy.map(|ca| InUse::Certificate(first_certificate(ca.expose())));
            let in_use = authorities.in_use(client, &ca_name).await?;
            if own_copy.is_none_or(|own_copy| own_copy == in_use) {
                value = with_ca_name(value, ca_name);
            } else if in_use == InUse::Hidden {
                not_named = Some(Signer::Hidden(ca_name));
            } else {
                not_named = Some(Signer::Before(ca_name));
            }
        }
        let metadata = version.metadata.as_ref();
        let metadata = metadata
            .map(|json| Node::from_json(json.expose()))
            .transpose();
        Ok(Self {
            written: Written {
                name: version.name,
                credential_type: version.credential_type,
                value,
                metadata: metadata.map_err(NotRead::Malformed)?,
            },
            not_named,
        })
    }
}

impl Authorities {
    async fn in_use(&self, client: &Client, name: &str) -> Result<InUse, Error> {
        if let Some(known) = self.known().get(name) {
            return Ok(known.clone());
        }
        let in_use = match client.current_version(name).await {
            Ok(version) => {
                let certificate = version.value.member("certificate");
                let certificate = certificate.and_then(|certificate| certificate.text());
                certificate.map_or(InUse::NoCertificate, |certificate| {
                    InUse::Certificate(first_certificate(certificate.expose()))
                })
            }
            Err(refused) if refused.is_told_not_found() => InUse::Hidden,
            Err(refused) => return Err(refused),
        };
        let mut known = self.known();
        if known.len() >= AUTHORITIES_MAX {
            known.clear();
        }
        known.insert(name.to_owned(), in_use.clone());
        Ok(in_use)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<String, InUse>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The names of all credentials below a path that the caller may read, in order.
///
/// # Errors
/// As any request.
pub(crate) async fn names_below(client: &Client, path: &str) -> Result<Vec<String>, Error> {
    let found = client.find_credentials(&Find::below(path)).await?;
    let mut names: Vec<_> = found.into_iter().map(|found| found.name).collect();
    names.sort_unstable();
    Ok(names)
}

/// The stored authority that signed a certificate, as the server remembers it, unless it signed itself.
async fn signed_by(client: &Client, version: &CredentialVersion) -> Result<Option<String>, Error> {
    let signer = match client.certificate(&version.name).await {
        Ok(summary) => summary.signed_by,
        Err(Error::AnswerEmpty) => String::new(),
        Err(refused) => return Err(refused),
    };
    let is_other = !signer.is_empty() && !signer.eq_ignore_ascii_case(&version.name);
    Ok(is_other.then_some(signer))
}

/// The value with the name of its authority in the place of that one's certificate.
fn with_ca_name(value: Node, ca_name: String) -> Node {
    let Node::Mapping(members) = value else {
        return value;
    };
    let others = members.into_iter().filter(|(member, _)| member != "ca");
    let first = ("ca_name".to_owned(), Node::quoted(ca_name));
    Node::Mapping(std::iter::once(first).chain(others).collect())
}

const CERTIFICATE: &str = "certificate";

/// How many authorities are remembered: they have a few KiB each.
const AUTHORITIES_MAX: usize = 1_024;
