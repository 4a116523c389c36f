//! Reading what is to be exported.

use futures_util::{StreamExt, stream};

use super::stored::{Authorities, NotRead, Stored};
use crate::Client;

/// One of the credentials to be exported.
pub(crate) struct Read {
    /// Its name.
    pub(crate) name: String,
    /// What the server has of it; none when it was deleted since the names were asked for.
    pub(crate) stored: Result<Option<Stored>, NotRead>,
}

/// Reads credentials, `parallel` at a time, and hands them out in their order. No more of them are in memory than that.
///
/// # Errors
/// What handing them out returns, which ends the reading.
pub(crate) async fn read_all<E>(
    client: &Client,
    names: Vec<String>,
    parallel: usize,
    mut take: impl FnMut(Read) -> Result<(), E>,
) -> Result<(), E> {
    let authorities = Authorities::default();
    let read = |name: String| async {
        let stored = match Stored::read(client, &authorities, &name).await {
            Ok(stored) => Ok(Some(stored)),
            Err(NotRead::Refused(error)) if error.is_not_found() => Ok(None),
            Err(not_read) => Err(not_read),
        };
        Read { name, stored }
    };
    let mut credentials = stream::iter(names).map(read).buffered(parallel);
    while let Some(credential) = credentials.next().await {
        take(credential)?;
    }
    Ok(())
}
