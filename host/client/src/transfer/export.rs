//! Reads the credentials to export.

use futures_util::{Stream, StreamExt, stream};

use super::{
    ending::{Losses, RequestStart},
    stored::{Authorities, ReadError, Stored},
};
use crate::Client;

/// The result of reading a credential.
pub(crate) struct Read {
    /// The name.
    pub(crate) name: String,
    /// The credential; `None` if the server listed it but then responded with 404.
    pub(crate) stored: Result<Option<Stored>, ReadError>,
    /// The start of the request.
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
            let stored = match Stored::read(client, authorities, &name).await {
                Ok(stored) => Ok(Some(stored)),
                Err(ReadError::Refused(error)) if error.is_told_not_found() => Ok(None),
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
