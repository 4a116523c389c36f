//! Reads credentials from the server in the form of an export.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use futures_util::{Stream, StreamExt, stream};

use super::{
    abort_policy::{Losses, RequestStart},
    node::Node,
};
use crate::{Client, CredentialVersion, Error, Find, SecretJson, api::first_certificate};

pub(crate) struct StoredCredential {
    pub(crate) entry: Node,
    /// The reason why a certificate is written with `ca`, a copy of its CA's certificate, instead of `ca_name`.
    pub(crate) without_ca_name: Option<String>,
}

/// A cache of the CAs' certificates, so that each CA is read only once.
#[derive(Default)]
pub(crate) struct Authorities {
    known: Mutex<HashMap<String, InUse>>,
}

/// The active version of a CA.
#[derive(Clone, PartialEq, Eq)]
enum InUse {
    /// The certificate, as returned by [`first_certificate`].
    Certificate(String),
    /// The version has no certificate.
    NoCertificate,
    /// The CA does not exist or is hidden from the caller.
    Hidden,
}

impl StoredCredential {
    /// Reads the active version.
    pub(crate) async fn read(
        client: &Client,
        authorities: &Authorities,
        name: &str,
    ) -> Result<Self, Error> {
        let version = client.current_version_with_provenance(name).await?;
        let mut value = node(&version.value)?;
        let mut without_ca_name = None;
        if version.credential_type == CERTIFICATE
            && let Some(ca_name) = signed_by(client, &version).await?
        {
            let ca_copy = version.value.field("ca").and_then(|ca| ca.text());
            let ca_copy = ca_copy.map(|ca| InUse::Certificate(first_certificate(ca.expose())));
            let in_use = authorities.in_use(client, &ca_name).await?;
            if ca_copy.is_none_or(|ca_copy| ca_copy == in_use) {
                value = with_ca_name(value, ca_name);
            } else if in_use == InUse::Hidden {
                without_ca_name = Some(format!(
                    "it was signed by {ca_name}, which does not exist or is hidden from you"
                ));
            } else {
                without_ca_name = Some(format!(
                    "it was not signed by the active version of {ca_name}"
                ));
            }
        }
        let mut fields = vec![
            ("name".to_owned(), Node::quoted(version.name)),
            ("type".to_owned(), Node::quoted(version.credential_type)),
            ("value".to_owned(), value),
        ];
        if let Some(metadata) = version.metadata {
            fields.push(("metadata".to_owned(), node(&metadata)?));
        }
        if let (Some(generated_by), Some(parameters)) = (version.generated_by, version.parameters) {
            fields.push(("generated_by".to_owned(), Node::quoted(generated_by)));
            fields.push(("parameters".to_owned(), node(&parameters)?));
        }
        Ok(Self {
            entry: Node::Mapping(fields),
            without_ca_name,
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
                let certificate = version.value.field("certificate");
                let certificate = certificate.and_then(|certificate| certificate.text());
                certificate.map_or(InUse::NoCertificate, |certificate| {
                    InUse::Certificate(first_certificate(certificate.expose()))
                })
            }
            Err(refused) if refused.is_api_not_found() => InUse::Hidden,
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

fn node(json: &SecretJson) -> Result<Node, Error> {
    Node::from_json(json.expose()).map_err(Error::ResponseMalformed)
}

/// Returns the sorted names of all readable credentials below a path.
///
/// # Errors
/// Also if the server lists a name that is not below the path.
pub(crate) async fn names_below(client: &Client, path: &str) -> Result<Vec<String>, Error> {
    let find = Find {
        path: path.to_owned(),
        ..Find::default()
    };
    let found = client.find_credentials(&find).await?;
    let mut names: Vec<_> = found.into_iter().map(|found| found.name).collect();
    let is_outside = |name: &&String| !is_below(name, path);
    if let Some(outside) = names.iter().find(is_outside) {
        return Err(Error::ResponseOfOther(outside.clone()));
    }
    names.sort_unstable();
    Ok(names)
}

/// Returns whether a name is below a path, ignoring case. Slashes at the ends of a path are optional.
fn is_below(name: &str, path: &str) -> bool {
    let path = path.trim_matches('/');
    let name = name.trim_start_matches('/');
    let (start, below) = name.split_at_checked(path.len()).unwrap_or_default();
    start.eq_ignore_ascii_case(path) && (path.is_empty() || below.starts_with('/'))
}

/// Returns the name of the stored CA that signed a certificate, unless it is self-signed.
async fn signed_by(client: &Client, version: &CredentialVersion) -> Result<Option<String>, Error> {
    let signer = match client.certificate(&version.name).await {
        Ok(summary) => summary.signed_by,
        Err(Error::ResponseEmpty) => String::new(),
        Err(refused) => return Err(refused),
    };
    let is_other = !signer.is_empty() && !signer.eq_ignore_ascii_case(&version.name);
    Ok(is_other.then_some(signer))
}

/// Replaces the CA certificate in a value with the name of the CA.
fn with_ca_name(value: Node, ca_name: String) -> Node {
    let Node::Mapping(fields) = value else {
        return value;
    };
    let others = fields.into_iter().filter(|(field, _)| field != "ca");
    let first = ("ca_name".to_owned(), Node::quoted(ca_name));
    Node::Mapping(std::iter::once(first).chain(others).collect())
}

/// The result of reading a credential.
pub(crate) struct Read {
    pub(crate) name: String,
    /// The credential; `None` if the server listed it but then responded with 404.
    pub(crate) stored: Result<Option<StoredCredential>, Error>,
    pub(crate) started: RequestStart,
}

/// Reads credentials in order, `parallel` at a time. Keeps at most that many in memory.
pub(crate) fn read_all(
    client: &Client,
    authorities: &Authorities,
    losses: &Losses,
    names: Vec<String>,
    parallel: usize,
) -> impl Stream<Item = Read> {
    let read = move |name: String| {
        let started = losses.begin();
        async move {
            let stored = match StoredCredential::read(client, authorities, &name).await {
                Ok(stored) => Ok(Some(stored)),
                Err(error) if error.is_api_not_found() => Ok(None),
                Err(error) => Err(error),
            };
            Read {
                name,
                stored,
                started,
            }
        }
    };
    stream::iter(names).map(read).buffered(parallel)
}

const CERTIFICATE: &str = "certificate";

/// The maximum number of cached CAs, of a few KiB each.
const AUTHORITIES_MAX: usize = 1_024;
