//! Generating a credential of any type, with a form made from the schema of the type's plugin.

use axum::{extract::Request, http::StatusCode, response::Response};
use keywright_core::credential::{CredentialName, Generate, KnownType, Written};
use maud::{Markup, html};

use super::{credential::see_changed, schema::ParameterForm, set};
use crate::{
    page::{Failure, PageError, PageResult, csrf_field},
    paths::{GENERATE, NAME, SET, TYPE, link},
    request::Fields,
    state::Visit,
};

/// Shows the form of a type, or the list of types.
pub(crate) async fn show(visit: Visit, request: Request) -> PageResult {
    let query = Fields::of_query(request.uri());
    let types = visit.ports().credentials.types.all();
    let wanted = query.text(TYPE);
    if wanted.is_empty() {
        let page = visit.page(GENERATE, "Generate a credential");
        return Ok(page.render(&list(&types)));
    }
    let (known, form) = form_of(&visit, wanted)?;
    let shown = Form {
        known: &known,
        parameters: &form,
        entered: None,
        name: query.text(NAME),
    };
    Ok(shown.page(&visit, None))
}

/// Generates a credential, or shows the form again with an error.
pub(crate) async fn submit(visit: Visit, request: Request) -> PageResult {
    let form = Fields::of_form(request, &visit.session).await?;
    let (known, parameters) = form_of(&visit, form.text(TYPE))?;
    match generated(&visit, &form, &parameters).await {
        Ok(written) => {
            let change = if written.is_new {
                "The credential was generated."
            } else {
                "The credential already existed. No value was generated."
            };
            Ok(see_changed(&visit, &written.version.name, change).await)
        }
        Err(failure) => {
            let shown = Form {
                known: &known,
                parameters: &parameters,
                name: form.text(NAME),
                entered: Some(&form),
            };
            Ok(shown.page(&visit, Some(&visit.state.error(failure))))
        }
    }
}

async fn generated(
    visit: &Visit,
    form: &Fields,
    parameters: &ParameterForm,
) -> Result<Written, Failure> {
    let credentials = &visit.ports().credentials;
    let credential_type = credentials.types.parse(form.text(TYPE))?;
    let mode = form
        .text(MODE)
        .parse()
        .map_err(|_| PageError::bad_request("choose what to do if the credential exists"))?;
    let generate = Generate {
        name: CredentialName::parse(form.text(NAME))?,
        credential_type,
        mode,
        parameters: Some(parameters.read(form).map_err(PageError::bad_request)?),
        metadata: set::metadata(form)?,
    };
    let generating = credentials.generate.credential(&visit.caller, generate);
    Ok(generating.await?)
}

fn form_of(visit: &Visit, name: &str) -> Result<(KnownType, ParameterForm), PageError> {
    let found = visit.state.known_type(name).and_then(|known| {
        let form = ParameterForm::of(known.parameters_schema.as_deref()?);
        Some((known, form))
    });
    found.ok_or_else(|| {
        let message = "this server can't generate credentials of this type";
        PageError::new(StatusCode::NOT_FOUND, message).with_link(GENERATE, "Choose another type")
    })
}

fn list(types: &[KnownType]) -> Markup {
    let generated = types
        .iter()
        .filter(|known| known.parameters_schema.is_some());
    let generated: Vec<_> = generated.collect();
    html! {
        @if generated.is_empty() {
            p.empty { "No generators are configured on this server. Ask an administrator to configure one, or " a href=(SET) { "set a value" } "." }
        } @else {
            p { "Choose a type." }
            ul.cards {
                @for known in generated {
                    li {
                        a href=(link(GENERATE, [(TYPE, known.name.as_str())])) { (known.name) }
                        p { (known.summary) }
                    }
                }
            }
        }
    }
}

struct Form<'a> {
    known: &'a KnownType,
    parameters: &'a ParameterForm,
    name: &'a str,
    /// The form that was refused.
    entered: Option<&'a Fields>,
}

impl Form<'_> {
    fn page(&self, visit: &Visit, refusal: Option<&PageError>) -> Response {
        let title = format!("Generate a credential of type {}", self.known.name);
        let entered = |name| self.entered.map(|form| form.text(name)).unwrap_or_default();
        let page = visit.page(GENERATE, &title).refusing(refusal);
        page.render(&html! {
            p { (self.known.summary) }
            form.entry method="post" action=(GENERATE) {
                (csrf_field(&visit.session))
                input type="hidden" name=(TYPE) value=(self.known.name);
                (set::name_field(self.name))
                (self.parameters.render(self.entered))
                (set::metadata_field(entered(set::METADATA)))
                div.field {
                    label for=(MODE) { "If the credential exists" }
                    select id=(MODE) name=(MODE) {
                        @for (mode, label) in MODES {
                            option value=(mode) selected[entered(MODE) == mode] { (label) }
                        }
                    }
                }
                button { "Generate" }
                " " a href=(GENERATE) { "Choose another type" }
            }
        })
    }
}

const MODE: &str = "mode";

const MODES: [(&str, &str); 3] = [
    ("converge", "Add a version if the parameters differ"),
    ("no-overwrite", "Keep it"),
    ("overwrite", "Add a version"),
];
