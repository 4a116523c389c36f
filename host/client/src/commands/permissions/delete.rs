//! `keywright permissions delete`.

use clap::Args;

use super::Selection;
use crate::commands::{Completion, Context, Example, Failure, Verb, help};

/// Delete a permission and show it.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub(super) struct Delete {
    #[command(flatten)]
    selection: Selection,
}

impl Verb for Delete {
    async fn run(self, context: &Context) -> Result<Completion, Failure> {
        let client = context.client()?;
        let id = self.selection.id(&client).await?;
        let permission = client.delete_permission(&id).await?;
        context.output.show(&permission)?;
        Ok(Completion::Full)
    }
}

pub(super) const EXAMPLES: &[Example] = &[Example {
    does: "Delete an app's permission on a path",
    line: "keywright permissions delete '/demo/*' --actor uaa-client:deleting",
    before: &["keywright permissions add '/demo/*' --actor uaa-client:deleting --operations read"],
}];
