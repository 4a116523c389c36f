//! The use cases, each with the ports that it needs.

use std::sync::Arc;

use crate::{
    authorization::Authorization,
    certificate::CertificateSettings,
    credential::{
        BulkRegenerateCredentials, CaRotation, CertificateCredentials, CredentialTypes,
        GenerateCredentials, ReadCredentials, RegenerateCredentials, SetCredentials, VersionStore,
        bulk_slots::BulkSlots, child_versions::ChildVersions, draft::Generation,
    },
    ports::{Certificates, Generators, PermittedReads},
};

/// The use cases for credentials.
pub struct Credentials {
    /// The stored versions.
    pub store: VersionStore,
    /// The credential types.
    pub types: CredentialTypes,
    /// Reads, finds and deletes credentials.
    pub read: ReadCredentials,
    /// Sets credentials.
    pub set: SetCredentials,
    /// Generates credentials.
    pub generate: GenerateCredentials,
    /// Regenerates credentials.
    pub regenerate: RegenerateCredentials,
    /// Regenerates many credentials.
    pub bulk_regenerate: BulkRegenerateCredentials,
    /// Lists certificates and reads their versions.
    pub certificates: CertificateCredentials,
    /// Changes single versions of certificates.
    pub rotation: CaRotation,
}

/// The dependencies of the use cases.
pub struct CredentialPorts {
    /// Decides which operations callers may perform.
    pub authorization: Authorization,
    /// The stored versions.
    pub store: VersionStore,
    /// Reads credentials together with the permissions on them.
    pub reads: Arc<dyn PermittedReads>,
    /// The generators.
    pub generators: Arc<dyn Generators>,
    /// Parses certificates and opens issuers.
    pub certificates: Arc<dyn Certificates>,
    /// The settings for all generated certificates.
    pub certificate_settings: CertificateSettings,
}

impl Credentials {
    /// Connects the use cases to their ports.
    #[must_use]
    pub fn new(ports: CredentialPorts) -> Self {
        let CredentialPorts {
            authorization,
            store,
            reads,
            generators,
            certificates,
            certificate_settings,
        } = ports;
        let types = CredentialTypes { generators };
        let generation = Generation {
            types: types.clone(),
            certificates: Arc::clone(&certificates),
            settings: certificate_settings,
            clock: Arc::clone(&store.clock),
        };
        let slots = BulkSlots::default();
        let children = ChildVersions {
            store: store.clone(),
            certificates: Arc::clone(&certificates),
            slots: slots.clone(),
        };
        let set = SetCredentials {
            authorization: authorization.clone(),
            store: store.clone(),
            types: types.clone(),
            certificates: Arc::clone(&certificates),
        };
        let regenerate = RegenerateCredentials {
            authorization: authorization.clone(),
            store: store.clone(),
            generation: generation.clone(),
            children: children.clone(),
        };
        Self {
            types,
            read: ReadCredentials {
                authorization: authorization.clone(),
                store: store.clone(),
                reads,
            },
            generate: GenerateCredentials {
                authorization: authorization.clone(),
                store: store.clone(),
                generation,
            },
            bulk_regenerate: BulkRegenerateCredentials::new(regenerate.clone(), slots),
            regenerate,
            certificates: CertificateCredentials {
                authorization,
                store: store.clone(),
                certificates: Arc::clone(&certificates),
            },
            rotation: CaRotation {
                set: set.clone(),
                children,
            },
            set,
            store,
        }
    }
}
