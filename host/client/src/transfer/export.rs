//! Reading what is to be exported.

use futures_util::{Stream, StreamExt, stream};

use super::{
    ending::{Begun, Endings},
    stored::{Authorities, NotRead, Stored},
};
use crate::Client;

/// One of the credentials to be exported.
pub(crate) struct Read {
    /// Its name.
    pub(crate) name: String,
    /// What the server has of it; none when it says that it is not there, though it was listed.
    pub(crate) stored: Result<Option<Stored>, NotRead>,
    /// When it was asked for.
    pub(crate) begun: Begun,
}

/// Reads credentials, `parallel` at a time, in their order. No more of them are in memory than that.
pub(crate) fn read_all(
    client: &Client,
    authorities: &Authorities,
    endings: &Endings,
    names: Vec<String>,
    parallel: usize,
) -> impl Stream<Item = Read> {
    let read = move |name: String| {
        let begun = endings.begin();
        async move {
            let stored = match Stored::read(client, authorities, &name).await {
                Ok(stored) => Ok(Some(stored)),
                Err(NotRead::Refused(error)) if error.is_told_not_found() => Ok(None),
                Err(not_read) => Err(not_read),
            };
            Read {
                name,
                stored,
                begun,
            }
        }
    };
    stream::iter(names).map(read).buffered(parallel)
}
