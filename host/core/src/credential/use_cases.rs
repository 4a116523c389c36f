use std::sync::Arc;

use crate::{
    authorization::Authorization,
    credential::{
        BulkRegenerateCredentials, CaRotation, CertificateCredentials, CertificateSettings,
        CredentialTypes, GenerateCredentials, ReadCredentials, RegenerateCredentials,
        SetCredentials, VersionStore,
        child_versions::{BulkSlots, ChildVersions},
        draft::Generation,
    },
    ports::{Certificates, Generators},
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

impl Credentials {
    /// Connects the use cases to their ports. The settings apply to all generated certificates.
    pub fn new(
        authorization: Authorization,
        store: VersionStore,
        generators: Arc<dyn Generators>,
        certificates: Arc<dyn Certificates>,
        settings: CertificateSettings,
    ) -> Self {
        let types = CredentialTypes { generators };
        let generation = Generation {
            types: types.clone(),
            certificates: Arc::clone(&certificates),
            settings,
            clock: Arc::clone(&store.clock),
        };
        let slots = BulkSlots::default();
        let children = ChildVersions {
            authorization: authorization.clone(),
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
            },
            generate: GenerateCredentials {
                authorization: authorization.clone(),
                store: store.clone(),
                generation,
            },
            bulk_regenerate: BulkRegenerateCredentials {
                regenerate: regenerate.clone(),
                slots,
            },
            regenerate,
            certificates: CertificateCredentials {
                authorization,
                store: store.clone(),
                certificates,
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
