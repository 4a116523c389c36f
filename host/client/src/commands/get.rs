//! `keywright get`.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal},
    num::NonZeroU32,
    path::PathBuf,
};

use clap::{ArgGroup, Args, ValueHint};
use zeroize::Zeroizing;

use super::run::{CommandError, Completion, Context, Run, help};
use crate::{
    CredentialVersion, SecretJson, input,
    new_file::{Readers, write_whole},
    output::{self, Table, field, printable},
};

/// Read a credential.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
#[command(group = ArgGroup::new("selection").required(true).args(["name", "id"]))]
pub struct Get {
    /// Name of the credential.
    #[arg(value_parser = input::name)]
    name: Option<String>,
    /// Id of the version to read.
    #[arg(long, value_parser = id)]
    id: Option<String>,
    /// Number of versions to read, newest first, instead of the active one. Without a count: all.
    #[arg(long, value_name = "COUNT", num_args = 0..=1, default_missing_value = ALL, conflicts_with = "id", value_parser = count)]
    versions: Option<Count>,
    /// Also print the plugin and the parameters that generated the value, the versions from which it was derived, and whether plugin
    /// and parameters were imported.
    #[arg(long, conflicts_with_all = ["id", "versions"])]
    provenance: bool,
    /// Field of the value to print, such as `private_key`.
    #[arg(long, short, value_name = "NAME", conflicts_with = "versions")]
    member: Option<String>,
    /// Print only the value: a string as is, anything else as JSON.
    #[arg(long, conflicts_with_all = ["versions", "member"])]
    raw: bool,
    /// File to write, with mode 0600, instead of standard output. Contains only the value or the field, as with `--raw`.
    #[arg(long, short, value_name = "FILE", conflicts_with = "versions", value_hint = ValueHint::FilePath)]
    file: Option<PathBuf>,
}

impl Run for Get {
    async fn run(self, context: &Context) -> Result<Completion, CommandError> {
        let client = context.client()?;
        let name = self.name.unwrap_or_default();
        if let Some(count) = self.versions {
            let versions = client.versions(&name, count.0.map(NonZeroU32::get)).await?;
            let shown: Vec<_> = versions.iter().map(|one| one.whole.exposed()).collect();
            let shown = BTreeMap::from([("data", shown)]);
            return context.show(&shown, || versions_table(&versions));
        }
        let version = match &self.id {
            Some(id) => client.version_by_id(id).await?,
            None if self.provenance => client.current_version_with_provenance(&name).await?,
            None => client.current_version(&name).await?,
        };
        let bare = match &self.member {
            Some(member) => Some(field_of(&version.value, member)?),
            None if self.raw || self.file.is_some() => Some(version.value.clone()),
            None => None,
        };
        match (bare, &self.file) {
            (Some(bare), Some(file)) => {
                write_whole(file, bare.plain().as_bytes(), Readers::Owner)?;
            }
            (Some(bare), None) => output::write_raw(for_output(&bare).as_bytes())?,
            (None, _) => return show(context, &version),
        }
        Ok(Completion::Full)
    }
}

fn field_of(value: &SecretJson, name: &str) -> Result<SecretJson, CommandError> {
    value.field(name).ok_or_else(|| {
        CommandError::NotFound(match value.fields() {
            Some(_) => format!("the value has no field {name}; omit --member to see its fields"),
            None => format!("the value is not a JSON object, so it has no field {name}; use --raw"),
        })
    })
}

/// Parses the id of a version. Only rejects an empty one; the server checks the rest.
fn id(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("must not be empty".to_owned());
    }
    Ok(text.to_owned())
}

/// The number of versions to read; `None` for all.
#[derive(Clone, Copy, Debug)]
struct Count(Option<NonZeroU32>);

fn count(text: &str) -> Result<Count, String> {
    if text == ALL {
        return Ok(Count(None));
    }
    let number = text.parse::<NonZeroU32>();
    let number = number.map_err(|_| format!("must be a positive number or `{ALL}`"))?;
    Ok(Count(Some(number)))
}

/// Returns the text for standard output. On a terminal, control and invisible characters are escaped, and the text ends with a
/// newline, so that the prompt starts on a line of its own.
fn for_output(value: &SecretJson) -> Zeroizing<String> {
    let text = value.plain();
    if !io::stdout().is_terminal() {
        return text;
    }
    let mut text = Zeroizing::new(printable(&text).into_owned());
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Shows one version, with its value.
pub(super) fn show(
    context: &Context,
    version: &CredentialVersion,
) -> Result<Completion, CommandError> {
    context.show(&version.whole.exposed(), || Table::Fields(fields(version)))
}

fn versions_table(versions: &[CredentialVersion]) -> Table {
    let row = |version: &CredentialVersion| {
        vec![
            version.id.clone(),
            version.version_created_at.clone(),
            version.expiry_date.clone().unwrap_or_default(),
            version.value.plain().to_string(),
        ]
    };
    Table::Rows {
        heads: vec!["ID", "CREATED", "EXPIRES", "VALUE"],
        rows: versions.iter().map(row).collect(),
    }
}

fn fields(version: &CredentialVersion) -> Vec<(String, String)> {
    let mut fields = vec![
        field("name", &version.name),
        field("type", &version.credential_type),
        field("id", &version.id),
        field("created", &version.version_created_at),
    ];
    let dates = [
        ("expires", &version.expiry_date),
        ("rotate", &version.rotation_date),
    ];
    for (name, date) in dates {
        fields.extend(date.as_ref().map(|date| field(name, date)));
    }
    let yes_or_no = |fact| if fact { "yes" } else { "no" };
    let facts = [
        ("transitional", version.transitional),
        ("certificate authority", version.certificate_authority),
        ("self-signed", version.self_signed),
        ("generated", version.generated),
    ];
    for (name, fact) in facts {
        fields.extend(fact.map(|fact| field(name, yes_or_no(fact))));
    }
    if let (Some(digest), Some(parameters)) = (&version.generated_by, &version.parameters) {
        let is_imported = version.imported == Some(true);
        fields.push(field("generated by", digest));
        fields.push(field("parameters", parameters.expose()));
        for input in &version.derived_from {
            let shown = format!("{} {}", input.name, input.version_id);
            fields.push(field("derived from", shown));
        }
        fields.push(field("imported", yes_or_no(is_imported)));
    }
    if let Some(metadata) = &version.metadata {
        fields.push(field("metadata", metadata.expose()));
    }
    match version.value.fields() {
        // The keys of a json value are arbitrary and could collide with the fields above.
        Some(parts) if version.credential_type != "json" => {
            let parts = parts.iter();
            fields.extend(parts.map(|(name, part)| field(name, part.plain().as_str())));
        }
        _ => fields.push(field("value", version.value.plain().as_str())),
    }
    fields
}

const ALL: &str = "all";

pub(super) const EXAMPLES: &str = r#"# Read the active version
keywright get /demo/password
# Assign the value to a variable
PASSWORD=$(keywright get /demo/password --raw)
# Write one field of the value to a file of mode 0600
keywright get /demo/user --member password --file password.txt
# Read the two latest versions
keywright get /demo/password --versions 2 --output yaml
# Read all versions
keywright get /demo/password --versions
# Read the value with an access token from a file
$ keywright login
$ sed -n 's/.*"access_token": "\(.*\)".*/\1/p' .config/keywright/session.json >token
$ test -s token && keywright logout
keywright get /demo/password --raw --token-file token"#;
