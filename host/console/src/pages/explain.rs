//! Explains why an actor may or may not perform an operation on a path, with a diagram and a table of the rules.

use axum::extract::Request;
use keywright_core::{
    UseCaseError,
    credential::CredentialName,
    permission::{Actor, Operation, Permission, PermissionPath},
    permission_management::Explanation,
};
use maud::{Markup, html};

use super::permission::{ACTOR, PATH, actor_field, isolated, listed, path_field};
use crate::{
    page::{PageResult, last_characters, scrolled, table},
    paths::{EXPLAIN, PERMISSIONS, link_to_permissions},
    request::Fields,
    state::Visit,
};

/// Shows the form, with an explanation or an error above it once it is filled in.
pub(crate) async fn show(visit: Visit, request: Request) -> PageResult {
    let query = Fields::of_query(request.uri());
    let explained = match request.uri().query() {
        Some(_) => Some(explained(&visit, &query).await),
        None => None,
    };
    let explained = explained
        .transpose()
        .map_err(|failure| visit.state.error(failure));
    let operation = Operation::parse(query.text(OPERATION)).ok();
    let page = visit
        .page(PERMISSIONS, "Explain a permission")
        .refusing(explained.as_ref().err());
    Ok(page.render(&html! {
        @if let Ok(Some(explanation)) = &explained { (result(explanation)) }
        (form(query.text(PATH), query.text(ACTOR), operation))
    }))
}

pub(super) fn form(path: &str, actor: &str, operation: Option<Operation>) -> Markup {
    html! {
        section aria-labelledby="explain" {
            h2 id="explain" { "Explain a permission" }
            form action=(EXPLAIN) {
                (path_field("explained-path", path))
                (actor_field(actor))
                div.field {
                    label for=(OPERATION) { "Operation" }
                    select id=(OPERATION) name=(OPERATION) {
                        @for one in Operation::ALL {
                            option value=(one.as_str()) selected[operation == Some(one)] { (one.as_str()) }
                        }
                    }
                }
                button { "Explain" }
            }
        }
    }
}

async fn explained(visit: &Visit, query: &Fields) -> Result<Explanation, UseCaseError> {
    let path = PermissionPath::parse(query.text(PATH))?;
    let actor = Actor::parse(query.text(ACTOR))?;
    let operation = Operation::parse(query.text(OPERATION))?;
    let permissions = &visit.ports().permissions;
    permissions
        .explain(&visit.caller, actor, operation, path)
        .await
}

fn result(explanation: &Explanation) -> Markup {
    let Explanation {
        actor,
        path,
        operation,
        is_enforced,
        is_allowed,
        stored,
        ..
    } = explanation;
    let names = std::iter::once(path.as_str()).chain(stored.iter().map(CredentialName::as_str));
    html! {
        section aria-labelledby="decision" {
            h2 id="decision" {
                (isolated(actor)) " may " @if !is_allowed { strong { "not " } } (operation.as_str()) " " code { (path.as_str()) }
            }
            @if !is_enforced { p { "This server does not enforce permissions: every authenticated caller may do everything." } }
            @if let Some(stored) = stored {
                p { "The credential is stored as " code { (stored.as_str()) } ". Permissions are case-sensitive, so the actor needs a permission for this operation on both names." }
            }
            @for (index, name) in names.enumerate() {
                @let rules = Rules::on(explanation, name);
                @if stored.is_some() { h3 { code { (name) } } }
                (rules.diagram(index))
                (rules.table())
                @if *is_enforced { p { (rules.conclusion()) } }
            }
        }
    }
}

/// The paths that cover a name, with the actor's permissions on them, the widest first.
struct Rules<'a> {
    operation: Operation,
    levels: Vec<(PermissionPath, Option<&'a Permission>)>,
    /// The position of the nearest permission that allows the operation.
    allowing: Option<usize>,
}

impl<'a> Rules<'a> {
    fn on(explanation: &'a Explanation, name: &str) -> Self {
        let level = |path: PermissionPath| {
            let mut considered = explanation.considered.iter();
            let rule = considered.find(|rule| rule.path == path);
            (path, rule.and_then(|rule| rule.permission.as_ref()))
        };
        let covering = PermissionPath::covering(name).into_iter().rev();
        let levels: Vec<_> = covering.map(level).collect();
        let operation = explanation.operation;
        let allowing = levels.iter().rposition(|(_, permission)| {
            permission.is_some_and(|permission| permission.operations.contain(operation))
        });
        Self {
            operation,
            levels,
            allowing,
        }
    }

    /// Draws each path with the permission on it, connected from the widest to the nearest.
    fn diagram(&self, index: usize) -> Markup {
        let height = LEVEL_HEIGHT * self.levels.len();
        let title = format!("diagram-{index}");
        html! {
            (scrolled("Diagram of the rules", &html! {
                svg.rules viewBox={ "0 0 " (DIAGRAM_WIDTH) " " (height) } role="img" aria-labelledby=(title) {
                    title id=(title) { (self.described()) }
                    @for (level, (path, permission)) in self.levels.iter().enumerate() {
                        (self.level(level, path, *permission))
                    }
                }
            }))
        }
    }

    fn level(
        &self,
        level: usize,
        path: &PermissionPath,
        permission: Option<&Permission>,
    ) -> Markup {
        let top = LEVEL_HEIGHT * level + 6;
        let left = INDENTATION * level.min(INDENTED_LEVELS_MAX) + 4;
        let middle = top + BOX_HEIGHT / 2;
        let is_allowing = self.allowing == Some(level);
        let class = match permission {
            Some(_) if is_allowing => "allows",
            Some(_) => "grants",
            None => "nothing",
        };
        html! {
            @if level > 0 {
                line x1=(left + 6) y1=(top + BOX_HEIGHT - LEVEL_HEIGHT) x2=(left + 6) y2=(top) {}
            }
            line x1=(left + PATH_WIDTH) y1=(middle) x2=(RULE_LEFT) y2=(middle) {}
            rect.path x=(left) y=(top) width=(PATH_WIDTH) height=(BOX_HEIGHT) rx="6" {}
            text x=(left + 12) y=(middle + 5) { (last_characters(path.as_str(), LABEL_CHARACTERS_MAX)) }
            rect class=(class) x=(RULE_LEFT) y=(top) width=(DIAGRAM_WIDTH - RULE_LEFT - 4) height=(BOX_HEIGHT) rx="6" {}
            text class=(class) x=(RULE_LEFT + 12) y=(middle + 5) {
                @match permission {
                    Some(permission) => { @if is_allowing { "✓ " } (listed(permission.operations)) }
                    None => "no permission",
                }
            }
        }
    }

    fn table(&self) -> Markup {
        let allows = format!("Allows {}", self.operation.as_str());
        let rows = html! {
            @for (level, (path, permission)) in self.levels.iter().enumerate() {
                tr {
                    th scope="row" { a href=(link_to_permissions(path.as_str())) { (path.as_str()) } }
                    td { @if let Some(permission) = permission { (listed(permission.operations)) } @else { "none" } }
                    td {
                        @let allows = permission.is_some_and(|permission| permission.operations.contain(self.operation));
                        @if self.allowing == Some(level) { span.mark.active { "yes" } } @else if allows { "yes" } @else { "no" }
                    }
                }
            }
        };
        table("Rules", &["Path", "Operations", &allows], &rows)
    }

    fn conclusion(&self) -> Markup {
        let allowing = self.allowing.and_then(|level| self.levels.get(level));
        html! {
            @if let Some((path, _)) = allowing {
                "The permission on " code { (path.as_str()) } " allows this operation."
            } @else {
                "No permission on this path or on a path above it grants " code { (self.operation.as_str()) } ". Add one to allow this operation."
            }
        }
    }

    fn described(&self) -> String {
        let levels = self
            .levels
            .iter()
            .map(|(path, permission)| match permission {
                Some(permission) => format!("{path}: {}", listed(permission.operations)),
                None => format!("{path}: no permission"),
            });
        levels.collect::<Vec<_>>().join("; ")
    }
}

const OPERATION: &str = "operation";

const DIAGRAM_WIDTH: usize = 800;
const LEVEL_HEIGHT: usize = 56;
const BOX_HEIGHT: usize = 38;
const PATH_WIDTH: usize = 290;
const RULE_LEFT: usize = 430;
const INDENTATION: usize = 14;
const INDENTED_LEVELS_MAX: usize = 6;

/// The maximum length of a path in its box, in characters.
const LABEL_CHARACTERS_MAX: usize = 34;
