//! Tests of the API with a real server over HTTPS. Folders are named after nouns, and files after verbs or rules.

mod audit;
mod authentication;
mod authorization;
mod bulk_regenerate;
mod certificate_settings;
mod certificates;
mod commands;
mod description;
mod encryption_keys;
mod external_certificates;
mod given;
mod interpolate;
mod interpolate_in_strings;
mod keys;
mod lifecycle;
mod limits;
mod management;
mod measurements;
mod mutual_tls;
mod names;
mod operations;
mod permissions;
mod retention;
mod rotation;
mod storage;

/// Reading, finding and deleting credentials.
mod credentials {
    mod expiring;
    mod find;
    mod get;
    mod lifetimes;
    mod version;
}

/// Generating a credential: `POST /api/v1/data`.
mod generate {
    /// The type certificate.
    mod certificate {
        mod contents;
        mod keys;
        mod parameters;
    }
    mod converge;
    mod converge_certificate;
    mod keys;
    mod modes;
    mod password_and_user;
    mod requests;
}

/// Behavior common to all requests.
mod http {
    mod access_log;
    mod bodies;
    mod paths;
    mod responses;
    mod routing;
}

/// Regenerating a credential: `POST /api/v1/regenerate`.
mod regenerate {
    mod certificate;
    mod certificate_kept;
    mod requests;
}

/// Requests that clients of CredHub depend on, and exceptions from CredHub's behavior.
mod compatibility {
    mod certificates;
    pub(crate) mod requests;
    mod responses;
    mod scalars;
}

/// Setting a credential: `PUT /api/v1/data`.
mod set {
    /// The type certificate.
    mod certificate {
        mod authority;
        mod fields;
    }
    mod provenance;
    mod requests;
    mod values;
}
