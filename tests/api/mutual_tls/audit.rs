//! Audit events of callers with certificates.

use super::{
    caller::{Caller, VERSIONS},
    expect::{ACTOR, UNIT, server_knowing},
    issued::{Authority, Contents},
};
use crate::audit::events_of;

#[tokio::test]
async fn a_certificate_holder_is_audited_by_organization_unit() {
    let authority = Authority::root("clients");
    let server = server_knowing(&[&authority]).await;
    let holder = authority.issue(&Contents::of_client(&[&[UNIT]]));
    for version in VERSIONS {
        let caller = Caller::new(Some(&holder), version);
        let answer = caller
            .get(&server, "/api/v1/data?name=/a", None)
            .unwrap()
            .expect(404);
        let events = events_of(&server, &answer);
        assert_eq!(events.len(), 1);
        assert_eq!(events[0]["actor"], ACTOR);
        assert_eq!(events[0]["subject"], UNIT);
        assert_eq!(events[0]["authentication"], "mutual_tls");
    }
}
