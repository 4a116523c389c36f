//! The database.

use keywright_storage::{Database, DatabaseOptions};

use super::{
    Findings,
    access::{check_writable_file, warn_if_world_accessible},
};
use crate::{
    config::{Sections, StorageConfig},
    started::StartRefused,
    tls,
};

pub(super) async fn check(sections: &Sections, connects: bool, findings: &mut Findings) {
    let Some(storage) = &sections.storage else {
        return;
    };
    let Some(options) = findings.taken("storage", storage.options()) else {
        return;
    };
    if let DatabaseOptions::Sqlite(options) = &options {
        check_writable_file("storage.file", &options.path, findings);
    }
    check_files(storage, findings);
    let understood = options
        .check()
        .map_err(|cause| StartRefused::while_doing("reading the URL", cause));
    if findings.taken("storage.url", understood).is_some() && connects {
        let setting = match &options {
            DatabaseOptions::Postgres(_) => "storage.url",
            DatabaseOptions::Sqlite(_) => "storage.file",
        };
        let reached = Database::reach(&options).await;
        let reached = reached.map_err(|cause| StartRefused::while_doing("connecting to it", cause));
        findings.taken(setting, reached);
    }
}

fn check_files(storage: &StorageConfig, findings: &mut Findings) {
    if let Some(file) = &storage.root_certificate {
        let read = tls::certificates("the authorities", file);
        findings.taken("storage.root_certificate", read);
    }
    if let Some(file) = &storage.password_file {
        warn_if_world_accessible("storage.password_file", file, findings);
    }
}
