//! `keywright permissions delete`.

use clap::Args;

use super::Selection;
use crate::commands::{Context, Example, Failure, Outcome, Verb, help};

/// Take a permission away, and show what it was.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub(super) struct Delete {
    #[command(flatten)]
    selection: Selection,
}

impl Verb for Delete {
    async fn run(self, context: &Context) -> Result<Outcome, Failure> {
        let client = context.client()?;
        let id = self.selection.id(&client).await?;
        let permission = client.delete_permission(&id).await?;
        context.output.show(&permission)?;
        Ok(Outcome::Done)
    }
}

/// What help shows.
pub(super) const EXAMPLES: &[Example] = &[Example {
    does: "Take away what an app may do below a path",
    line: "keywright permissions delete '/demo/*' --actor uaa-client:deleting",
    before: &["keywright permissions add '/demo/*' --actor uaa-client:deleting --operations read"],
}];
