//! The cases of the matrix: the required permission, the initial state, and the request.

use reqwest::Method;
use serde_json::Value;

use super::world::Fixture::{self, Authority, Json, Nested, Password, Permission, Signed, Text};

/// The credential or permission that a case accesses. The case requires a permission on its name. Credentials with other names
/// are outside its folder.
pub(super) const RESOURCE: &str = "It";

/// A request, the permission it requires, and its result.
#[derive(Clone, Copy)]
pub(super) struct Case {
    /// The name of the case, which is also part of its credentials' names.
    pub(super) name: &'static str,
    /// The operation that the caller needs on [`RESOURCE`]; `None` if authentication is enough.
    pub(super) needs: Option<&'static str>,
    /// Additional permissions of every caller.
    pub(super) given: &'static [(&'static str, &'static str)],
    /// The initial state.
    pub(super) fixtures: &'static [(&'static str, Fixture)],
    /// The preparation of each permitted request.
    pub(super) before: Before,
    /// The method, the target and the body of the request. `World::request` replaces the texts in braces.
    pub(super) request: &'static str,
    /// The response status for a permitted caller.
    pub(super) status: u16,
    /// The result for a caller without permission.
    pub(super) refusal: Refusal,
}

/// The preparation of a permitted request, so that each has the same effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    Nothing,
    /// [`RESOURCE`] is created again.
    Recreated,
    /// [`RESOURCE`] is deleted.
    Deleted,
    /// [`RESOURCE`] gets another version.
    Regenerated,
}

/// The result for a caller who lacks a permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Refusal {
    /// 403.
    Forbidden,
    /// 404, as if the credential did not exist.
    NotFound,
    /// 404, as if the permission did not exist.
    PermissionNotFound,
    /// 404, whether or not the permission exists.
    PermissionNotAddable,
    /// 404, whether or not the path has permissions.
    PermissionsNotReadable,
    /// 404, as if the CA did not exist.
    AuthorityNotFound,
    /// A list without [`RESOURCE`].
    Hidden,
}

/// The request to send.
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) target: String,
    pub(super) body: Value,
}

impl Case {
    /// Returns the name of a credential of this case.
    pub(super) fn path_of(&self, name: &str) -> String {
        if name == RESOURCE {
            format!("/Matrix/{}/Folder/{RESOURCE}", self.name)
        } else {
            format!("/Apart/{}/{name}", self.name)
        }
    }
}

/// Default values for the fields of a case.
const USUAL: Case = Case {
    name: "",
    needs: Some("read"),
    given: &[],
    fixtures: &[(RESOURCE, Text)],
    before: Before::Nothing,
    request: "",
    status: 200,
    refusal: Refusal::NotFound,
};

/// Default values for cases that need permission to write.
const WRITE: Case = Case {
    needs: Some("write"),
    refusal: Refusal::Forbidden,
    ..USUAL
};

/// Returns cases for every endpoint and each permission that it needs.
pub(super) fn all() -> Vec<Case> {
    let mut all = of_any_type();
    all.extend(of_authorities());
    all.extend(of_certificates());
    all.extend(of_permissions());
    all
}

/// Returns a case for each row of each group. A row has the name and the request. The group has the other fields.
fn cases(groups: &[(Case, &'static str)]) -> Vec<Case> {
    let rows = groups.iter().flat_map(|(group, rows)| {
        let rows = rows.trim().lines().map(str::trim);
        rows.map(move |row| (group, row.split_once(": ").unwrap()))
    });
    let cases = rows.map(|(group, (name, request))| Case {
        name,
        request,
        ..*group
    });
    cases.collect()
}

fn of_any_type() -> Vec<Case> {
    let write = Case {
        fixtures: &[(RESOURCE, Password)],
        ..WRITE
    };
    let searches = Case {
        refusal: Refusal::Hidden,
        ..USUAL
    };
    let groups = [
        (USUAL, READS),
        (
            Case {
                given: &[("first", "read")],
                fixtures: &[("first", Json), (RESOURCE, Json)],
                ..USUAL
            },
            r#"interpolate: POST /api/v1/interpolate {"VCAP": [{"credentials": {"credhub-ref": "{first}"}}, {"credentials": {"credhub-ref": "{It}"}}]}"#,
        ),
        (
            Case {
                needs: None,
                ..USUAL
            },
            OPEN,
        ),
        (searches, SEARCHES),
        (
            Case {
                fixtures: &[(RESOURCE, Authority)],
                ..searches
            },
            SEARCHES_FOR_CERTIFICATES,
        ),
        (write, WRITES),
        (
            Case {
                fixtures: &[],
                before: Before::Deleted,
                ..write
            },
            NEW,
        ),
        (
            Case {
                needs: Some("delete"),
                before: Before::Recreated,
                status: 204,
                ..USUAL
            },
            "delete: DELETE /api/v1/data?name={It}",
        ),
    ];
    cases(&groups)
}

const READS: &str = "
    get-by-name: GET /api/v1/data?name={It}
    get-current: GET /api/v1/data?name={It}&current=true
    get-versions: GET /api/v1/data?name={It}&versions=1
    get-by-id: GET /api/v1/data/{version of It}
";

const OPEN: &str = "
    key-usage: GET /api/v1/key-usage
    types: GET /api/v1/types
    version: GET /version
";

const SEARCHES: &str = "
    find-by-path: GET /api/v1/data?path={folder}
    find-by-name-like: GET /api/v1/data?name-like={FOLDER}
";

const SEARCHES_FOR_CERTIFICATES: &str = "
    find-expiring: GET /api/v1/data?path={folder}&expires-within-days=3650
    find-effective: GET /api/v1/data?path={folder}&expires-within-days=3650&effective=true
    certificates: GET /api/v1/certificates
    certificates-of-all-types: GET /api/v1/certificates?all_types=true
";

const WRITES: &str = r#"
    set: PUT /api/v1/data {"name": "{It}", "type": "password", "value": "p"}
    converge: POST /api/v1/data {"name": "{It}", "type": "password", "mode": "converge"}
    no-overwrite: POST /api/v1/data {"name": "{It}", "type": "password", "mode": "no-overwrite"}
    overwrite: POST /api/v1/data {"name": "{It}", "type": "password", "mode": "overwrite"}
    regenerate: POST /api/v1/regenerate {"name": "{It}"}
    regenerate-through-data: POST /api/v1/data {"name": "{It}", "regenerate": true}
"#;

const NEW: &str = r#"
    set-new: PUT /api/v1/data {"name": "{It}", "type": "value", "value": "v"}
    generate-new: POST /api/v1/data {"name": "{It}", "type": "password", "mode": "converge"}
"#;

/// Returns cases that name a CA, or whose certificate a CA has signed.
fn of_authorities() -> Vec<Case> {
    let write = Case {
        given: &[("ca", "read")],
        fixtures: &[("ca", Authority), (RESOURCE, Signed("ca"))],
        ..WRITE
    };
    let read = Case {
        given: &[("leaf", "write")],
        fixtures: &[(RESOURCE, Authority), ("leaf", Signed(RESOURCE))],
        ..USUAL
    };
    let by_intermediate = Case {
        given: &[("ca", "read"), (RESOURCE, "write"), ("leaf", "write")],
        fixtures: &[
            ("ca", Authority),
            (RESOURCE, Nested("ca")),
            ("leaf", Signed(RESOURCE)),
        ],
        ..USUAL
    };
    let groups = [
        (write, SIGNED),
        (
            Case {
                refusal: Refusal::AuthorityNotFound,
                ..read
            },
            SIGNED_BY,
        ),
        (read, REGENERATED),
        (
            by_intermediate,
            r#"bulk-regenerate-read-intermediate: POST /api/v1/bulk-regenerate {"signed_by": "{ca}"}"#,
        ),
        (
            Case {
                given: &[("ca", "read"), (RESOURCE, "read"), ("leaf", "write")],
                fixtures: by_intermediate.fixtures,
                ..WRITE
            },
            r#"bulk-regenerate-write-intermediate: POST /api/v1/bulk-regenerate {"signed_by": "{ca}"}"#,
        ),
        (
            Case {
                given: &[("ca", "read"), ("leaf", "write")],
                fixtures: &[
                    ("ca", Authority),
                    ("leaf", Signed("ca")),
                    (RESOURCE, Signed("ca")),
                ],
                ..WRITE
            },
            r#"bulk-regenerate-write-leaf: POST /api/v1/bulk-regenerate {"signed_by": "{ca}"}"#,
        ),
    ];
    cases(&groups)
}

const SIGNED: &str = r#"
    sign: POST /api/v1/data {"name": "{It}", "type": "certificate", "mode": "overwrite", "parameters": {"common_name": "changed", "key_type": "ecdsa-p256", "ca": "{ca}"}}
    set-signed: PUT /api/v1/data {"name": "{It}", "type": "certificate", "value": {"certificate": {certificate of It}, "ca_name": "{ca}"}}
"#;

const SIGNED_BY: &str = r#"
    sign-with: POST /api/v1/data {"name": "{leaf}", "type": "certificate", "mode": "overwrite", "parameters": {"common_name": "changed", "key_type": "ecdsa-p256", "ca": "{It}"}}
    set-signed-by: PUT /api/v1/data {"name": "{leaf}", "type": "certificate", "value": {"certificate": {certificate of leaf}, "ca_name": "{It}"}}
    add-version-signed-by: POST /api/v1/certificates/{id of leaf}/versions {"value": {"certificate": {certificate of leaf}, "ca_name": "{It}"}}
"#;

const REGENERATED: &str = r#"
    regenerate-signed-by: POST /api/v1/regenerate {"name": "{leaf}"}
    regenerate-signed-by-through-data: POST /api/v1/data {"name": "{leaf}", "regenerate": true}
    bulk-regenerate-ca: POST /api/v1/bulk-regenerate {"signed_by": "{It}"}
"#;

/// In these cases, no caller has read permission on the CA.
fn of_certificates() -> Vec<Case> {
    let fixtures = &[("ca", Authority), (RESOURCE, Signed("ca"))];
    let groups = [
        (
            Case { fixtures, ..USUAL },
            "certificate: GET /api/v1/certificates?name={It}
             certificate-versions: GET /api/v1/certificates/{id of It}/versions",
        ),
        (Case { fixtures, ..WRITE }, CERTIFICATE_WRITES),
        (
            Case {
                needs: Some("delete"),
                before: Before::Regenerated,
                fixtures: &[(RESOURCE, Authority)],
                ..USUAL
            },
            "certificate-delete-version: DELETE /api/v1/certificates/{id of It}/versions/{version of It}",
        ),
    ];
    cases(&groups)
}

const CERTIFICATE_WRITES: &str = r#"
    certificate-regenerate: POST /api/v1/certificates/{id of It}/regenerate {}
    certificate-transitional: PUT /api/v1/certificates/{id of It}/update_transitional_version {"version": null}
    certificate-add-version: POST /api/v1/certificates/{id of It}/versions {"value": {"certificate": {certificate of It}}}
"#;

/// Returns cases about another actor's permission on the credential's name.
fn of_permissions() -> Vec<Case> {
    let read = Case {
        needs: Some("read_acl"),
        fixtures: &[(RESOURCE, Permission)],
        refusal: Refusal::PermissionNotFound,
        ..USUAL
    };
    let write = Case {
        needs: Some("write_acl"),
        ..read
    };
    let delete = Case {
        before: Before::Recreated,
        ..write
    };
    let groups = [
        (
            read,
            "permission: GET /api/v2/permissions?path={It}&actor={someone}
             permission-by-id: GET /api/v2/permissions/{version of It}",
        ),
        (
            Case {
                refusal: Refusal::PermissionsNotReadable,
                ..read
            },
            "permission-explain: GET /api/v2/permissions/explain?path={It}&actor={someone}&operation=read",
        ),
        (
            Case {
                fixtures: &[(RESOURCE, Text)],
                refusal: Refusal::NotFound,
                ..read
            },
            "permissions-of-credential: GET /api/v1/permissions?credential_name={It}",
        ),
        (
            Case {
                status: 201,
                refusal: Refusal::PermissionNotAddable,
                ..write
            },
            PERMISSION_ADDITIONS,
        ),
        (write, PERMISSION_CHANGES),
        (
            delete,
            "permission-delete: DELETE /api/v2/permissions/{version of It}",
        ),
        (
            Case {
                status: 204,
                ..delete
            },
            "permission-delete-of-credential: DELETE /api/v1/permissions?credential_name={It}&actor={someone}",
        ),
    ];
    cases(&groups)
}

const PERMISSION_ADDITIONS: &str = r#"
    permission-add: POST /api/v2/permissions {"path": "{It}", "actor": "{new actor}", "operations": ["read"]}
    permission-add-to-credential: POST /api/v1/permissions {"credential_name": "{It}", "permissions": [{"path": "{It}", "actor": "{new actor}", "operations": ["read"]}]}
"#;

const PERMISSION_CHANGES: &str = r#"
    permission-replace: PUT /api/v2/permissions/{version of It} {"path": "{It}", "actor": "{someone}", "operations": ["read"]}
    permission-amend: PATCH /api/v2/permissions/{version of It} {"operations": ["write"]}
"#;
