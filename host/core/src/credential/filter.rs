//! Filtering the credentials below a path, page by page.
//!
//! No index covers all conditions, so a page reads the names in order and stops after a fixed number of queries. So a page can
//! have few entries or none, although another page follows.

use chrono::{DateTime, Utc};

use super::browse::{BROWSED_ENTRIES_MAX, BrowsedEntry, BrowsedPage, after_name, can_be_in_names};
use crate::{
    UseCaseError,
    authorization::Caller,
    credential::{ListedCredential, PathPrefix, ReadCredentials},
    permission::Operation,
};

/// Conditions on credentials. A credential must meet all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// A part of the name, in any casing. Empty for every name.
    pub name_like: String,
    /// The name of the type. Empty for every type.
    pub credential_type: String,
    /// The time before which the active version was created.
    pub created_before: Option<DateTime<Utc>>,
    /// The latest time at which the newest version may be due. Excludes credentials that are never due.
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
            while start < before {
                if queries == FILTER_QUERIES_MAX {
                    page.next = Some(start);
                    return Ok(page);
                }
                queries += 1;
                let repository = &self.store.repository;
                let listed = repository.list(&start, &before, NAMES_FILTERED_MAX).await?;
                let is_last = listed.len() < NAMES_FILTERED_MAX as usize;
                for credential in listed {
                    let folded = credential.name.folded();
                    start = after_name(&folded);
                    if !folded.contains(&part_of_name)
                        || !filter.accepts(&credential)
                        || !permissions.allow(Operation::Read, credential.name.as_str())
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
