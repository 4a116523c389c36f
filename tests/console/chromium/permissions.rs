//! Permissions, the explanation of a decision, encryption keys, types and plugins.

use super::Chromium;
use crate::{browser::DEVELOPER, server};

#[tokio::test]
async fn a_permission_is_added_explained_changed_and_removed() {
    let server = server().await;
    let Some(chromium) = Chromium::start(&server).await else {
        return;
    };
    chromium.open("/console/permissions?path=/team/*").await;
    chromium.log_in(DEVELOPER).await;
    chromium.check("permissions").await;
    chromium.follow("Add a permission").await;
    chromium.check("permission-add").await;
    chromium.fill("actor", READER).await;
    chromium.fill("operation.read", "true").await;
    chromium.submit(".entry button").await;
    chromium.find_text("Added the permission").await;
    chromium.check("permission-added").await;

    let explain = format!("/console/permissions/explain?path=/team/database&actor={READER}");
    chromium.open(&format!("{explain}&operation=read")).await;
    chromium.find_text("may read").await;
    chromium.check("explain-read").await;
    chromium.fill("operation", "write").await;
    chromium.submit("main form button").await;
    chromium.find_text("may not write").await;
    chromium.check("explain-write").await;

    chromium.open("/console/permissions?path=/team/*").await;
    chromium.check("permissions-on-path").await;
    chromium.submit("a[href^='/console/permission?']").await;
    chromium.check("permission").await;
    chromium.click("details summary").await;
    chromium.submit("button.danger").await;
    chromium.find_text("Removed the permission").await;
    chromium.check("permission-removed").await;
}

#[tokio::test]
async fn keys_and_plugins_and_unknown_paths_are_accessible() {
    let server = server().await;
    let Some(chromium) = Chromium::logged_in(&server).await else {
        return;
    };
    chromium.follow("Keys and plugins").await;
    chromium.check("keys-and-plugins").await;
    chromium.open("/console/absent").await;
    chromium.check("unknown-path").await;
}

const READER: &str = "uaa-user:reader";
