//! The rotation of a CA, as a wizard with four steps.
//!
//! The page shows the stage that follows from the stored versions, so users can continue a rotation alternately here and with
//! the command line. A form contains the observed stage and versions, and is refused if the state has changed since then.

use axum::{extract::Request, http::StatusCode, response::Response};
use keywright_core::credential::{
    LookupName, ObservedVersions, Rotation, RotationError, RotationStage,
};
use maud::{Markup, html};
use uuid::Uuid;

use super::download::{self, Part};
use crate::{
    page::{PageError, PageResult, csrf_field},
    paths::{
        CERTIFICATES, NAME, ROTATION, link_to_certificate, link_to_credential, link_to_rotation,
    },
    request::Fields,
    state::Visit,
};

/// Shows the state of a rotation and its next step.
pub(crate) async fn show(visit: Visit, request: Request) -> PageResult {
    let query = Fields::of_query(request.uri());
    let name = query.text(NAME);
    let done = visit.confirmation(&link_to_rotation(name), &request);
    let certificates = &visit.ports().credentials.certificates;
    let lookup = LookupName::new(name);
    let rotation = certificates.rotation(&visit.caller, &lookup);
    let rotation = rotation.await.map_err(|failure| {
        let refusal = refused(&visit, failure);
        refusal.with_link(CERTIFICATES, "Back to the certificates")
    })?;
    Ok(rendered(&visit, &rotation, &done))
}

/// Takes the next step, if the state of the rotation still equals the state in the form.
pub(crate) async fn advance(visit: Visit, request: Request) -> PageResult {
    let form = Fields::of_form(request, &visit.session).await?;
    let name = form.text(NAME);
    let observed = observation(&form).ok_or_else(|| {
        let message = "the form contains no valid state of the rotation; open the page again";
        PageError::bad_request(message).with_link(&link_to_rotation(name), SHOW_STATE)
    })?;
    visit.caller.trail().set_action(action(observed.0));
    let credentials = &visit.ports().credentials;
    let lookup = LookupName::new(name);
    let advancing = credentials.advance_rotation(&visit.caller, &lookup, observed);
    match advancing.await {
        Ok(()) => {
            let (step, after) = (observed.0.step(), texts(observed.0).after);
            let change = format!("Step {step} is complete. {after}");
            Ok(visit.see_confirmed(link_to_rotation(name), change))
        }
        Err(failure) => {
            let refusal = refused(&visit, failure);
            let refusal = refusal.with_link(&link_to_rotation(name), SHOW_STATE);
            Err(refusal.into())
        }
    }
}

fn refused(visit: &Visit, failure: RotationError) -> PageError {
    match failure {
        RotationError::UseCase(failure) => visit.state.error(failure),
        failure => PageError::new(StatusCode::CONFLICT, failure.to_string()),
    }
}

fn observation(form: &Fields) -> Option<(RotationStage, ObservedVersions)> {
    let stage = stage_of(form.text(STEP))?;
    let id = |name| form.text(name).parse::<Uuid>().ok();
    let versions = ObservedVersions {
        signing: id(SIGNING)?,
        transitional: id(TRANSITIONAL),
    };
    Some((stage, versions))
}

fn stage_of(step: &str) -> Option<RotationStage> {
    let mut stages = RotationStage::ALL.into_iter();
    stages.find(|stage| stage.step().to_string() == step)
}

/// Returns the audit action of the next step, as in the API.
fn action(stage: RotationStage) -> &'static str {
    match stage {
        RotationStage::NotBegun => "REGENERATE_CERTIFICATE",
        RotationStage::Introduced | RotationStage::Renewed => "UPDATE_TRANSITIONAL_VERSION",
        RotationStage::Switched => "BULK_REGENERATE",
    }
}

fn rendered(visit: &Visit, rotation: &Rotation, done: &Markup) -> Response {
    let name = rotation.name.as_str();
    let title = format!("Rotation of {name}");
    let page = visit.page(CERTIFICATES, &title);
    page.render(&html! {
        (done)
        p {
            "A rotation replaces the CA without downtime, in four steps. Its state follows from the stored versions, so "
            "you can stop after each step and continue later, here or with " code { "keywright certificates rotate" } "."
        }
        section aria-labelledby="trust" {
            h2 id="trust" { "Certificates to trust now" }
            p { (texts(rotation.stage).to_distribute) }
            div.actions {
                a.button href=(download::link_to(name, None, Part::Trusted)) { "Download the trust bundle" }
                a.button href=(link_to_certificate(name)) { "Show the certificate" }
            }
        }
        section aria-labelledby="steps" {
            h2 id="steps" { "Steps" }
            ol.steps { @for stage in RotationStage::ALL { (step(visit, rotation, stage)) } }
        }
    })
}

fn step(visit: &Visit, rotation: &Rotation, stage: RotationStage) -> Markup {
    let texts = texts(stage);
    let is_current = stage == rotation.stage;
    let is_taken = stage.step() < rotation.stage.step();
    html! {
        li.taken[is_taken] aria-current=[is_current.then_some("step")] {
            strong { (texts.title) } @if is_taken { " (complete)" }
            @if is_current {
                p { (texts.before) }
                @if !rotation.outstanding.is_empty() { (outstanding(rotation)) }
                form method="post" action=(ROTATION) {
                    (csrf_field(&visit.session))
                    input type="hidden" name=(NAME) value=(rotation.name.as_str());
                    input type="hidden" name=(STEP) value=(stage.step());
                    input type="hidden" name=(SIGNING) value=(rotation.versions.signing);
                    @if let Some(transitional) = rotation.versions.transitional {
                        input type="hidden" name=(TRANSITIONAL) value=(transitional);
                    }
                    button { "Take step " (stage.step()) }
                }
            } @else if !is_taken {
                p.detail { (texts.before) }
            }
        }
    }
}

fn outstanding(rotation: &Rotation) -> Markup {
    let count = rotation.outstanding.len();
    let more = count.saturating_sub(OUTSTANDING_SHOWN_MAX);
    html! {
        details open {
            summary { "Outstanding: " (count) " " @if count == 1 { "credential" } @else { "credentials" } }
            ul {
                @for name in rotation.outstanding.iter().take(OUTSTANDING_SHOWN_MAX) {
                    li { a href=(link_to_credential(name.as_str())) { (name.as_str()) } }
                }
            }
            @if more > 0 { p { "Not shown: " (more) " more." } }
            p.detail { "Credentials below an outstanding CA are not listed, because they are regenerated together with it." }
        }
    }
}

/// The texts about a stage and its next step.
struct Texts {
    title: &'static str,
    /// Describes the step, and what the user must do before it.
    before: &'static str,
    /// Describes what to do after the step.
    after: &'static str,
    /// Describes the certificates that clients must trust.
    to_distribute: &'static str,
}

const fn texts(stage: RotationStage) -> Texts {
    match stage {
        RotationStage::NotBegun => Texts {
            title: "Add a new version that does not sign yet",
            before: "The server generates a new key and certificate for the CA, as a transitional version. It returns them next \
                to the old version, which still signs.",
            after: "Distribute the trust bundle.",
            to_distribute: "No rotation is in progress. The trust bundle contains the certificate that signs.",
        },
        RotationStage::Introduced => Texts {
            title: "Sign with the new version",
            before: "Before this step, distribute the trust bundle to all clients that trust the CA. Continue when all of them \
                trust both versions. After this step, the new version signs, and clients that trust only the old version \
                refuse its certificates.",
            after: "The new version signs.",
            to_distribute: "Distribute the trust bundle now: it contains the certificates of the old and the new version.",
        },
        RotationStage::Switched => Texts {
            title: "Regenerate everything that the old version signed",
            before: "The server regenerates the credentials that the old version signed, and everything below the CAs among \
                them, in one transaction.",
            after: "Deploy the regenerated certificates.",
            to_distribute: TRUST_BOTH,
        },
        RotationStage::Renewed => Texts {
            title: "Stop returning the old version",
            before: "Before this step, deploy the regenerated certificates. Continue when no server or client presents an old \
                certificate any more. Afterwards, the server returns only the new version.",
            after: "The rotation is complete. You can stop trusting the old version.",
            to_distribute: TRUST_BOTH,
        },
    }
}

const TRUST_BOTH: &str =
    "Clients must still trust both versions. The trust bundle contains their certificates.";

const SHOW_STATE: &str = "Show the current state";

/// The maximum number of outstanding credentials on the page.
const OUTSTANDING_SHOWN_MAX: usize = 100;

const STEP: &str = "step";
const SIGNING: &str = "signing";
const TRANSITIONAL: &str = "transitional";
