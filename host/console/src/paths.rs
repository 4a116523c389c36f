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
/// The CAs.
pub(crate) const CERTIFICATES: &str = "/console/certificates";
/// The page of a certificate.
pub(crate) const CERTIFICATE: &str = "/console/certificate";
/// The public parts of a certificate, as a file.
pub(crate) const DOWNLOAD: &str = "/console/certificate/download";
/// The rotation of a CA.
pub(crate) const ROTATION: &str = "/console/certificate/rotation";
/// The credentials that expire.
pub(crate) const EXPIRING: &str = "/console/expiring";
/// The form to generate a credential.
pub(crate) const GENERATE: &str = "/console/generate";
/// The form to set a credential.
pub(crate) const SET: &str = "/console/set";
/// The permissions on a path.
pub(crate) const PERMISSIONS: &str = "/console/permissions";
/// The form to add a permission.
pub(crate) const ADD_PERMISSION: &str = "/console/permissions/add";
/// The explanation of a decision.
pub(crate) const EXPLAIN: &str = "/console/permissions/explain";
/// The page of a permission.
pub(crate) const PERMISSION: &str = "/console/permission";
/// The action that changes a permission.
pub(crate) const CHANGE_PERMISSION: &str = "/console/permission/change";
/// The action that removes a permission.
pub(crate) const REMOVE_PERMISSION: &str = "/console/permission/remove";
/// The encryption keys, the types and the plugins.
pub(crate) const KEYS_AND_PLUGINS: &str = "/console/keys-and-plugins";
/// All paths without a page.
pub(crate) const UNKNOWN: &str = "/console/{*}";
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

/// Returns the address of a certificate's page.
pub(crate) fn link_to_certificate(name: &str) -> String {
    link(CERTIFICATE, [(NAME, name)])
}

/// Returns the address of the rotation of a CA.
pub(crate) fn link_to_rotation(name: &str) -> String {
    link(ROTATION, [(NAME, name)])
}

/// Returns the address of the permissions on a path.
pub(crate) fn link_to_permissions(path: &str) -> String {
    link(PERMISSIONS, [("path", path)])
}

/// Returns the address of the form to set a credential.
pub(crate) fn link_to_set(name: &str, credential_type: &str) -> String {
    link(SET, [(NAME, name), ("type", credential_type)])
}

/// The query parameter with the name of a credential.
pub(crate) const NAME: &str = "name";
