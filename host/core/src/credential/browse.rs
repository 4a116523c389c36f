//! Browsing the tree of names, page by page: the folders and the credentials directly below a path, or the credentials at any
//! depth that a filter accepts.
//!
//! A page takes few short queries, however many names there are: the names of a folder are skipped once its first name is
//! known. Only the ranges of names that the caller's permissions cover are read.

use chrono::{DateTime, Utc};

use crate::{
    UseCaseError,
    authorization::{Caller, EffectivePermissions},
    credential::{
        CredentialName, CredentialType, Find, FindNames, FoundCredential, LookupName,
        NAME_CHARACTERS_MAX, PathPrefix, ReadCredentials, StoredVersion,
    },
    permission::Operation,
    ports::{RepositoryError, VersionKey, VersionSelection},
};

/// A credential in a list, without its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedCredential {
    /// Its name, with the casing of its first version.
    pub name: CredentialName,
    /// Its type.
    pub credential_type: CredentialType,
    /// The creation time of its active version.
    pub version_created_at: DateTime<Utc>,
    /// The time at which its latest version is due
    /// ([`VersionAttributes::due_at`](super::VersionAttributes::due_at)).
    pub due_at: Option<DateTime<Utc>>,
}

/// An entry directly below a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BrowsedEntry {
    /// A path with at least one credential below it that the caller may read. It has a slash at both ends, and the
    /// case of the first name.
    Folder(String),
    /// A credential.
    Credential(ListedCredential),
}

/// The entries directly below a path, in the order of their names in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BrowsedPage {
    /// At most [`BROWSED_ENTRIES_MAX`] entries.
    pub entries: Vec<BrowsedEntry>,
    /// The position at which the next page starts; `None` for the last page.
    pub next: Option<String>,
}

/// The first results of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FirstFound {
    /// The newest credentials, at most [`BROWSED_ENTRIES_MAX`].
    pub credentials: Vec<ListedCredential>,
    /// Whether there are more.
    pub has_more: bool,
}

/// The stored versions of a credential, without their encrypted parts.
#[derive(Clone, Debug)]
pub struct History {
    /// The credential's name, with the casing of its first version.
    pub name: CredentialName,
    /// Its type.
    pub credential_type: CredentialType,
    /// The latest versions, at most [`HISTORY_VERSIONS_MAX`], newest first.
    pub versions: Vec<StoredVersion>,
    /// Whether there are older versions.
    pub has_more: bool,
}

impl ReadCredentials {
    /// Returns a page of the folders and credentials directly below a path that the caller may read. `from` is the position of
    /// the page, from the previous page, or empty for the first page.
    pub async fn browse(
        &self,
        caller: &Caller,
        below: &PathPrefix,
        from: &str,
    ) -> Result<BrowsedPage, UseCaseError> {
        let mut page = BrowsedPage::default();
        if !can_be_in_names(below, from) {
            return Ok(page);
        }
        let permissions = self.authorization.permissions_of(caller).await?;
        let ranges = permissions.ranges(Operation::Read, below.as_str());
        let rest = ranges
            .into_iter()
            .filter(|(_, before)| from < before.as_str());
        for (index, (start, before)) in rest.enumerate() {
            if index == RANGES_MAX && page.entries.len() <= BROWSED_ENTRIES_MAX {
                page.next = Some(start);
                return Ok(page);
            }
            let start = start.max(from.to_owned());
            self.browse_range(caller, &permissions, below, (start, &before), &mut page)
                .await?;
        }
        if page.entries.len() > BROWSED_ENTRIES_MAX {
            page.next = page.entries.pop().map(|entry| entry.position());
        }
        Ok(page)
    }

    /// Adds the entries of a range of names in lower case, until the page has one entry more than fits.
    async fn browse_range(
        &self,
        caller: &Caller,
        permissions: &EffectivePermissions,
        below: &PathPrefix,
        (mut start, before): (String, &str),
        page: &mut BrowsedPage,
    ) -> Result<(), UseCaseError> {
        let mut count_max = NAMES_READ_FIRST;
        while start.as_str() < before && page.entries.len() <= BROWSED_ENTRIES_MAX {
            let listed = self
                .store
                .repository
                .list(caller.actor(), &start, before, count_max)
                .await?;
            let is_last = listed.len() < count_max as usize;
            let last = listed.last().map(|last| after_name(&last.name.folded()));
            for credential in listed {
                let folded = credential.name.folded();
                if folded < start {
                    continue;
                }
                start = after_name(&folded);
                if !permissions.allow(Operation::Read, credential.name.as_str()) {
                    continue;
                }
                if page.entries.len() > BROWSED_ENTRIES_MAX {
                    return Ok(());
                }
                let entry = entry_below(below, credential);
                if let BrowsedEntry::Folder(path) = &entry {
                    start = after_folder(path);
                }
                // Several ranges can contain names of one folder.
                if page.entries.last().map(BrowsedEntry::position) != Some(entry.position()) {
                    page.entries.push(entry);
                }
            }
            if is_last {
                return Ok(());
            }
            // After a folder, another folder is likely, of which only the first name matters.
            count_max = if last.as_ref() == Some(&start) {
                (2 * count_max).min(NAMES_READ_MAX)
            } else {
                NAMES_READ_FIRST
            };
        }
        Ok(())
    }

    /// Returns the newest credentials whose names contain a text and that the caller may read.
    pub async fn first_found(
        &self,
        caller: &Caller,
        text: &str,
    ) -> Result<FirstFound, UseCaseError> {
        let permissions = self.authorization.permissions_of(caller).await?;
        let mut found = FirstFound::default();
        if !permissions.allow_reading() {
            return Ok(found);
        }
        let find = Find {
            names: FindNames::containing(text),
            expires_until: None,
        };
        let mut names = Vec::new();
        let mut receive = |credential: FoundCredential| {
            if permissions.allow(Operation::Read, credential.name.as_str()) {
                names.push(credential.name);
            }
            if names.len() > BROWSED_ENTRIES_MAX {
                return std::ops::ControlFlow::Break(());
            }
            std::ops::ControlFlow::Continue(())
        };
        let repository = &self.store.repository;
        repository.find(caller.actor(), &find, &mut receive).await?;
        found.has_more = names.len() > BROWSED_ENTRIES_MAX;
        names.truncate(BROWSED_ENTRIES_MAX);
        for name in names {
            found.credentials.extend(self.listed(caller, &name).await?);
        }
        Ok(found)
    }

    /// Returns these credentials, `None` for each that does not exist, has no active version, or that the caller may not read.
    pub async fn all_listed(
        &self,
        caller: &Caller,
        names: &[CredentialName],
    ) -> Result<Vec<Option<ListedCredential>>, UseCaseError> {
        let lookups: Vec<_> = names.iter().map(CredentialName::lookup).collect();
        let permissions = self
            .authorization
            .permissions_covering_all(caller, &lookups)
            .await?;
        let mut all = Vec::with_capacity(names.len());
        for name in names {
            all.push(if permissions.allow(Operation::Read, name.as_str()) {
                self.listed(caller, name).await?
            } else {
                None
            });
        }
        Ok(all)
    }

    async fn listed(
        &self,
        caller: &Caller,
        name: &CredentialName,
    ) -> Result<Option<ListedCredential>, RepositoryError> {
        let folded = name.folded();
        let repository = &self.store.repository;
        let listed = repository
            .list(caller.actor(), &folded, &after_name(&folded), 1)
            .await?;
        // It may have been recreated in another casing, which the caller may not read.
        let mut listed = listed.into_iter();
        Ok(listed.next().filter(|listed| listed.name == *name))
    }

    /// Returns the latest versions of a credential. Nothing is decrypted.
    ///
    /// # Errors
    /// [`UseCaseError::NotFound`] if it does not exist or the caller may not read it.
    pub async fn history(
        &self,
        caller: &Caller,
        name: &LookupName,
    ) -> Result<History, UseCaseError> {
        let selection = VersionSelection::Newest(HISTORY_VERSIONS_MAX + 1);
        let (permit, mut versions) = self
            .authorization
            .permit_read(
                caller,
                self.store.repository.as_ref(),
                name,
                VersionKey::Selected(selection),
            )
            .await?;
        let newest = versions
            .first()
            .filter(|newest| permit.covers(&newest.name));
        let newest = newest.ok_or(UseCaseError::NotFound)?;
        permit.record_resource(newest.credential_id);
        let (name, credential_type) = (newest.name.clone(), newest.credential_type.clone());
        let has_more = versions.len() > HISTORY_VERSIONS_MAX as usize;
        versions.truncate(HISTORY_VERSIONS_MAX as usize);
        Ok(History {
            name,
            credential_type,
            versions,
            has_more,
        })
    }
}

impl BrowsedEntry {
    /// Returns the first name in lower case that can belong to the entry.
    fn position(&self) -> String {
        match self {
            Self::Folder(path) => path.to_ascii_lowercase(),
            Self::Credential(credential) => credential.name.folded(),
        }
    }
}

/// Returns the entry of a path to which a credential below the path belongs.
fn entry_below(below: &PathPrefix, credential: ListedCredential) -> BrowsedEntry {
    let name = credential.name.as_str();
    let rest = name.get(below.as_str().len()..).unwrap_or_default();
    match rest.find('/') {
        Some(slash) => {
            let end = below.as_str().len() + slash + 1;
            BrowsedEntry::Folder(name.get(..end).unwrap_or(name).to_owned())
        }
        None => BrowsedEntry::Credential(credential),
    }
}

/// Returns whether names can start with this path, and with the position of a page. Any other text matches no name, and
/// databases refuse some of them.
pub(crate) fn can_be_in_names(below: &PathPrefix, from: &str) -> bool {
    let can_be_in_name = |text: &str| {
        text.len() <= NAME_CHARACTERS_MAX + 1 && text.bytes().all(|byte| byte.is_ascii_graphic())
    };
    can_be_in_name(below.as_str()) && can_be_in_name(from)
}

/// Returns a text that is greater than a name in lower case, and not greater than any longer name that starts with it.
pub(crate) fn after_name(folded: &str) -> String {
    format!("{folded}{BEFORE_NAME_CHARACTERS}")
}

/// Returns the smallest text that is greater than all names below a path that ends with a slash.
fn after_folder(path: &str) -> String {
    let path = path.trim_end_matches('/').to_ascii_lowercase();
    format!("{path}{AFTER_SLASH}")
}

/// The maximum number of entries of a page, and of results of a search.
pub const BROWSED_ENTRIES_MAX: usize = 100;

/// The maximum number of versions in a [`History`].
pub const HISTORY_VERSIONS_MAX: u32 = 15;

/// The number of names that the first query of a page and the first query after a folder read.
const NAMES_READ_FIRST: u32 = 16;
/// The maximum number of names that a query reads.
const NAMES_READ_MAX: u32 = 128;

/// The maximum number of ranges that one page reads. A caller can have permissions on many single names.
const RANGES_MAX: usize = 256;

/// A character that is smaller than all characters of names.
const BEFORE_NAME_CHARACTERS: char = '!';

/// The character after the slash.
pub(crate) const AFTER_SLASH: char = '0';

/// Conditions on credentials. A credential must meet all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// A part of the name, in any casing. Empty for every name.
    pub name_like: String,
    /// The name of the type. Empty for every type.
    pub credential_type: String,
    /// The time before which the active version was created.
    pub created_before: Option<DateTime<Utc>>,
    /// The latest time at which the latest version may be due. Excludes credentials that are never due.
    pub due_until: Option<DateTime<Utc>>,
}

impl Filter {
    /// Returns whether a credential meets all conditions, except the condition on its name.
    fn accepts(&self, credential: &ListedCredential) -> bool {
        let is_due = |until| credential.due_at.is_some_and(|due_at| due_at <= until);
        let is_older = |time| credential.version_created_at < time;
        (self.credential_type.is_empty()
            || credential.credential_type.as_str() == self.credential_type)
            && self.created_before.is_none_or(is_older)
            && self.due_until.is_none_or(is_due)
    }
}

impl ReadCredentials {
    /// Returns a page of the credentials at any depth below a path that a filter accepts and that the caller may read. `from` is
    /// the position of the page, from the previous page, or empty for the first page.
    ///
    /// No index covers all conditions, so a page reads the names in order and stops after a fixed number of queries. So a page
    /// can have few entries or none, although another page follows.
    pub async fn filter(
        &self,
        caller: &Caller,
        below: &PathPrefix,
        from: &str,
        filter: &Filter,
    ) -> Result<BrowsedPage, UseCaseError> {
        let mut page = BrowsedPage::default();
        if !can_be_in_names(below, from) {
            return Ok(page);
        }
        let part_of_name = filter.name_like.to_ascii_lowercase();
        let permissions = self.authorization.permissions_of(caller).await?;
        let mut queries = 0;
        for (start, before) in permissions.ranges(Operation::Read, below.as_str()) {
            let mut start = start.max(from.to_owned());
            // Whether `start` reveals no name that the caller may not read. If it would, the page needs more queries.
            let mut is_known = true;
            while start < before {
                if queries >= FILTER_QUERIES_MAX && is_known {
                    page.next = Some(start);
                    return Ok(page);
                }
                queries += 1;
                let repository = &self.store.repository;
                let listed = repository
                    .list(caller.actor(), &start, &before, NAMES_FILTERED_MAX)
                    .await?;
                let is_last = listed.len() < NAMES_FILTERED_MAX as usize;
                for credential in listed {
                    let folded = credential.name.folded();
                    start = after_name(&folded);
                    is_known = permissions.allow(Operation::Read, credential.name.as_str());
                    if !is_known || !folded.contains(&part_of_name) || !filter.accepts(&credential)
                    {
                        continue;
                    }
                    if page.entries.len() == BROWSED_ENTRIES_MAX {
                        page.next = Some(folded);
                        return Ok(page);
                    }
                    page.entries.push(BrowsedEntry::Credential(credential));
                }
                if is_last {
                    break;
                }
            }
        }
        Ok(page)
    }
}

/// The maximum number of queries of a page. A caller can have permissions on many single names, each of which takes a query.
const FILTER_QUERIES_MAX: usize = 256;

/// The maximum number of names that a query reads.
const NAMES_FILTERED_MAX: u32 = 512;
