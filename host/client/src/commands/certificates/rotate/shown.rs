//! Output of a rotation.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::{
    Rotation, Stage, Step,
    output::{Shown, Table},
};

/// The state of a rotation, and what this run did.
pub(super) struct ShownRotation<'a> {
    pub(super) rotation: &'a Rotation,
    pub(super) taken: &'a [Step],
    pub(super) regenerated: &'a [String],
}

#[derive(Serialize)]
struct Body<'a> {
    name: &'a str,
    stage: Stage,
    /// `None` if no rotation is in progress.
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
            Stage::NotBegun => "none in progress",
            Stage::Introduced => "the new version does not sign yet",
            Stage::Switched => "the new version signs",
            Stage::Renewed => "everything is regenerated",
        };
        let mut fields = vec![
            ("name", rotation.name.clone()),
            ("rotation", stage.to_owned()),
            ("signing version", rotation.signing_version.clone()),
        ];
        if let Some(id) = &rotation.transitional_version {
            fields.push(("transitional version", id.clone()));
        }
        for name in &rotation.outstanding {
            fields.push(("outstanding", name.clone()));
        }
        for name in self.regenerated {
            fields.push(("regenerated", name.clone()));
        }
        if let Some(step) = self.next() {
            fields.push(("next step", format!("{} of 4", step.number())));
        }
        let named = |(name, text): (&str, String)| (name.to_owned(), text);
        Table::Fields(fields.into_iter().map(named).collect())
    }
}
