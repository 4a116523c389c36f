//! The permissions that apply to a path, with inherited ones.

use axum::extract::Request;
use keywright_core::{
    UseCaseError,
    permission::{Actor, Permission, PermissionPath},
    permission_management::{CoveringPermissions, ListPosition},
};
use maud::{Markup, html};

use super::{
    explain,
    permission::{ID, PATH, listed},
};
use crate::{
    page::{PageResult, next_links, table},
    paths::{ADD_PERMISSION, PERMISSION, PERMISSIONS, link, link_to_permissions},
    request::Fields,
    state::Visit,
};

/// Shows the form for a path, and below it, a page of the permissions that apply to this path, or an error.
pub(crate) async fn show(visit: Visit, request: Request) -> PageResult {
    let query = Fields::of_query(request.uri());
    let content = match query.text(PATH) {
        "" => Ok(without_path()),
        path => permissions_on(&visit, path, &query).await,
    };
    let content = content.map_err(|failure| visit.state.error(failure));
    let page = visit
        .page(PERMISSIONS, "Permissions")
        .refusing(content.as_ref().err());
    Ok(page.render(&html! {
        form.search role="search" action=(PERMISSIONS) {
            label for=(PATH) { "Path or name" }
            input id=(PATH) name=(PATH) value=(query.text(PATH)) required maxlength="255" placeholder="/team/*" autocomplete="off" spellcheck="false";
            button { "Show" }
        }
        @if let Ok(content) = &content { (content) }
    }))
}

async fn permissions_on(visit: &Visit, path: &str, query: &Fields) -> Result<Markup, UseCaseError> {
    let path = PermissionPath::parse(path)?;
    let from = position(query)?;
    let permissions = &visit.ports().permissions;
    let covering = permissions
        .covering(&visit.caller, &path, from.as_ref())
        .await?;
    let shown = Shown {
        visit,
        path: &path,
        covering: &covering,
        is_first: from.is_none(),
    };
    Ok(shown.content())
}

fn position(query: &Fields) -> Result<Option<ListPosition>, UseCaseError> {
    let (path, actor) = (query.text(AFTER_PATH), query.text(AFTER_ACTOR));
    if path.is_empty() {
        return Ok(None);
    }
    Ok(Some(ListPosition {
        path: PermissionPath::parse(path)?,
        actor: Actor::parse(actor)?,
    }))
}

fn without_path() -> Markup {
    html! {
        div.empty {
            p {
                "Enter the name of a credential, such as " code { "/team/database" } ", or a path that ends in an asterisk, such as "
                code { "/team/*" } ". You see the permissions on it if you may read them (" code { "read_acl" } ")."
            }
            p { a.button href=(link_to_permissions("/*")) { "Show the permissions on all credentials" } }
        }
    }
}

/// The permissions that apply to a path, to be rendered.
struct Shown<'a> {
    visit: &'a Visit,
    path: &'a PermissionPath,
    covering: &'a CoveringPermissions,
    is_first: bool,
}

impl Shown<'_> {
    fn content(&self) -> Markup {
        let path = self.path.as_str();
        let covering = self.covering;
        html! {
            section aria-labelledby="who" {
                h2 id="who" { "Who may do what on " code { (path) } }
                @if !covering.permissions.is_empty() {
                    (self.table())
                } @else if self.is_first {
                    p.empty { "There is no permission that you may read on this path or on a path above it. Add one to allow an actor to use the credentials." }
                } @else {
                    p.empty { "This page has no permissions. Open the first page." }
                }
                @if !covering.hidden.is_empty() {
                    p {
                        "You may not read the permissions on "
                        @for (index, path) in covering.hidden.iter().enumerate() {
                            @if index > 0 { ", " }
                            code { (path.as_str()) }
                        }
                        "."
                    }
                }
                (next_links(
                    (!self.is_first).then(|| link_to_permissions(path)),
                    covering.next.as_ref().map(|next| after(path, next)),
                ))
                p { a.button href=(link(ADD_PERMISSION, [(PATH, path)])) { "Add a permission" } }
            }
            (explain::form(path, "", None))
        }
    }

    fn table(&self) -> Markup {
        let columns = ["Actor", "Operations", "Granted on", "Action"];
        let rows =
            html! { @for permission in &self.covering.permissions { (self.row(permission)) } };
        table("Table of the permissions", &columns, &rows)
    }

    fn row(&self, permission: &Permission) -> Markup {
        let (actor, path) = (&permission.actor, permission.path.as_str());
        let id = permission.id.to_string();
        html! {
            tr {
                th scope="row" { (actor.as_str()) }
                td { (listed(permission.operations)) }
                td.wide {
                    @if permission.path == *self.path {
                        "this path"
                    } @else {
                        a href=(link_to_permissions(path)) { (path) } " " span.mark.soon { "inherited" }
                    }
                }
                td {
                    @if actor == self.visit.caller.actor() {
                        "your own"
                    } @else {
                        a href=(link(PERMISSION, [(ID, id.as_str())])) aria-label={ "Change the permission of " (actor.as_str()) " on " (path) } { "Change" }
                    }
                }
            }
        }
    }
}

fn after(path: &str, position: &ListPosition) -> String {
    let query = [
        (PATH, path),
        (AFTER_PATH, position.path.as_str()),
        (AFTER_ACTOR, position.actor.as_str()),
    ];
    link(PERMISSIONS, query)
}

const AFTER_PATH: &str = "after-path";
const AFTER_ACTOR: &str = "after-actor";
