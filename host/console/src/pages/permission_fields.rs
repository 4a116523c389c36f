//! The fields of forms and queries about permissions, parsed by the rules of the API.

use keywright_core::{
    UseCaseError,
    permission::{Actor, Operation, Operations, PermissionPath},
};
use maud::{Markup, html};

use crate::{page::PageError, state::State};

/// The field with the path.
pub(super) const PATH: &str = "path";
/// The field with the actor.
pub(super) const ACTOR: &str = "actor";
/// The field with the id of a permission.
pub(super) const ID: &str = "id";

/// Parses a path.
pub(super) fn parsed_path(state: &State, text: &str) -> Result<PermissionPath, PageError> {
    let parsed = PermissionPath::parse(text).map_err(UseCaseError::from);
    parsed.map_err(|failure| state.failed(failure))
}

/// Parses an actor.
pub(super) fn parsed_actor(state: &State, text: &str) -> Result<Actor, PageError> {
    let parsed = Actor::parse(text).map_err(UseCaseError::from);
    parsed.map_err(|failure| state.failed(failure))
}

/// Returns the names of operations, separated by commas.
pub(super) fn listed(operations: Operations) -> String {
    let names: Vec<_> = operations.iter().map(Operation::as_str).collect();
    names.join(", ")
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

/// Renders the input of an actor.
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
