//! How a rotation is shown.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::{
    Rotation, Stage, Step,
    output::{Shown, Table},
};

/// Where a rotation stands, and what was done about it just now.
pub(super) struct ShownRotation<'a> {
    pub(super) rotation: &'a Rotation,
    pub(super) taken: &'a [Step],
    pub(super) regenerated: &'a [String],
}

#[derive(Serialize)]
struct Body<'a> {
    name: &'a str,
    stage: Stage,
    /// None while no rotation is under way.
    next: Option<Step>,
    signing_version: &'a str,
    transitional_version: Option<&'a str>,
    outstanding: &'a [String],
    steps_taken: &'a [Step],
    regenerated_credentials: &'a [String],
}

impl ShownRotation<'_> {
    fn next(&self) -> Option<Step> {
        let stage = self.rotation.stage;
        (stage != Stage::NotBegun).then(|| stage.next())
    }
}

impl Shown for ShownRotation<'_> {
    fn json(&self) -> Result<Box<RawValue>, serde_json::Error> {
        to_raw_value(&Body {
            name: &self.rotation.name,
            stage: self.rotation.stage,
            next: self.next(),
            signing_version: &self.rotation.signing_version,
            transitional_version: self.rotation.transitional_version.as_deref(),
            outstanding: &self.rotation.outstanding,
            steps_taken: self.taken,
            regenerated_credentials: self.regenerated,
        })
    }

    fn table(&self) -> Table {
        let rotation = self.rotation;
        let stage = match rotation.stage {
            Stage::NotBegun => "none is under way",
            Stage::Introduced => "the new version does not sign yet",
            Stage::Switched => "the new version signs",
            Stage::Renewed => "the new version signed everything",
        };
        let mut members = vec![
            ("name", rotation.name.clone()),
            ("rotation", stage.to_owned()),
            ("signing version", rotation.signing_version.clone()),
        ];
        if let Some(id) = &rotation.transitional_version {
            members.push(("transitional version", id.clone()));
        }
        for name in &rotation.outstanding {
            members.push(("still to be regenerated", name.clone()));
        }
        for name in self.regenerated {
            members.push(("regenerated", name.clone()));
        }
        if let Some(step) = self.next() {
            members.push(("next step", format!("{} of 4", step.number())));
        }
        let named = |(name, text): (&str, String)| (name.to_owned(), text);
        Table::Members(members.into_iter().map(named).collect())
    }
}
