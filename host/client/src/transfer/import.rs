//! Setting what a file lists.

use std::{collections::HashSet, ops::ControlFlow, path::PathBuf, sync::Arc};

use tokio::{
    sync::mpsc,
    task::{JoinError, JoinSet, spawn_blocking},
};

use super::{
    ending::{Begun, Endings},
    entry::{Entry, EntryRefused, Place},
    format::Format,
    order::{NameHash, Order, Turn},
    read::{FileRefused, Source},
    report::Report,
    stored::{Authorities, NotRead, Stored},
};
use crate::{Client, Error};

/// How an import goes about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Write nothing, and check what can be checked.
    pub(crate) is_dry_run: bool,
    /// Leave alone what the server has already.
    pub(crate) skips_unchanged: bool,
    /// How many requests are on their way at once.
    pub(crate) parallel: usize,
}

/// Why an import did not come to the end of its file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImportEnded {
    /// The file can't be read to its end.
    #[error(transparent)]
    File(#[from] FileRefused),
    /// The server can't be asked any more, so that no other entry would fare better.
    #[error(transparent)]
    Client(Error),
    /// A part of this program failed.
    #[error("a part of the import failed: {0}")]
    Broken(#[from] JoinError),
}

/// Reads the file to its end before anything is set, so that of one that is malformed nothing is; `-` is standard input.
///
/// # Errors
/// Why it can't be read.
pub(crate) async fn look_through(
    file: PathBuf,
    format: Option<Format>,
) -> Result<Listing, ImportEnded> {
    let listing = spawn_blocking(move || {
        let mut source = Source::open(&file, format)?;
        let mut order = Order::default();
        let mut total = 0;
        source.read(&mut |read| {
            total += 1;
            if let Ok(entry) = &read {
                order.list(entry);
            }
            ControlFlow::Continue(())
        })?;
        Ok(Listing {
            source,
            order,
            total,
        })
    });
    listing.await?
}

/// A file that can be imported.
pub(crate) struct Listing {
    source: Source,
    order: Order,
    /// How many entries it has.
    pub(crate) total: usize,
}

/// Sets everything that a file lists, and goes on after what fails.
///
/// # Errors
/// Why it could not go on.
pub(crate) async fn import(
    client: Client,
    listing: Listing,
    plan: Plan,
    report: &mut Report,
) -> Result<(), ImportEnded> {
    let mut source = listing.source;
    let mut importer = Importer {
        client,
        authorities: Arc::default(),
        plan,
        order: listing.order,
        attempts: JoinSet::new(),
        names_on_their_way: HashSet::new(),
        endings: Endings::default(),
        report,
    };
    loop {
        let (sender, mut entries) = mpsc::channel(READ_AHEAD_ENTRIES);
        let reading = spawn_blocking(move || {
            let read = source.read(&mut |entry| match sender.blocking_send(entry) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            });
            (source, read)
        });
        let taken = importer.take_all(&mut entries).await;
        drop(entries);
        let (unused, read) = reading.await?;
        source = unused;
        taken?;
        read?;
        if !importer.order.end_pass() {
            return Ok(());
        }
    }
}

struct Importer<'a> {
    client: Client,
    authorities: Arc<Authorities>,
    plan: Plan,
    order: Order,
    attempts: JoinSet<Attempt>,
    names_on_their_way: HashSet<NameHash>,
    endings: Endings,
    report: &'a mut Report,
}

/// What became of an entry.
struct Attempt {
    name_hash: NameHash,
    name: String,
    place: Place,
    begun: Begun,
    result: Result<Tried, NotSet>,
}

/// What was done about an entry.
enum Tried {
    Set,
    Unchanged,
}

/// Why an entry was not set.
#[derive(Debug, thiserror::Error)]
enum NotSet {
    #[error(transparent)]
    Refused(#[from] Error),
    #[error("{0}")]
    Other(String),
}

impl Importer<'_> {
    /// Takes the entries of one pass, and waits until all that were begun are done, whatever happens.
    async fn take_all(
        &mut self,
        entries: &mut mpsc::Receiver<Result<Entry, EntryRefused>>,
    ) -> Result<(), ImportEnded> {
        let mut taken = Ok(());
        while let Some(entry) = entries.recv().await {
            taken = self.take(entry).await;
            if taken.is_err() {
                break;
            }
        }
        while self.settle_one().await.unwrap_or_else(|ended| {
            // The first cause is told.
            if taken.is_ok() {
                taken = Err(ended);
            }
            true
        }) {}
        taken
    }

    async fn take(&mut self, read: Result<Entry, EntryRefused>) -> Result<(), ImportEnded> {
        let entry = match read {
            Ok(entry) => entry,
            Err(refused) => {
                let EntryRefused {
                    place,
                    name,
                    reason,
                } = refused;
                if !self.order.mark_done(place.position) {
                    self.report.failed(place, name, reason);
                }
                return Ok(());
            }
        };
        let Turn::Now { is_repeated } = self.order.turn(&entry) else {
            return Ok(());
        };
        if is_repeated {
            while self.settle_one().await? {}
        }
        let authority = entry.ca_name.as_ref().map(|name| self.order.hash(name));
        while self.attempts.len() >= self.plan.parallel
            || authority.is_some_and(|authority| self.names_on_their_way.contains(&authority))
        {
            self.settle_one().await?;
        }
        self.begin(entry);
        Ok(())
    }

    fn begin(&mut self, entry: Entry) {
        let name_hash = self.order.hash(&entry.name);
        self.names_on_their_way.insert(name_hash);
        let begun = self.endings.begin();
        let task = Task {
            client: self.client.clone(),
            authorities: Arc::clone(&self.authorities),
            plan: self.plan,
            authority_is_listed: entry
                .ca_name
                .as_ref()
                .is_some_and(|name| self.order.lists(name)),
            entry,
        };
        self.attempts.spawn(async move {
            let result = task.run().await;
            Attempt {
                name_hash,
                name: task.entry.name,
                place: task.entry.place,
                begun,
                result,
            }
        });
    }

    /// Waits for one of those on their way. False when there is none.
    async fn settle_one(&mut self) -> Result<bool, ImportEnded> {
        let Some(attempt) = self.attempts.join_next().await else {
            return Ok(false);
        };
        let Attempt {
            name_hash,
            name,
            place,
            begun,
            result,
        } = attempt?;
        self.names_on_their_way.remove(&name_hash);
        if !matches!(result, Err(NotSet::Refused(_))) {
            self.endings.answered();
        }
        match result {
            Ok(Tried::Set) => self.report.set(),
            Ok(Tried::Unchanged) => self.report.unchanged(),
            Err(not_set) => {
                self.report.failed(place, Some(name), not_set.to_string());
                if let NotSet::Refused(error) = not_set
                    && self.endings.ends_all(begun, &error)
                {
                    return Err(ImportEnded::Client(error));
                }
            }
        }
        Ok(true)
    }
}

/// An entry on its way.
struct Task {
    client: Client,
    authorities: Arc<Authorities>,
    plan: Plan,
    authority_is_listed: bool,
    entry: Entry,
}

impl Task {
    async fn run(&self) -> Result<Tried, NotSet> {
        if self.plan.skips_unchanged && self.is_unchanged().await? {
            return Ok(Tried::Unchanged);
        }
        if self.plan.is_dry_run {
            self.check().await?;
        } else {
            self.client
                .set_credential(&self.entry.to_request()?)
                .await?;
        }
        Ok(Tried::Set)
    }

    /// Whether the server has what the file lists: an export would write the same.
    async fn is_unchanged(&self) -> Result<bool, NotSet> {
        let stored = Stored::read(&self.client, &self.authorities, &self.entry.name).await;
        let written = match stored {
            Ok(stored) => stored.written,
            Err(NotRead::Refused(error)) if error.is_told_not_found() => return Ok(false),
            Err(NotRead::Refused(error)) => return Err(error.into()),
            Err(NotRead::Malformed(_)) => return Ok(false),
        };
        let stored = Entry::of(self.entry.place, written.into_node());
        Ok(stored.is_ok_and(|stored| stored.is_same_as(&self.entry)))
    }

    /// Checks what only the server knows.
    async fn check(&self) -> Result<(), NotSet> {
        if let Some(credential_type) = self.type_of(&self.entry.name).await?
            && credential_type != self.entry.credential_type
        {
            return Err(NotSet::Other(format!(
                "there is a credential of type {credential_type} by this name"
            )));
        }
        let Some(ca_name) = &self.entry.ca_name else {
            return Ok(());
        };
        if self.authority_is_listed {
            return Ok(());
        }
        match self.type_of(ca_name).await?.as_deref() {
            Some("certificate") => Ok(()),
            Some(_) => Err(NotSet::Other(format!("{ca_name} is not a certificate"))),
            None => Err(NotSet::Other(format!(
                "its authority {ca_name} is neither in the file nor on the server"
            ))),
        }
    }

    async fn type_of(&self, name: &str) -> Result<Option<String>, NotSet> {
        match self.client.current_version(name).await {
            Ok(version) => Ok(Some(version.credential_type)),
            Err(error) if error.is_told_not_found() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// How many entries are read ahead of those on their way: each has at most as many bytes as
/// [`super::read::ENTRY_BYTES_MAX`].
const READ_AHEAD_ENTRIES: usize = 16;
