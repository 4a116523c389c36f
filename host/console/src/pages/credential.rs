//! A credential: its versions, its metadata and its fields, and the actions on it.
//!
//! A field is shown at once only if the value schema of its plugin declares it and does not mark it as secret (`writeOnly`).
//! Every other field is revealed by its own request, which is audited as a read of the version.

use std::slice;

use axum::{
    extract::Request,
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
};
use chrono::{DateTime, Utc};
use keywright_core::{
    UseCaseError,
    credential::{
        CredentialName, CredentialVersion, History, KnownType, LookupName, Regenerate,
        StoredVersion,
    },
    ports::VersionSelection,
};
use maud::{Markup, html};
use uuid::Uuid;
use zeroize::Zeroizing;

use super::schema::ValueSchema;
use crate::{
    page::{PageError, PageResult, copyable, csrf_field, due, moment},
    paths::{
        BROWSE, DELETE, NAME, REGENERATE, REVEAL, VERSION, link_to_certificate, link_to_credential,
        link_to_permissions, link_to_set,
    },
    request::{Fields, accepts_text},
    state::Visit,
};

/// Returns a redirection to a credential's page, which confirms a change; or the confirmation, if the caller may not read the
/// credential.
pub(super) async fn see_changed(visit: &Visit, name: &CredentialName, change: &str) -> Response {
    let read = &visit.ports().credentials.read;
    let listed = read.all_listed(&visit.caller, slice::from_ref(name)).await;
    if matches!(listed.as_deref(), Ok([None])) {
        return confirmation(visit, "Changed", &html! { (change) });
    }
    visit.see_confirmed(link_to_credential(name.as_str()), change.to_owned())
}

fn confirmation(visit: &Visit, title: &str, change: &Markup) -> Response {
    visit.page(BROWSE, title).render(&html! {
        p.done role="status" { (change) }
        p { a.button href=(BROWSE) { "Back to the credentials" } }
    })
}

/// Shows a credential without its secret fields.
pub(crate) async fn show(visit: Visit, request: Request) -> PageResult {
    let query = Fields::of_query(request.uri());
    let name = query.text(NAME);
    let done = visit.confirmation(&link_to_credential(name), &request);
    let name = LookupName::new(name);
    let read = &visit.ports().credentials.read;
    let history = read.history(&visit.caller, &name).await?;
    let current = read
        .by_name(&visit.caller, &name, VersionSelection::Current)
        .await?;
    let shown = Shown {
        known: visit.state.known_type(history.credential_type.as_str()),
        visit: &visit,
        history: &history,
        now: visit.ports().clock.now(),
    };
    let page = visit.page(BROWSE, history.name.as_str());
    Ok(page.render(&html! {
        (done)
        @for version in &current { (shown.version(version)) }
        (shown.timeline())
        (shown.actions())
    }))
}

/// Shows one field of one version, or returns it as text to the script, which copies it.
pub(crate) async fn reveal(visit: Visit, request: Request) -> PageResult {
    let is_for_script = accepts_text(request.headers());
    let form = Fields::of_form(request, &visit.session).await?;
    let id: Result<Uuid, _> = form.text(VERSION).parse();
    let id = id.map_err(|_| UseCaseError::NotFound)?;
    let read = &visit.ports().credentials.read;
    let version = read.by_id(&visit.caller, id).await?;
    let known = visit.state.known_type(version.credential_type.as_str());
    let fields = ValueSchema::of(known.as_ref()).fields(&version.content.value);
    let wanted = form.text(FIELD);
    let field = fields.iter().find(|field| field.name == wanted);
    let field = field.ok_or(UseCaseError::NotFound)?;
    if is_for_script {
        let media_type = [(CONTENT_TYPE, "text/plain; charset=utf-8")];
        return Ok((media_type, field.text.to_string()).into_response());
    }
    let name = version.name.as_str();
    let page = visit.page(BROWSE, name);
    Ok(page.render(&html! {
        section aria-labelledby="revealed" {
            h2 id="revealed" { (field.name) }
            p { "Version " code { (version.id) } ", created " (moment(version.created_at, visit.ports().clock.now())) "." }
            (copyable(&field.name, &field.text))
            p { a.button href=(link_to_credential(name)) { "Hide" } }
        }
    }))
}

pub(crate) async fn regenerate(visit: Visit, request: Request) -> PageResult {
    let form = Fields::of_form(request, &visit.session).await?;
    let regenerate = Regenerate {
        name: LookupName::new(form.text(NAME)),
        metadata: None,
    };
    let credentials = &visit.ports().credentials;
    let written = credentials
        .regenerate
        .credential(&visit.caller, regenerate)
        .await?;
    let name = &written.version.name;
    Ok(see_changed(&visit, name, "The credential was regenerated.").await)
}

/// Deletes a credential whose name the user has typed.
pub(crate) async fn delete(visit: Visit, request: Request) -> PageResult {
    let form = Fields::of_form(request, &visit.session).await?;
    let name = form.text(NAME);
    if form.text(TYPED_NAME) != name {
        let message = "the typed name differs from the name of the credential; nothing was deleted";
        return Err(PageError::bad_request(message).into());
    }
    let read = &visit.ports().credentials.read;
    read.delete(&visit.caller, &LookupName::new(name)).await?;
    let change = html! { "Deleted " code { (name) } " with all its versions." };
    Ok(confirmation(&visit, "Deleted", &change))
}

struct Shown<'a> {
    visit: &'a Visit,
    history: &'a History,
    known: Option<KnownType>,
    now: DateTime<Utc>,
}

impl Shown<'_> {
    /// Renders the fields, the metadata and the provenance of the active or the transitional version.
    fn version(&self, version: &CredentialVersion) -> Markup {
        let title = if version.attributes.is_transitional {
            "Transitional version"
        } else {
            "Active version"
        };
        let id = version.id.to_string();
        html! {
            section aria-labelledby=(id) {
                h2 id=(id) { (title) }
                dl {
                    dt { "Type" } dd { (version.credential_type.as_str()) }
                    dt { "Created" } dd { (moment(version.created_at, self.now)) }
                    @if let Some(due_at) = version.attributes.due_at() {
                        dt { "Expires" } dd { (due(due_at, self.now)) }
                    }
                    @for field in ValueSchema::of(self.known.as_ref()).fields(&version.content.value) {
                        dt { (field.name) }
                        dd {
                            @if field.is_public { (copyable(&field.name, &field.text)) }
                            @else { (self.masked(&id, &field.name)) }
                        }
                    }
                    @if let Some(metadata) = &version.content.metadata {
                        dt { "Metadata" } dd { pre tabindex="0" { (indented(metadata.json().expose()).as_str()) } }
                    }
                    @if let Some(parameters) = &version.content.parameters {
                        dt { "Parameters" } dd { pre tabindex="0" { (indented(parameters.expose()).as_str()) } }
                    }
                }
            }
        }
    }

    /// Renders a secret field without its value.
    fn masked(&self, version_id: &str, field: &str) -> Markup {
        html! {
            form.masked method="post" action=(REVEAL) data-copy=(field) {
                (csrf_field(&self.visit.session))
                input type="hidden" name=(VERSION) value=(version_id);
                input type="hidden" name=(FIELD) value=(field);
                span aria-hidden="true" { "••••••••" }
                button aria-label={ "Reveal " (field) } { "Reveal" }
            }
        }
    }

    fn timeline(&self) -> Markup {
        let versions = &self.history.versions;
        let active = versions
            .iter()
            .find(|version| !version.attributes.is_transitional);
        let active = active.map(|version| version.id);
        html! {
            section aria-labelledby="versions" {
                h2 id="versions" { "Versions" }
                ol.timeline {
                    @for version in versions { (self.event(version, active)) }
                }
                @if self.history.has_more { p { "Older versions are not shown." } }
            }
        }
    }

    fn event(&self, version: &StoredVersion, active: Option<Uuid>) -> Markup {
        let attributes = &version.attributes;
        let signer = attributes.signed_by.as_ref();
        html! {
            li {
                p {
                    (moment(version.created_at, self.now))
                    @if active == Some(version.id) { " " span.mark.active { "active" } }
                    @if attributes.is_transitional { " " span.mark.soon { "transitional" } }
                }
                p.detail {
                    (origin(version))
                    @if let Some(plugin) = attributes.provenance.as_ref().filter(|plugin| !plugin.name.is_empty()) {
                        " by the plugin " (plugin.name) " " (plugin.version)
                    }
                    @if let Some(signer) = signer.filter(|signer| **signer != version.name) {
                        ", signed by " a href=(link_to_credential(signer.as_str())) { (signer.as_str()) }
                    }
                    @if let Some(due_at) = attributes.due_at() { ", expiry: " (moment(due_at, self.now)) }
                }
                @if let Some(plugin) = &attributes.provenance { p.detail { "sha256:" (plugin.digest) } }
                p.detail { (version.id) }
            }
        }
    }

    fn actions(&self) -> Markup {
        let name = self.history.name.as_str();
        let is_generated = self
            .known
            .as_ref()
            .is_some_and(|known| known.plugin.is_some());
        html! {
            section aria-labelledby="actions" {
                h2 id="actions" { "Actions" }
                div.actions {
                    @if is_generated {
                        form method="post" action=(REGENERATE) {
                            (csrf_field(&self.visit.session))
                            input type="hidden" name=(NAME) value=(name);
                            button { "Regenerate" }
                        }
                    }
                    @if self.history.credential_type.is_certificate() {
                        a.button href=(link_to_certificate(name)) { "Show the certificate" }
                    }
                    a.button href=(link_to_set(name, self.history.credential_type.as_str())) { "Set a new value" }
                    a.button href=(link_to_permissions(name)) { "Permissions" }
                }
                details {
                    summary { "Delete" }
                    form method="post" action=(DELETE) {
                        (csrf_field(&self.visit.session))
                        input type="hidden" name=(NAME) value=(name);
                        p { "This deletes all versions. Type " code { (name) } " to confirm." }
                        label for="typed" { "Name" }
                        input id="typed" name=(TYPED_NAME) required autocomplete="off" spellcheck="false";
                        button.danger { "Delete" }
                    }
                }
            }
        }
    }
}

fn origin(version: &StoredVersion) -> &'static str {
    let attributes = &version.attributes;
    match (attributes.is_generated, &attributes.provenance) {
        (Some(true), _) => "Generated",
        (_, Some(_)) => "Imported with the claim that it was generated",
        (Some(false), None) => "Set",
        (None, None) => "Added",
    }
}

/// Returns a JSON text with indentation, or unchanged if it can't be read.
fn indented(json: &str) -> Zeroizing<String> {
    let text = keywright_json::raw(json).and_then(keywright_json::indented);
    Zeroizing::new(text.unwrap_or_else(|_| json.to_owned()))
}

const TYPED_NAME: &str = "typed_name";
const FIELD: &str = "field";
