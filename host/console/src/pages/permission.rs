//! Adding, changing and removing one permission, and the fields of all forms and queries about permissions, parsed by the rules
//! of the API.

use axum::{extract::Request, response::Response};
use keywright_core::{
    UseCaseError,
    permission::{Actor, Grant, Operation, Operations, Permission, PermissionPath},
};
use maud::{Markup, html};
use serde_json::json;
use uuid::Uuid;

use crate::{
    page::{PageError, PageResult, csrf_field},
    paths::{
        ADD_PERMISSION, CHANGE_PERMISSION, PERMISSIONS, REMOVE_PERMISSION, link_to_permissions,
    },
    request::Fields,
    state::Visit,
};

pub(crate) async fn show_form(visit: Visit, request: Request) -> PageResult {
    let query = Fields::of_query(request.uri());
    Ok(add_page(&visit, query.text(PATH), None))
}

/// Adds a permission, or shows the form again with an error.
pub(crate) async fn add(visit: Visit, request: Request) -> PageResult {
    let form = Fields::of_form(request, &visit.session).await?;
    Ok(match added(&visit, &form).await {
        Ok(permission) => confirmation(&visit, "Added the permission", &permission),
        Err(failure) => {
            let refusal = visit.state.error(failure);
            add_page(&visit, form.text(PATH), Some((&form, &refusal)))
        }
    })
}

/// Shows a permission, with the forms to change and to remove it.
pub(crate) async fn show(visit: Visit, request: Request) -> PageResult {
    let query = Fields::of_query(request.uri());
    let id = id(&query)?;
    let permission = visit.ports().permissions.by_id(&visit.caller, id).await?;
    let page = visit.page(PERMISSIONS, "Change a permission");
    let actor = isolated(&permission.actor);
    let id = id.to_string();
    Ok(page.render(&html! {
        section aria-labelledby="permission" {
            h2 id="permission" { (actor) " on " code { (permission.path.as_str()) } }
            form method="post" action=(CHANGE_PERMISSION) {
                (csrf_field(&visit.session))
                input type="hidden" name=(ID) value=(id);
                (operations_field(|operation| permission.operations.contain(operation)))
                button { "Change" }
            }
            details {
                summary { "Remove" }
                form method="post" action=(REMOVE_PERMISSION) {
                    (csrf_field(&visit.session))
                    input type="hidden" name=(ID) value=(id);
                    p { "This removes all operations of " (actor) " on this path. Permissions on paths above it remain." }
                    button.danger { "Remove" }
                }
            }
        }
        p { a href=(link_to_permissions(permission.path.as_str())) { "Back to the permissions on " (permission.path.as_str()) } }
    }))
}

/// Replaces the operations of a permission.
pub(crate) async fn change(visit: Visit, request: Request) -> PageResult {
    let form = Fields::of_form(request, &visit.session).await?;
    let id = id(&form)?;
    let operations = operations(&form)?;
    // If the permission does not exist, no event about a resource contains the operations.
    let names: Vec<_> = operations.iter().map(Operation::as_str).collect();
    visit
        .caller
        .trail()
        .set_details(json!({"operations": names}));
    let permissions = &visit.ports().permissions;
    let changed = permissions.amend(&visit.caller, id, operations).await?;
    Ok(confirmation(&visit, "Changed the permission", &changed))
}

pub(crate) async fn remove(visit: Visit, request: Request) -> PageResult {
    let form = Fields::of_form(request, &visit.session).await?;
    let id = id(&form)?;
    let removed = visit.ports().permissions.delete(&visit.caller, id).await?;
    Ok(confirmation(&visit, "Removed the permission", &removed))
}

async fn added(visit: &Visit, form: &Fields) -> Result<Permission, UseCaseError> {
    let grant = Grant {
        operations: operations(form)?,
        path: PermissionPath::parse(form.text(PATH))?,
        actor: Actor::parse(form.text(ACTOR))?,
    };
    visit.ports().permissions.add(&visit.caller, &grant).await
}

/// Returns the id in a form or a query. A text that is not a UUID is treated as an unknown id, as in the API.
fn id(fields: &Fields) -> Result<Uuid, UseCaseError> {
    let id = fields.text(ID).parse();
    id.map_err(|_| UseCaseError::PermissionNotFound)
}

fn operations(form: &Fields) -> Result<Operations, UseCaseError> {
    let chosen = |operation: &Operation| !form.text(&operation_field(*operation)).is_empty();
    let operations = Operations::of(Operation::ALL.into_iter().filter(chosen));
    operations.ok_or(UseCaseError::OperationsMissing)
}

fn operation_field(operation: Operation) -> String {
    format!("operation.{operation}")
}

fn operations_field(is_chosen: impl Fn(Operation) -> bool) -> Markup {
    html! {
        div.field {
            fieldset {
                legend { "Operations" }
                @for operation in Operation::ALL {
                    label {
                        input type="checkbox" name=(operation_field(operation)) value="true" checked[is_chosen(operation)];
                        " " (operation.as_str())
                    }
                }
            }
            p.help {
                "With " code { "read_acl" } ", the actor can read the permissions on the path. With " code { "write_acl" } ", the actor can change the permissions of other actors on it. "
                "Some requests that need " code { "write" } " also return existing values."
            }
        }
    }
}

/// Returns the form with a path, or with all fields of a refused request and the reason. A link can only fill in the path, so that
/// an attacker can't make a user grant a permission with one click.
fn add_page(visit: &Visit, path: &str, refused: Option<(&Fields, &PageError)>) -> Response {
    let (form, refusal) = refused.unzip();
    let entered = |name: &str| form.map(|form| form.text(name)).unwrap_or_default();
    let page = visit
        .page(PERMISSIONS, "Add a permission")
        .refusing(refusal);
    page.render(&html! {
        form.entry method="post" action=(ADD_PERMISSION) {
            (csrf_field(&visit.session))
            (path_field(PATH, path))
            (actor_field(entered(ACTOR)))
            (operations_field(|operation| !entered(&operation_field(operation)).is_empty()))
            button { "Add" }
        }
    })
}

fn confirmation(visit: &Visit, change: &str, permission: &Permission) -> Response {
    let path = permission.path.as_str();
    visit.page(PERMISSIONS, "Permissions").render(&html! {
        p.done role="status" {
            (change) " of " (isolated(&permission.actor)) " on " code { (path) } ": " (listed(permission.operations)) "."
        }
        p { a.button href=(link_to_permissions(path)) { "Show the permissions on " (path) } }
    })
}

pub(super) const PATH: &str = "path";
pub(super) const ACTOR: &str = "actor";
pub(super) const ID: &str = "id";

/// Returns the names of operations, separated by commas.
pub(super) fn listed(operations: Operations) -> String {
    let names: Vec<_> = operations.iter().map(Operation::as_str).collect();
    names.join(", ")
}

/// Renders an actor. Its text direction does not affect the text around it.
pub(super) fn isolated(actor: &Actor) -> Markup {
    html! { bdi { (actor.as_str()) } }
}

/// Renders the input of a path. Its id is unique on the page.
pub(super) fn path_field(id: &str, path: &str) -> Markup {
    html! {
        div.field {
            label for=(id) { "Path or name (required)" }
            input id=(id) name=(PATH) value=(path) required maxlength="255" placeholder="/team/*" autocomplete="off" spellcheck="false";
        }
    }
}

pub(super) fn actor_field(actor: &str) -> Markup {
    html! {
        div.field {
            label for=(ACTOR) { "Actor (required)" }
            input id=(ACTOR) name=(ACTOR) value=(actor) required maxlength="255" placeholder="uaa-client:app" autocomplete="off" spellcheck="false" aria-describedby="actor-help";
            p.help id="actor-help" {
                code { "uaa-client:" } " followed by the id of a client, " code { "uaa-user:" } " followed by the id of a user, or "
                code { "mtls-app:" } " followed by the UUID of an application."
            }
        }
    }
}
