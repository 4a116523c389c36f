//! Sets the credentials of a file.

use std::{collections::HashSet, ops::ControlFlow, path::PathBuf};

use tokio::{
    sync::mpsc,
    task::{JoinSet, spawn_blocking},
};

use super::{
    abort_policy::{Losses, RequestStart},
    entry::{Entry, EntryError, Format, Position},
    order::{Decision, NameHash, Order},
    read::{FileError, Source},
    report::Report,
    stored::{Authorities, StoredCredential},
};
use crate::{Client, Error, command_error::CommandError};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Whether to check the entries without setting them.
    pub(crate) is_dry_run: bool,
    /// Whether to skip unchanged credentials.
    pub(crate) skips_unchanged: bool,
    /// The maximum number of concurrent requests.
    pub(crate) parallel: usize,
}

/// Reads the whole file, or standard input for `-`. Call it before any credential is set, so that a malformed file changes
/// nothing.
pub(crate) async fn scan(file: PathBuf, format: Option<Format>) -> Result<Listing, CommandError> {
    let name = match file.to_str() {
        Some("-") => "standard input".to_owned(),
        _ => file.to_string_lossy().into_owned(),
    };
    let reading = spawn_blocking(move || {
        let mut source = Source::open(&file, format)?;
        let mut order = Order::default();
        let mut total = 0;
        source.read(&mut |read| {
            total += 1;
            if let Ok(entry) = &read {
                order.register(entry);
            }
            ControlFlow::Continue(())
        })?;
        Ok::<_, FileError>((source, order, total))
    });
    let (source, order, total) = reading.await?.map_err(|cause| unreadable(&name, &cause))?;
    Ok(Listing {
        name,
        source,
        order,
        total,
    })
}

/// A well-formed file.
pub(crate) struct Listing {
    /// The name of the file, for messages.
    name: String,
    source: Source,
    order: Order,
    /// The number of entries.
    pub(crate) total: usize,
}

/// Sets all credentials of a file. Continues after failed entries.
pub(crate) async fn import(
    client: Client,
    listing: Listing,
    plan: Plan,
    report: &mut Report,
) -> Result<(), CommandError> {
    let mut source = listing.source;
    let mut importer = Importer {
        client,
        plan,
        order: listing.order,
        attempts: JoinSet::new(),
        names_in_progress: HashSet::new(),
        losses: Losses::default(),
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
        read.map_err(|cause| unreadable(&listing.name, &cause))?;
        if !importer.order.end_pass() {
            return Ok(());
        }
    }
}

struct Importer<'a> {
    client: Client,
    plan: Plan,
    order: Order,
    attempts: JoinSet<Attempt>,
    names_in_progress: HashSet<NameHash>,
    losses: Losses,
    report: &'a mut Report,
}

/// The result of an entry.
struct Attempt {
    name_hash: NameHash,
    name: String,
    position: Position,
    started: RequestStart,
    result: Result<Success, CommandError>,
}

struct Success {
    /// Whether the credential was skipped because it is unchanged.
    is_unchanged: bool,
    /// The reason why the server refused the provenance; the entry was then imported without it.
    provenance_refused: Option<String>,
}

impl Importer<'_> {
    /// Processes the entries of one pass. Waits for all started requests, even after an error.
    async fn take_all(
        &mut self,
        entries: &mut mpsc::Receiver<Result<Entry, EntryError>>,
    ) -> Result<(), CommandError> {
        let mut taken = Ok(());
        while let Some(entry) = entries.recv().await {
            taken = self.take(entry).await;
            if taken.is_err() {
                break;
            }
        }
        while self.settle_one().await.unwrap_or_else(|ended| {
            // Report the first error.
            if taken.is_ok() {
                taken = Err(ended);
            }
            true
        }) {}
        taken
    }

    async fn take(&mut self, read: Result<Entry, EntryError>) -> Result<(), CommandError> {
        let entry = match read {
            Ok(entry) => entry,
            Err(refused) => {
                let position = refused.position;
                if !self.order.mark_done(position.entry) {
                    self.report.failed(position, refused.name, refused.reason);
                }
                return Ok(());
            }
        };
        let Decision::Now { is_repeated } = self.order.decide(&entry) else {
            return Ok(());
        };
        if is_repeated {
            while self.settle_one().await? {}
        }
        let authority = entry.ca_name.as_ref().map(|name| self.order.hash(name));
        while self.attempts.len() >= self.plan.parallel
            || authority.is_some_and(|authority| self.names_in_progress.contains(&authority))
        {
            self.settle_one().await?;
        }
        self.begin(entry);
        Ok(())
    }

    fn begin(&mut self, entry: Entry) {
        let name_hash = self.order.hash(&entry.credential.name);
        self.names_in_progress.insert(name_hash);
        let started = self.losses.begin();
        let task = Task {
            client: self.client.clone(),
            plan: self.plan,
            authority_is_listed: entry
                .ca_name
                .as_ref()
                .is_some_and(|name| self.order.contains_certificate(name)),
            entry,
        };
        self.attempts.spawn(async move {
            let result = task.run().await;
            Attempt {
                name_hash,
                name: task.entry.credential.name,
                position: task.entry.position,
                started,
                result,
            }
        });
    }

    /// Waits for one request to complete. Returns `false` if no request is in progress.
    async fn settle_one(&mut self) -> Result<bool, CommandError> {
        let Some(attempt) = self.attempts.join_next().await else {
            return Ok(false);
        };
        let attempt = attempt?;
        self.names_in_progress.remove(&attempt.name_hash);
        if !matches!(attempt.result, Err(CommandError::Client(_))) {
            self.losses.responded();
        }
        let (name, position) = (attempt.name, attempt.position);
        match attempt.result {
            Ok(success) => {
                if let Some(reason) = success.provenance_refused {
                    self.report.provenance_refused(position, &name, &reason);
                }
                if success.is_unchanged {
                    self.report.unchanged();
                } else {
                    self.report.set();
                }
            }
            Err(error) => {
                let reason = error.to_string();
                self.report.failed(position, Some(name), reason);
                if let CommandError::Client(cause) = &error
                    && self.losses.aborts_run(attempt.started, cause)
                {
                    return Err(error);
                }
            }
        }
        Ok(true)
    }
}

/// The request for an entry.
struct Task {
    client: Client,
    plan: Plan,
    authority_is_listed: bool,
    entry: Entry,
}

impl Task {
    async fn run(&self) -> Result<Success, CommandError> {
        let success = |is_unchanged, provenance_refused| Success {
            is_unchanged,
            provenance_refused,
        };
        if self.plan.is_dry_run {
            let is_unchanged = self.is_unchanged(&self.entry).await?;
            if !is_unchanged {
                self.check().await?;
            }
            return Ok(success(is_unchanged, None));
        }
        let refused = match self.set(&self.entry).await {
            Ok(is_unchanged) => return Ok(success(is_unchanged, None)),
            Err(CommandError::Client(error)) if self.may_be_of_provenance(&error) => error,
            Err(error) => return Err(error),
        };
        let mut without_provenance = self.entry.clone();
        without_provenance.credential.provenance = None;
        let is_unchanged = self.set(&without_provenance).await?;
        Ok(success(is_unchanged, Some(refused.to_string())))
    }

    /// Sets an entry unless it is to be skipped. Returns whether it was skipped as unchanged.
    async fn set(&self, entry: &Entry) -> Result<bool, CommandError> {
        if self.is_unchanged(entry).await? {
            return Ok(true);
        }
        self.client.set_credential(&entry.credential).await?;
        Ok(false)
    }

    /// Returns whether the server may have refused the entry because of its provenance: an older server refuses it as an unknown
    /// field, others if it names a missing CA or parameters that the configured plugin does not accept.
    fn may_be_of_provenance(&self, error: &Error) -> bool {
        let is_of_request = matches!(error.status(), Some(400 | 404 | 413 | 422 | 500));
        self.entry.credential.provenance.is_some() && is_of_request
    }

    /// Returns whether unchanged entries are skipped, and an export of the stored credential would contain the same entry.
    async fn is_unchanged(&self, entry: &Entry) -> Result<bool, CommandError> {
        if !self.plan.skips_unchanged {
            return Ok(false);
        }
        let name = &entry.credential.name;
        // No cache of CAs: the import may have changed them.
        let stored = StoredCredential::read(&self.client, &Authorities::default(), name).await;
        let written = match stored {
            Ok(stored) => stored.entry,
            Err(Error::ResponseMalformed(_)) => return Ok(false),
            Err(error) if error.is_api_not_found() => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let stored = Entry::of(entry.position, written);
        Ok(stored.is_ok_and(|stored| entry.is_stored_as(&stored)))
    }

    /// Checks the entry against the credentials on the server.
    async fn check(&self) -> Result<(), CommandError> {
        let credential = &self.entry.credential;
        if let Some(credential_type) = self.type_of(&credential.name).await?
            && credential_type != credential.credential_type
        {
            return Err(CommandError::Other(format!(
                "a credential of type {credential_type} with this name exists"
            )));
        }
        let Some(ca_name) = &self.entry.ca_name else {
            return Ok(());
        };
        // Without its CA, a credential of another type loses only its provenance.
        if self.authority_is_listed || !self.entry.is_certificate() {
            return Ok(());
        }
        match self.type_of(ca_name).await?.as_deref() {
            Some("certificate") => Ok(()),
            Some(_) => Err(CommandError::Other(format!(
                "{ca_name} is not a certificate"
            ))),
            None => Err(CommandError::Other(format!(
                "the CA {ca_name} is neither in the file nor on the server"
            ))),
        }
    }

    async fn type_of(&self, name: &str) -> Result<Option<String>, CommandError> {
        match self.client.current_version(name).await {
            Ok(version) => Ok(Some(version.credential_type)),
            Err(error) if error.is_api_not_found() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn unreadable(name: &str, cause: &FileError) -> CommandError {
    CommandError::Other(format!("{name}: {cause}"))
}

/// The number of entries to read ahead, of at most [`super::read::ENTRY_BYTES_MAX`] bytes each.
const READ_AHEAD_ENTRIES: usize = 16;
