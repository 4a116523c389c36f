//! Reads of the repository in memory together with permissions.

use std::sync::Arc;

use async_trait::async_trait;
use keywright_core::{
    credential::CredentialName,
    permission::Permission,
    ports::{
        CredentialRepository, PermissionRepository, PermittedRead, PermittedReads,
        PermittedVersions, RepositoryFailure, VersionKey, VersionSelection,
    },
};

use crate::{memory::Memory, permissions_in_memory::PermissionsInMemory};

pub(crate) struct ReadsInMemory {
    pub(crate) credentials: Arc<Memory>,
    pub(crate) permissions: Arc<PermissionsInMemory>,
}

#[async_trait]
impl PermittedReads for ReadsInMemory {
    async fn read(
        &self,
        read: PermittedRead<'_>,
        permits: &mut (dyn FnMut(Vec<Permission>) -> bool + Send),
    ) -> Result<PermittedVersions, RepositoryFailure> {
        let Self {
            credentials,
            permissions,
        } = self;
        if !permits(permissions.of_actor_on(read.actor, read.paths).await?) {
            return Ok(PermittedVersions::default());
        }
        let stored_name = credentials.stored_name(read.name).await?;
        let stored = stored_name.as_ref().map(CredentialName::as_str);
        if stored != Some(read.name.asked()) {
            return Ok(PermittedVersions {
                versions: Vec::new(),
                stored_name,
            });
        }
        let selection = match read.versions {
            VersionKey::Current => VersionSelection::Current,
            VersionKey::Id(id) => {
                let version = credentials.version_by_id(id).await?;
                return Ok(PermittedVersions {
                    versions: version.into_iter().collect(),
                    stored_name: None,
                });
            }
            VersionKey::Newest(count) => VersionSelection::Newest(count),
        };
        Ok(PermittedVersions {
            versions: credentials.versions_by_name(read.name, selection).await?,
            stored_name: None,
        })
    }
}
