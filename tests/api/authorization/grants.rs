//! The grants of the matrix, and for each grant a caller of each kind.

use keywright_harness::{Caller, Server};

use super::cases::{Case, IT};
use crate::mutual_tls::{Authority, Contents};

/// The operations of a permission, as a set of names.
pub(super) const OPERATIONS: [&str; 5] = ["read", "write", "delete", "read_acl", "write_acl"];

/// A permission in relation to the credential that a request is about.
#[derive(Clone, Debug)]
pub(super) struct Grant {
    pub(super) path: PathOf,
    /// Empty if there is no permission.
    pub(super) operations: Vec<&'static str>,
}

/// The relation of a permission's path to the credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathOf {
    /// It is the credential's name.
    Name,
    /// It encloses the name, this many levels above it.
    Enclosing(usize),
    /// It is the credential's name, and the permission is another actor's.
    AnothersName,
    /// It is the name with another casing.
    OtherCasing,
    /// It would enclose the name in another casing.
    OtherCasingEnclosing,
    /// It is a longer name with the credential's name as a prefix.
    LongerName,
    /// It encloses a folder whose name has the credential's folder as a prefix.
    Sibling,
    /// It is the credential's folder without its contents.
    Folder,
    /// It encloses names below the credential's, as if it were a folder.
    BelowName,
}

/// Paths that resemble the credential's but do not cover it.
const ELSEWHERE: [PathOf; 7] = [
    PathOf::AnothersName,
    PathOf::OtherCasing,
    PathOf::OtherCasingEnclosing,
    PathOf::LongerName,
    PathOf::Sibling,
    PathOf::Folder,
    PathOf::BelowName,
];

/// The number of levels above the names of the matrix.
const LEVELS: usize = 4;

impl Grant {
    /// Every combination: nothing; each operation alone, all, and all but each, on each path that covers the credential;
    /// and all on each path that does not.
    pub(super) fn all() -> Vec<Self> {
        let mut all = vec![Self::none()];
        let mut covering = vec![PathOf::Name];
        covering.extend((1..=LEVELS).map(PathOf::Enclosing));
        for path in covering {
            all.extend(
                sets()
                    .into_iter()
                    .map(|operations| Self { path, operations }),
            );
        }
        all.extend(ELSEWHERE.map(|path| Self {
            path,
            operations: OPERATIONS.to_vec(),
        }));
        all
    }

    /// No permission.
    pub(super) fn none() -> Self {
        Self {
            path: PathOf::Name,
            operations: Vec::new(),
        }
    }

    /// Returns a few grants, enough to detect whether they matter at all.
    pub(super) fn few() -> Vec<Self> {
        let is_one = |grant: &Self| grant.path == PathOf::Name && grant.operations.len() < 2;
        let mut few = Self::all();
        few.retain(|grant| is_one(grant) || grant.path == PathOf::AnothersName);
        few
    }

    /// Whether it permits this operation on the credential.
    pub(super) fn allows(&self, operation: &str) -> bool {
        let is_covering = matches!(self.path, PathOf::Name | PathOf::Enclosing(_));
        is_covering && self.operations.contains(&operation)
    }

    /// The path of the permission in this case.
    fn path(&self, case: &Case) -> String {
        let name = case.path_of(IT);
        let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
        match self.path {
            PathOf::Name | PathOf::AnothersName => name,
            PathOf::Enclosing(levels) => {
                let mut above = name.as_str();
                for _ in 0..levels {
                    above = above.rsplit_once('/').map_or("", |(above, _)| above);
                }
                format!("{above}/*")
            }
            PathOf::OtherCasing => name.to_lowercase(),
            PathOf::OtherCasingEnclosing => format!("{}/*", folder.to_lowercase()),
            PathOf::LongerName => format!("{name}s"),
            PathOf::Sibling => format!("{folder}s/*"),
            PathOf::Folder => folder.to_owned(),
            PathOf::BelowName => format!("{name}/*"),
        }
    }
}

/// Returns each operation alone, all operations, and all but one.
fn sets() -> Vec<Vec<&'static str>> {
    let mut sets = vec![OPERATIONS.to_vec()];
    for operation in OPERATIONS {
        sets.push(vec![operation]);
        let others = OPERATIONS.into_iter().filter(|other| *other != operation);
        sets.push(others.collect());
    }
    sets
}

/// The permissions of all callers in all cases, as sections of the configuration.
pub(super) fn permissions(cases: &[Case], grants: &[Grant]) -> String {
    let everybody: Vec<_> = (0..grants.len()).flat_map(actors).collect();
    let mut text = String::new();
    for case in cases {
        for (at, grant) in grants.iter().enumerate() {
            let whom = match grant.path {
                PathOf::AnothersName => vec!["uaa-client:another".to_owned()],
                _ => actors(at).to_vec(),
            };
            if !grant.operations.is_empty() {
                text += &permission(&grant.path(case), &whom, &grant.operations);
            }
        }
        for (name, operation) in case.given {
            text += &permission(&case.path_of(name), &everybody, &[operation]);
        }
    }
    text
}

/// A permission, as a section of the configuration.
pub(super) fn permission(path: &str, actors: &[String], operations: &[&str]) -> String {
    format!(
        "[[authorization.permissions]]\npath = {path:?}\nactors = {actors:?}\noperations = {operations:?}\n"
    )
}

/// Returns the actors with the grant at this index: a client, a user and an application.
fn actors(at: usize) -> [String; 3] {
    [
        format!("uaa-client:matrix-{at}"),
        format!("uaa-user:matrix-{at}"),
        format!("mtls-app:{}", application_id(at)),
    ]
}

/// Returns the callers with the grant at this index.
pub(super) async fn callers(server: &Server, clients: &Authority, at: usize) -> [Caller; 3] {
    let id = format!("matrix-{at}");
    let application_id = application_id(at);
    let unit = format!("app:{application_id}");
    let holder = clients.issue(&Contents::of_client(&[&[&unit]]));
    [
        server.as_client(&id).await,
        server.as_user(&id).await,
        server.as_application(&application_id, &holder.chain_pem(), &holder.key_pem()),
    ]
}

fn application_id(at: usize) -> String {
    format!("0d8c5e9e-0a0f-4f9d-8b1f-{at:012x}")
}
