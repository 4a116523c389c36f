//! The addresses of the pages and actions, and the names of their common query parameters and form fields.

/// The credentials, and the first page.
pub(crate) const BROWSE: &str = "/console";
pub(crate) const OVERVIEW: &str = "/console/overview";
pub(crate) const CREDENTIAL: &str = "/console/credential";
pub(crate) const REVEAL: &str = "/console/credential/reveal";
pub(crate) const REGENERATE: &str = "/console/credential/regenerate";
pub(crate) const DELETE: &str = "/console/credential/delete";
pub(crate) const CERTIFICATES: &str = "/console/certificates";
pub(crate) const CERTIFICATE: &str = "/console/certificate";
/// The public parts of a certificate, as a file.
pub(crate) const DOWNLOAD: &str = "/console/certificate/download";
pub(crate) const ROTATION: &str = "/console/certificate/rotation";
pub(crate) const EXPIRING: &str = "/console/expiring";
pub(crate) const GENERATE: &str = "/console/generate";
pub(crate) const SET: &str = "/console/set";
pub(crate) const PERMISSIONS: &str = "/console/permissions";
pub(crate) const ADD_PERMISSION: &str = "/console/permissions/add";
pub(crate) const EXPLAIN: &str = "/console/permissions/explain";
pub(crate) const PERMISSION: &str = "/console/permission";
pub(crate) const CHANGE_PERMISSION: &str = "/console/permission/change";
pub(crate) const REMOVE_PERMISSION: &str = "/console/permission/remove";
pub(crate) const KEYS_AND_PLUGINS: &str = "/console/keys-and-plugins";
/// All paths without a page.
pub(crate) const UNKNOWN: &str = "/console/{*}";
pub(crate) const LOGIN: &str = "/console/login";
/// The address to which the identity provider redirects.
pub(crate) const CALLBACK: &str = "/console/callback";
/// The action that ends a session.
pub(crate) const LOGOUT: &str = "/console/logout";
/// The page after the end of a session.
pub(crate) const LOGGED_OUT: &str = "/console/logged-out";
pub(crate) const STYLE: &str = "/console/style.css";
pub(crate) const SCRIPT: &str = "/console/script.js";
pub(crate) const ICON: &str = "/console/icon.svg";

/// Returns a path with a query, which may be empty.
pub(crate) fn link<'a>(path: &str, query: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let query = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(query)
        .finish();
    let separator = if query.is_empty() { "" } else { "?" };
    format!("{path}{separator}{query}")
}

pub(crate) fn link_to_credential(name: &str) -> String {
    link(CREDENTIAL, [(NAME, name)])
}

pub(crate) fn link_to_certificate(name: &str) -> String {
    link(CERTIFICATE, [(NAME, name)])
}

pub(crate) fn link_to_rotation(name: &str) -> String {
    link(ROTATION, [(NAME, name)])
}

pub(crate) fn link_to_permissions(path: &str) -> String {
    link(PERMISSIONS, [("path", path)])
}

pub(crate) fn link_to_set(name: &str, credential_type: &str) -> String {
    link(SET, [(NAME, name), (TYPE, credential_type)])
}

/// The parameter with the name of a credential.
pub(crate) const NAME: &str = "name";
/// The parameter with a credential type.
pub(crate) const TYPE: &str = "type";
/// The parameter with the id of a version.
pub(crate) const VERSION: &str = "version";
/// The parameter with the number of a page, from 1.
pub(crate) const PAGE: &str = "page";
/// The parameter with the position at which a page begins.
pub(crate) const FROM: &str = "from";
