//! The whole plugin, for whatever version it is built.

use crate::bindings::exports::keywright::interpolation::resolver::{Failure, Guest, Reference};

pub(crate) struct Component;

impl Guest for Component {
    /// A document that has a member `place` wants the credential `/found` there; its settings are to be empty.
    fn find_references(document: String, settings: String) -> Result<Vec<Reference>, Failure> {
        if settings != "{}" {
            return Err(Failure::Misconfigured("it has no settings".to_owned()));
        }
        if !document.contains(r#""place""#) {
            return Err(Failure::InvalidDocument("must have a place".to_owned()));
        }
        Ok(vec![Reference {
            pointer: "/place".to_owned(),
            name: "found".to_owned(),
        }])
    }
}
