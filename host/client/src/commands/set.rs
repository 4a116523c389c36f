//! `keywright set`.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal},
    path::{Path, PathBuf},
};

use clap::{Args, ValueHint};
use zeroize::Zeroizing;

use super::{
    get,
    run::{CommandError, Completion, Context, Run, help},
};
use crate::{
    SecretJson, SetCredential,
    input::{self, metadata, text_of, without_line_end},
};

/// Set a credential to a given value
///
/// By default, the value is read from a prompt on a terminal and from standard input otherwise, so that it appears neither in the
/// shell's history nor in the process list. One trailing newline is removed. Values of the types `value` and `password` are strings.
/// Values of CredHub's other types are JSON objects; options set their fields one by one. For types that plugins add, a JSON object
/// is read as an object, and other text as a string.
#[derive(Debug, Args)]
#[command(after_help = help(EXAMPLES))]
pub struct Set {
    /// Name of the credential.
    name: String,
    /// Type of the credential.
    #[arg(long = "type", short = 't', value_name = "TYPE")]
    credential_type: String,
    /// File to read the value from; `-` for standard input.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = FIELDS)]
    value_file: Option<PathBuf>,
    /// The value. Not for secrets: other users of this machine can see it, and the shell's history keeps it.
    #[arg(long, value_name = "VALUE", conflicts_with = "value_file", conflicts_with_all = FIELDS)]
    value: Option<String>,
    #[command(flatten)]
    fields: Fields,
    /// Metadata to store: a JSON object. Keywright encrypts it, CredHub does not.
    #[arg(long, value_name = "JSON", value_parser = metadata)]
    metadata: Option<SecretJson>,
}

/// The options in [`Fields`]. A conflict with their group would list all of them in the error.
const FIELDS: [&str; 6] = [
    "username",
    "certificate",
    "private_key",
    "public_key",
    "ca",
    "ca_name",
];

/// The fields of a value, one by one.
#[derive(Debug, Args)]
struct Fields {
    /// Name of a user; the password is read from a prompt or standard input.
    #[arg(long, value_name = "NAME")]
    username: Option<String>,
    /// PEM file with a certificate. At most one field can be read from standard input (`-`).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    certificate: Option<PathBuf>,
    /// File with a private key.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    private_key: Option<PathBuf>,
    /// File with a public key.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    public_key: Option<PathBuf>,
    /// PEM file with the certificate of the signing CA.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    ca: Option<PathBuf>,
    /// Name of the stored signing CA, instead of its certificate.
    #[arg(long, value_name = "NAME", conflicts_with = "ca")]
    ca_name: Option<String>,
}

impl Run for Set {
    async fn run(self, context: &Context) -> Result<Completion, CommandError> {
        self.fields
            .refuse_options_of_other_types(&self.credential_type)?;
        self.fields.refuse_two_readers_of_standard_input()?;
        let client = context.client()?;
        let value = match (&self.value, &self.value_file) {
            (Some(value), _) => parse_value(&self.credential_type, value)?,
            (None, Some(file)) => {
                parse_value(&self.credential_type, without_line_end(&text_of(file)?))?
            }
            (None, None) => match self.fields.read().await? {
                Some(value) => value,
                None => prompt_for_value(&self.credential_type).await?,
            },
        };
        let credential = SetCredential {
            name: self.name,
            credential_type: self.credential_type,
            value,
            metadata: self.metadata,
            provenance: None,
        };
        let version = client.set_credential(&credential).await?;
        get::show(context, &version)
    }
}

impl Fields {
    fn files(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let files = [
            ("ca", &self.ca),
            ("certificate", &self.certificate),
            ("private_key", &self.private_key),
            ("public_key", &self.public_key),
        ];
        files
            .into_iter()
            .filter_map(|(name, file)| Some((name, file.as_deref()?)))
    }

    /// Refuses fields that values of a type do not have.
    fn refuse_options_of_other_types(&self, credential_type: &str) -> Result<(), CommandError> {
        let allowed: &[&str] = match credential_type.to_ascii_lowercase().as_str() {
            "password" | "value" => &[],
            "certificate" => &["ca", "ca_name", "certificate", "private_key"],
            "rsa" | "ssh" => &["private_key", "public_key"],
            "user" => &["username"],
            _ => return Ok(()),
        };
        let ca_name = self.ca_name.as_ref().map(|_| "ca_name");
        let username = self.username.as_ref().map(|_| "username");
        let given = self.files().map(|(name, _)| name);
        let mut given = given.chain(ca_name).chain(username);
        match given.find(|name| !allowed.contains(name)) {
            None => Ok(()),
            Some(name) => Err(CommandError::Usage(format!(
                "--{} is not an option for credentials of type {credential_type}",
                name.replace('_', "-")
            ))),
        }
    }

    /// Refuses two fields from standard input, because the second would be empty.
    fn refuse_two_readers_of_standard_input(&self) -> Result<(), CommandError> {
        let files = self.files().filter(|(_, file)| *file == Path::new("-"));
        let files = files.map(|(name, _)| format!("--{}", name.replace('_', "-")));
        let password = self.username.as_ref();
        let password = password.map(|_| "the password for --username".to_owned());
        let readers: Vec<_> = files.chain(password).collect();
        if readers.len() < 2 {
            return Ok(());
        }
        Err(CommandError::Usage(format!(
            "standard input can provide only one of {}",
            readers.join(" and ")
        )))
    }

    /// Reads the value from the given fields. `None` if no field is given.
    async fn read(&self) -> Result<Option<SecretJson>, CommandError> {
        let mut fields: Vec<(&str, Zeroizing<String>)> = Vec::new();
        for (name, file) in self.files() {
            fields.push((name, text_of(file)?));
        }
        if let Some(name) = &self.ca_name {
            fields.push(("ca_name", Zeroizing::new(name.clone())));
        }
        if let Some(username) = &self.username {
            let password = input::secret_of_input("Password").await?;
            fields.push(("username", Zeroizing::new(username.clone())));
            fields.push(("password", Zeroizing::new(password.expose().to_owned())));
        }
        if fields.is_empty() {
            return Ok(None);
        }
        let fields: BTreeMap<&str, &str> = fields
            .iter()
            .map(|(name, text)| (*name, text.as_str()))
            .collect();
        Ok(Some(SecretJson::of(&fields)?))
    }
}

async fn prompt_for_value(credential_type: &str) -> Result<SecretJson, CommandError> {
    let is_user = credential_type.eq_ignore_ascii_case("user");
    if is_user && io::stdin().is_terminal() {
        let username = input::line("Username").await?;
        let password = input::secret_of_input("Password").await?;
        let fields = BTreeMap::from([
            ("username", username.as_str()),
            ("password", password.expose()),
        ]);
        return Ok(SecretJson::of(&fields)?);
    }
    let text = input::secret_of_input("Value").await;
    let text = text.map_err(|failed| CommandError::Other(format!("{failed}; {VALUE_OPTIONS}")))?;
    parse_value(credential_type, text.expose())
}

/// Parses a value: a string for `value` and `password`, JSON for the other types of the API. For types of plugins, a JSON object
/// is parsed and everything else is a string.
fn parse_value(credential_type: &str, text: &str) -> Result<SecretJson, CommandError> {
    let credential_type = credential_type.to_ascii_lowercase();
    if TYPES_OF_TEXT.contains(&credential_type.as_str()) {
        return Ok(SecretJson::of(text)?);
    }
    match keywright_json::read::<SecretJson>(text) {
        Ok(value) if value.fields().is_some() => Ok(value),
        other if TYPES_OF_OBJECTS.contains(&credential_type.as_str()) => {
            let cause = other.err().map(|cause| format!(": {cause}"));
            Err(CommandError::Usage(format!(
                "the value of a credential of type {credential_type} must be a JSON object{}",
                cause.unwrap_or_default()
            )))
        }
        _ => Ok(SecretJson::of(text)?),
    }
}

const VALUE_OPTIONS: &str =
    "use --value, --value-file, or options for single fields such as --private-key";

const TYPES_OF_TEXT: [&str; 2] = ["password", "value"];

const TYPES_OF_OBJECTS: [&str; 5] = ["certificate", "json", "rsa", "ssh", "user"];

pub(super) const EXAMPLES: &str = r#"# Store a password from a pipe
openssl rand -base64 24 | keywright set /demo/token --type password
# Store a JSON object
keywright set /demo/database --type json --value '{"host": "db.example", "port": 5432}'
# Store a user with a password from a file
$ printf secret >password.txt
keywright set /demo/admin --type user --username admin <password.txt
# Store a key pair
$ printf public >deploy.pub
$ printf private >deploy
keywright set /demo/deploy --type ssh --public-key deploy.pub --private-key deploy"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_decides_how_a_value_is_parsed() {
        let cases = [
            ("password", r#"{"a":1}"#, Some(r#""{\"a\":1}""#)),
            ("VALUE", "x", Some(r#""x""#)),
            ("json", r#"{"a":1.10}"#, Some(r#"{"a":1.10}"#)),
            ("json", "[1]", None),
            ("user", "secret", None),
            (
                "wireguard",
                r#"{"private_key":"x"}"#,
                Some(r#"{"private_key":"x"}"#),
            ),
            ("pin", "1234", Some(r#""1234""#)),
        ];
        for (credential_type, text, expected) in cases {
            let value = parse_value(credential_type, text).ok();
            let value = value.as_ref().map(SecretJson::expose);
            assert_eq!(value, expected, "{credential_type} {text}");
        }
    }
}
