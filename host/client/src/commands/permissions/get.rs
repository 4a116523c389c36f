//! `keywright permissions get`.

use clap::Args;

use super::Selection;
use crate::commands::{Completion, Context, Example, Failure, Verb, help};

/// Show a permission.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub(super) struct Get {
    #[command(flatten)]
    selection: Selection,
}

impl Verb for Get {
    async fn run(self, context: &Context) -> Result<Completion, Failure> {
        let client = context.client()?;
        let permission = self.selection.permission(&client).await?;
        context.output.show(&permission)?;
        Ok(Completion::Full)
    }
}

pub(super) const EXAMPLES: &[Example] = &[Example {
    does: "Show an app's permission on a path",
    line: "keywright permissions get '/demo/*' --actor uaa-client:getting",
    before: &["keywright permissions add '/demo/*' --actor uaa-client:getting --operations read"],
}];
