//! The addresses of the pages and actions.

/// The credentials, and the first page.
pub(crate) const BROWSE: &str = "/console";
/// The overview.
pub(crate) const OVERVIEW: &str = "/console/overview";
/// The page of a credential.
pub(crate) const CREDENTIAL: &str = "/console/credential";
/// The action that reveals a field.
pub(crate) const REVEAL: &str = "/console/credential/reveal";
/// The action that regenerates a credential.
pub(crate) const REGENERATE: &str = "/console/credential/regenerate";
/// The action that deletes a credential.
pub(crate) const DELETE: &str = "/console/credential/delete";
/// The form to generate a credential.
pub(crate) const GENERATE: &str = "/console/generate";
/// The form to set a credential.
pub(crate) const SET: &str = "/console/set";
/// The start of a login.
pub(crate) const LOGIN: &str = "/console/login";
/// The address to which the identity provider redirects.
pub(crate) const CALLBACK: &str = "/console/callback";
/// The action that ends a session.
pub(crate) const LOGOUT: &str = "/console/logout";
/// The page after the end of a session.
pub(crate) const LOGGED_OUT: &str = "/console/logged-out";
/// The style sheet.
pub(crate) const STYLE: &str = "/console/style.css";
/// The script.
pub(crate) const SCRIPT: &str = "/console/script.js";
/// The icon.
pub(crate) const ICON: &str = "/console/icon.svg";

/// Returns a path with a query, which may be empty.
pub(crate) fn link<'a>(path: &str, query: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let query = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(query)
        .finish();
    let separator = if query.is_empty() { "" } else { "?" };
    format!("{path}{separator}{query}")
}

/// Returns the address of a credential's page.
pub(crate) fn link_to_credential(name: &str) -> String {
    link(CREDENTIAL, [(NAME, name)])
}

/// Returns the address of the form to set a credential.
pub(crate) fn link_to_set(name: &str, credential_type: &str) -> String {
    link(SET, [(NAME, name), ("type", credential_type)])
}

/// The query parameter with the name of a credential.
const NAME: &str = "name";
