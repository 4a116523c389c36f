//! Setting a credential to a value of a simple type.

use axum::{extract::Request, response::Response};
use keywright_core::{
    Secret,
    credential::{CredentialName, CredentialType, Metadata, Set},
};
use maud::{Markup, html};
use serde_json::Value;
use zeroize::Zeroizing;

use super::credential::see_changed;
use crate::{
    page::{Failure, PageError, PageResult, csrf_field},
    paths::{NAME, SET, TYPE},
    request::Fields,
    state::Visit,
};

pub(super) const METADATA: &str = "metadata";

pub(crate) async fn show(visit: Visit, request: Request) -> PageResult {
    Ok(page(&visit, &Fields::of_query(request.uri()), None))
}

/// Sets a credential, or shows the form again with an error. The value must be entered again.
pub(crate) async fn submit(visit: Visit, request: Request) -> PageResult {
    let form = Fields::of_form(request, &visit.session).await?;
    Ok(match set(&visit, &form).await {
        Ok(name) => see_changed(&visit, &name, "The credential was set.").await,
        Err(failure) => page(&visit, &form, Some(&visit.state.error(failure))),
    })
}

async fn set(visit: &Visit, form: &Fields) -> Result<CredentialName, Failure> {
    let credentials = &visit.ports().credentials;
    let credential_type = credentials.types.parse(form.text(TYPE))?;
    let set = Set {
        name: CredentialName::parse(form.text(NAME))?,
        value: value(&credential_type, form)?,
        credential_type,
        metadata: metadata(form)?,
        provenance: None,
    };
    let version = credentials.set.credential(&visit.caller, set).await?;
    Ok(version.name)
}

/// Returns the value as JSON: a string for types whose values are text, the entered JSON for others.
fn value(credential_type: &CredentialType, form: &Fields) -> Result<Secret, PageError> {
    let entered = form.text(VALUE);
    if is_text(credential_type.as_str()) {
        // Browsers submit line breaks as CR and LF.
        let text = Zeroizing::new(entered.replace("\r\n", "\n"));
        return Ok(Secret::new(Value::from(text.as_str()).to_string()));
    }
    let value = compact(entered).map(Secret::new);
    value.ok_or_else(|| {
        PageError::bad_request("the value must be a JSON object without duplicate keys")
    })
}

fn is_text(credential_type: &str) -> bool {
    [CredentialType::VALUE, CredentialType::PASSWORD].contains(&credential_type)
}

/// Returns a JSON text without insignificant whitespace, with its numbers unchanged; `None` if it is malformed.
fn compact(json: &str) -> Option<String> {
    keywright_json::check(json).ok()?;
    Some(keywright_json::compact(json))
}

pub(super) fn metadata(form: &Fields) -> Result<Option<Metadata>, PageError> {
    let entered = form.text(METADATA);
    if entered.trim().is_empty() {
        return Ok(None);
    }
    let json = compact(entered).filter(|json| json.starts_with('{'));
    let json = json.ok_or_else(|| {
        PageError::bad_request("the metadata must be a JSON object without duplicate keys")
    })?;
    let metadata = Metadata::parse(Secret::new(json));
    metadata
        .map(Some)
        .map_err(|long| PageError::bad_request(long.to_string()))
}

pub(super) fn name_field(name: &str) -> Markup {
    html! {
        div.field {
            label for="name" { "Name (required)" }
            input id="name" name=(NAME) value=(name) required maxlength="255" placeholder="/team/database" autocomplete="off" spellcheck="false";
        }
    }
}

pub(super) fn metadata_field(metadata: &str) -> Markup {
    html! {
        div.field {
            label for=(METADATA) { "Metadata" }
            textarea id=(METADATA) name=(METADATA) rows="2" spellcheck="false" aria-describedby="metadata-help" { (metadata) }
            p.help id="metadata-help" { "A JSON object with any fields, such as " code { r#"{"owner": "shop"}"# } "." }
        }
    }
}

fn page(visit: &Visit, entered: &Fields, refusal: Option<&PageError>) -> Response {
    let types = visit.ports().credentials.types.all();
    let page = visit.page(SET, "Set a credential").refusing(refusal);
    page.render(&html! {
        form.entry method="post" action=(SET) {
            (csrf_field(&visit.session))
            (name_field(entered.text(NAME)))
            div.field {
                label for=(TYPE) { "Type" }
                select id=(TYPE) name=(TYPE) {
                    @for known in &types {
                        option value=(known.name) selected[entered.text(TYPE) == known.name] { (known.name) " – " (known.summary) }
                    }
                }
            }
            div.field {
                label for=(VALUE) { "Value (required)" }
                textarea id=(VALUE) name=(VALUE) rows="6" required autocomplete="off" spellcheck="false" aria-describedby="value-help" {}
                p.help id="value-help" { "Text for the types value and password; a JSON object for all other types." }
            }
            (metadata_field(entered.text(METADATA)))
            button { "Set" }
        }
    })
}

const VALUE: &str = "value";
