//! Messages during a rotation.

use crate::{Error, Rotation, Stage, Step};

/// Describes the state of a rotation and the requirements of the next step.
pub(super) fn state(rotation: &Rotation) -> String {
    let name = &rotation.name;
    match rotation.stage {
        Stage::NotBegun => format!("No rotation of {name} is in progress."),
        Stage::Introduced => format!(
            "{name} has a new version that does not sign yet. Distribute the certificates of both versions to all clients that \
             trust {name}. Continue when all of them trust both."
        ),
        Stage::Switched => format!(
            "The new version of {name} signs. The old version signed {} in use: {}.",
            count(rotation.outstanding.len()),
            list_names(&rotation.outstanding),
        ),
        Stage::Renewed => format!(
            "No certificate in use is signed by the old version of {name}. Deploy the regenerated certificates. Continue when no \
             server or client presents an old certificate any more."
        ),
    }
}

/// Reports that no step is left.
pub(super) fn end(rotation: &Rotation, has_completed: bool) -> String {
    let name = &rotation.name;
    if has_completed {
        format!("The rotation of {name} is complete. You can stop trusting the old version.")
    } else {
        format!("No rotation of {name} is in progress, so there is nothing to resume.")
    }
}

/// Reports that the request for a step failed, although the step was taken.
pub(super) fn taken_despite_error(step: Step, error: &Error) -> String {
    format!(
        "The request for step {} failed ({error}), but the server completed the step.",
        step.number()
    )
}

/// Reports that a step succeeded without the expected change of state.
pub(super) fn unexpected_state(step: Step, rotation: &Rotation) -> String {
    format!(
        "step {} of 4 succeeded, but the rotation is in another state; another client may be rotating the CA. {} Run the same \
         command to continue.",
        step.number(),
        state(rotation)
    )
}

/// Returns the question whether to take the next step.
pub(super) fn question(rotation: &Rotation) -> String {
    let step = rotation.stage.next();
    format!("Step {} of 4: {}?", step.number(), step_of(rotation))
}

fn step_of(rotation: &Rotation) -> String {
    match rotation.stage.next() {
        Step::Introduce => "add a transitional version".to_owned(),
        Step::Switch => "sign with the new version".to_owned(),
        Step::Renew => format!("regenerate {}", count(rotation.outstanding.len())),
        Step::Retire => "stop returning the old version".to_owned(),
    }
}

fn count(certificates: usize) -> String {
    match certificates {
        1 => "1 certificate".to_owned(),
        many => format!("{many} certificates"),
    }
}

/// Lists the first [`NAMES_MAX`] names, and counts the others.
fn list_names(names: &[String]) -> String {
    let shown = names.iter().take(NAMES_MAX).map(String::as_str);
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if let Some(more @ 1..) = names.len().checked_sub(NAMES_MAX) {
        text = format!("{text} and {more} more");
    }
    text
}

/// The maximum number of listed names.
const NAMES_MAX: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_ten_names_are_listed() {
        let names: Vec<_> = (0..12).map(|number| format!("/{number}")).collect();
        assert_eq!(list_names(&names[..2]), "/0, /1");
        assert_eq!(
            list_names(&names[..10]),
            "/0, /1, /2, /3, /4, /5, /6, /7, /8, /9"
        );
        assert_eq!(
            list_names(&names),
            "/0, /1, /2, /3, /4, /5, /6, /7, /8, /9 and 2 more"
        );
    }
}
