//! What people are told while an authority is rotated.

use crate::{Error, Rotation, Stage, Step};

/// Where it stands, and what must be so before the next step.
pub(super) fn state(rotation: &Rotation) -> String {
    let name = &rotation.name;
    match rotation.stage {
        Stage::NotBegun => format!("No rotation of {name} is under way."),
        Stage::Introduced => format!(
            "{name} has a new version that does not sign yet. Give the certificates of both versions to everyone that trusts \
             {name}, and go on when all of them have both."
        ),
        Stage::Switched => format!(
            "The new version of {name} signs. The old one signed {} in use: {}.",
            count(rotation.outstanding.len()),
            some(&rotation.outstanding),
        ),
        Stage::Renewed => format!(
            "No certificate in use is left that the old version of {name} signed. Give the regenerated ones to everyone that \
             presents them, and go on when nobody presents an older one."
        ),
    }
}

/// That nothing is left to do.
pub(super) fn end(rotation: &Rotation, is_just_done: bool) -> String {
    let name = &rotation.name;
    if is_just_done {
        format!(
            "The rotation of {name} is at its end. The old version need not be trusted any more."
        )
    } else {
        format!("No rotation of {name} is under way, so there is none to go on with.")
    }
}

/// That the request for a step failed, and that it was taken all the same.
pub(super) fn lost(step: Step, error: &Error) -> String {
    format!(
        "The request for step {} failed ({error}), and the step was taken all the same.",
        step.number()
    )
}

/// That a step was taken, and the rotation does not stand behind it.
pub(super) fn stuck(step: Step, rotation: &Rotation) -> String {
    format!(
        "step {} of 4 was taken, and the rotation does not stand where it leads; someone else may be at it. {} The same \
         command goes on from here.",
        step.number(),
        state(rotation)
    )
}

/// Whether the next step is to be taken.
pub(super) fn question(rotation: &Rotation) -> String {
    let step = rotation.stage.next();
    format!("Step {} of 4: {}?", step.number(), step_of(rotation))
}

fn step_of(rotation: &Rotation) -> String {
    match rotation.stage.next() {
        Step::Introduce => "add a version that is transitional".to_owned(),
        Step::Switch => "let the new version sign".to_owned(),
        Step::Renew => format!("regenerate {}", count(rotation.outstanding.len())),
        Step::Retire => "hand out the old version no more".to_owned(),
    }
}

fn count(certificates: usize) -> String {
    match certificates {
        1 => "1 certificate".to_owned(),
        many => format!("{many} certificates"),
    }
}

/// The first few of some names.
fn some(names: &[String]) -> String {
    let shown = names.iter().take(NAMES_MAX).map(String::as_str);
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if let Some(more @ 1..) = names.len().checked_sub(NAMES_MAX) {
        text = format!("{text} and {more} more");
    }
    text
}

/// How many certificates are told by their names.
const NAMES_MAX: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_names_the_first_ten_are_told() {
        let names: Vec<_> = (0..12).map(|number| format!("/{number}")).collect();
        assert_eq!(some(&names[..2]), "/0, /1");
        assert_eq!(some(&names[..10]), "/0, /1, /2, /3, /4, /5, /6, /7, /8, /9");
        assert_eq!(
            some(&names),
            "/0, /1, /2, /3, /4, /5, /6, /7, /8, /9 and 2 more"
        );
    }
}
