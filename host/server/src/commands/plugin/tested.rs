//! `keywright plugin tested`, for building a release.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use keywright_runtime::{CandidateFailure, Limits, PluginUnderTest, TestedComponents};
use serde_json::Map;

use crate::{commands::output, components::tested_components, started::StartRefused};

/// Prints the list of components that a release embeds.
#[derive(Debug, Args)]
pub(crate) struct Tested {
    /// Components of generators and resolvers.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

impl Tested {
    pub(super) fn execute(self) -> Result<ExitCode, StartRefused> {
        let known = tested_components();
        let mut tested = TestedComponents::default();
        for file in self.files {
            let refused = |cause| StartRefused::file("loading", &file, cause);
            let candidate = PluginUnderTest::open(file.clone(), Map::new(), Limits::default());
            let candidate = candidate.map_err(refused)?;
            let digest = candidate.digest().to_owned();
            let failed = |cause: CandidateFailure| StartRefused::file("testing", &file, cause);
            if known.contains(&digest) || candidate.is_random().map_err(failed)? {
                tested.insert(digest);
            }
        }
        output::print(&format!("{tested}\n"))?;
        Ok(ExitCode::SUCCESS)
    }
}
