//! The permissions that apply to a path, with inherited ones.

use std::sync::Arc;

use axum::{extract::Request, response::Response};
use keywright_core::{
    UseCaseError,
    permission::{Actor, Operation, Operations, Permission, PermissionPath},
    permission_management::{CoveringPermissions, ListPosition},
};
use maud::{Markup, html};

use super::explain;
use crate::{
    page::{Page, PageError, PageResult},
    paths::{ADD_PERMISSION, PERMISSION, PERMISSIONS, link, link_to_permissions},
    request::Fields,
    session::Visit,
    state::State,
};

/// The field of a query or a form with the path.
pub(super) const PATH: &str = "path";
/// The field with the actor.
pub(super) const ACTOR: &str = "actor";
/// The query parameter with the id of a permission.
pub(super) const ID: &str = "id";

/// Shows a page of the permissions that apply to a path.
pub(crate) async fn show(state: Arc<State>, visit: Visit, request: Request) -> PageResult {
    let query = Fields::of_query(request.uri());
    let text = query.text(PATH);
    if text.is_empty() {
        return Ok(page(&visit, "", &without_path()));
    }
    let path = parsed_path(&state, text)?;
    let from = position(&state, &query)?;
    let permissions = &state.ports.permissions;
    let covering = permissions.covering(&visit.caller, &path, from.as_ref());
    let covering = covering.await.map_err(|failure| state.failed(failure))?;
    let shown = Shown {
        visit: &visit,
        path: &path,
        covering: &covering,
        is_first: from.is_none(),
    };
    Ok(page(&visit, path.as_str(), &shown.content()))
}

/// Parses a path as the API does.
pub(super) fn parsed_path(state: &State, text: &str) -> Result<PermissionPath, PageError> {
    let parsed = PermissionPath::parse(text).map_err(UseCaseError::from);
    parsed.map_err(|failure| state.failed(failure))
}

/// Parses an actor as the API does.
pub(super) fn parsed_actor(state: &State, text: &str) -> Result<Actor, PageError> {
    let parsed = Actor::parse(text).map_err(UseCaseError::from);
    parsed.map_err(|failure| state.failed(failure))
}

/// Returns the names of operations as a list in prose.
pub(super) fn listed(operations: Operations) -> String {
    let names: Vec<_> = operations.iter().map(Operation::as_str).collect();
    names.join(", ")
}

fn position(state: &State, query: &Fields) -> Result<Option<ListPosition>, PageError> {
    let (path, actor) = (query.text(AFTER_PATH), query.text(AFTER_ACTOR));
    if path.is_empty() {
        return Ok(None);
    }
    Ok(Some(ListPosition {
        path: parsed_path(state, path)?,
        actor: parsed_actor(state, actor)?,
    }))
}

fn page(visit: &Visit, path: &str, content: &Markup) -> Response {
    Page::of(visit, PERMISSIONS, "Permissions").render(&html! {
        form.search role="search" action=(PERMISSIONS) {
            label for=(PATH) { "Path or name" }
            input id=(PATH) name=(PATH) value=(path) required maxlength="255" placeholder="/team/*" autocomplete="off" spellcheck="false";
            button { "Show" }
        }
        (content)
    })
}

fn without_path() -> Markup {
    html! {
        div.empty {
            p {
                "Enter the name of a credential, such as " code { "/team/database" } ", or a path that ends in an asterisk, such as "
                code { "/team/*" } ". You see the permissions on it if you may read them (" code { "read_acl" } ")."
            }
            p { a.button href=(link_to_permissions("/*")) { "Show the permissions on all names" } }
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
        let CoveringPermissions {
            permissions,
            hidden,
            next,
        } = self.covering;
        html! {
            section aria-labelledby="who" {
                h2 id="who" { "Who may do what on " code { (path) } }
                @if !permissions.is_empty() {
                    (self.table())
                } @else if self.is_first {
                    p.empty { "No permission on this path or on a path above it that you may see. Add one, so that an actor may use the credentials." }
                } @else {
                    p.empty { "This page has no permissions. Open the first page." }
                }
                @if !hidden.is_empty() {
                    p {
                        "Not shown, because you may not read them: the permissions on "
                        @for (index, path) in hidden.iter().enumerate() {
                            @if index > 0 { ", " }
                            code { (path.as_str()) }
                        }
                        "."
                    }
                }
                nav.pages aria-label="Pages" {
                    @if !self.is_first { a.button href=(link_to_permissions(path)) { "First page" } }
                    @if let Some(next) = next { a.button href=(after(path, next)) { "Next page" } }
                    a.button href=(link(ADD_PERMISSION, [(PATH, path)])) { "Add a permission" }
                }
            }
            (explain::form(path, "", None))
        }
    }

    fn table(&self) -> Markup {
        html! {
            div.scrolled tabindex="0" role="region" aria-labelledby="who" {
                table {
                    thead { tr { th scope="col" { "Actor" } th scope="col" { "Operations" } th scope="col" { "Granted on" } th scope="col" { "Action" } } }
                    tbody { @for permission in &self.covering.permissions { (self.row(permission)) } }
                }
            }
        }
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
