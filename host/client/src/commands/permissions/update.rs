//! `keywright permissions update`.

use clap::Args;

use super::{Operations, Selection};
use crate::commands::{Completion, Context, Example, Failure, Verb, help};

/// Replace the operations of a permission.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub(super) struct Update {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    operations: Operations,
}

impl Verb for Update {
    async fn run(self, context: &Context) -> Result<Completion, Failure> {
        let client = context.client()?;
        let id = self.selection.id(&client).await?;
        let operations = &self.operations.operations;
        let permission = client.amend_permission(&id, operations).await?;
        context.output.show(&permission)?;
        Ok(Completion::Full)
    }
}

pub(super) const EXAMPLES: &[Example] = &[Example {
    does: "Let an app read and write everything below a path",
    line: "keywright permissions update '/demo/*' --actor uaa-client:updating --operations read,write",
    before: &["keywright permissions add '/demo/*' --actor uaa-client:updating --operations read"],
}];
