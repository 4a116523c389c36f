use super::*;
use crate::{
    authorization::Authentication,
    permission::{Actor, Operations},
};

fn caller() -> Caller {
    let subject = "someone".to_owned();
    let actor = Actor::parse(&subject).unwrap();
    Caller::new(actor, Authentication::Token { subject })
}

#[test]
fn the_operation_decides_whether_a_permit_opens_and_seals() {
    let caller = caller();
    let name = CredentialName::parse("/a").unwrap();
    for (operation, opens, seals) in [
        (Operation::Read, true, false),
        (Operation::Write, true, true),
        (Operation::Delete, false, false),
        (Operation::ReadAcl, false, false),
        (Operation::WriteAcl, false, false),
    ] {
        let permit = Permit::request(&caller, operation, &name.lookup());
        assert!(!permit.opens(&name) && !permit.seals(&name), "{operation}");
        let permit = permit.by(&EffectivePermissions::everything());
        assert_eq!(permit.opens(&name), opens, "{operation}");
        assert_eq!(permit.seals(&name), seals, "{operation}");
        let permit = permit.with_decryption();
        let opens = opens || operation == Operation::Delete;
        assert_eq!(permit.opens(&name), opens, "{operation}");
        assert_eq!(permit.seals(&name), seals, "{operation}");
    }
}

#[test]
fn a_permit_covers_one_credential_in_any_casing() {
    let caller = caller();
    let name = |text| CredentialName::parse(text).unwrap();
    let permit = Permit::request(&caller, Operation::Write, &name("/a").lookup())
        .by(&EffectivePermissions::everything());
    assert!(permit.opens(&name("/A")) && permit.seals(&name("/A")));
    assert!(!permit.opens(&name("/a/b")) && !permit.seals(&name("/a/b")));
    let extended = permit.extended_to(Operation::Read, &name("/b").lookup());
    assert!(extended.opens(&name("/b")) && !extended.seals(&name("/b")));
    assert!(!extended.opens(&name("/a")));
}

#[test]
fn a_permit_opens_only_casings_that_the_permissions_allow() {
    let caller = caller();
    let name = |text| CredentialName::parse(text).unwrap();
    for (path, opens) in [
        ("/A/*", false),
        ("/a/*", true),
        ("/*", true),
        ("/a/b", true),
    ] {
        let permissions = EffectivePermissions::of(vec![Permission {
            id: Uuid::nil(),
            path: PermissionPath::parse(path).unwrap(),
            actor: caller.actor().clone(),
            operations: Operations::of([Operation::Read]).unwrap(),
        }]);
        let permit =
            Permit::request(&caller, Operation::Read, &name("/A/b").lookup()).by(&permissions);
        assert_eq!(permit.opens(&name("/a/b")), opens, "{path}");
    }
}

fn effective(permissions: &[(&str, Operation)]) -> EffectivePermissions {
    let permissions = permissions.iter().map(|(path, operation)| Permission {
        id: Uuid::nil(),
        path: PermissionPath::parse(path).unwrap(),
        actor: Actor::parse("someone").unwrap(),
        operations: Operations::of([*operation]).unwrap(),
    });
    EffectivePermissions::of(permissions.collect())
}

#[test]
fn outermost_paths_cover_all_others_and_none_is_covered() {
    use Operation::{Read, Write};
    for (permissions, outermost) in [
        (&[][..], &[][..]),
        (&[("/*", Read), ("/a", Read), ("/a/*", Read)], &["/*"]),
        (
            &[("/*", Write), ("/b", Read), ("/a/*", Read)],
            &["/a/*", "/b"],
        ),
        (&[("/a/*", Read), ("/a", Read)], &["/a", "/a/*"]),
        (
            &[("/a/*", Read), ("/a/b/*", Read), ("/a/b/c", Read)],
            &["/a/*"],
        ),
        (&[("/a/*", Read), ("/A/b", Read)], &["/A/b", "/a/*"]),
    ] {
        let found = effective(permissions).outermost(Read);
        let found: Vec<_> = found.iter().map(PermissionPath::as_str).collect();
        assert_eq!(found, outermost);
    }
    let everything = EffectivePermissions::everything().outermost(Read);
    assert_eq!(everything, [PermissionPath::everything()]);
}

#[test]
fn ranges_are_in_order_and_do_not_overlap() {
    use Operation::{Read, Write};
    for (permissions, below, ranges) in [
        (&[("/*", Write)][..], "/", &[][..]),
        (&[("/a/*", Read)], "/", &[("/a/", "/a0")]),
        (&[("/*", Read)], "/a/", &[("/a/", "/a0")]),
        (&[("/b/*", Read)], "/a/", &[]),
        (
            &[("/c/*", Read), ("/a", Read)],
            "/",
            &[("/a", "/a!"), ("/c/", "/c0")],
        ),
        (&[("/A/*", Read), ("/a/*", Read)], "/", &[("/a/", "/a0")]),
        (&[("/A/*", Read), ("/a/b/*", Read)], "/", &[("/a/", "/a0")]),
    ] {
        let found = effective(permissions).ranges(Read, below);
        let found: Vec<_> = found
            .iter()
            .map(|(from, before)| (from.as_str(), before.as_str()))
            .collect();
        assert_eq!(found, ranges, "{permissions:?}");
    }
}

#[test]
fn considered_permissions_include_the_allowing_permission() {
    let effective = effective(&[("/*", Operation::Read), ("/a/b", Operation::Write)]);
    for name in ["/a/b", "/a/*", "/a", "/*"] {
        let considered: Vec<_> = effective.considered(name).collect();
        let covering: Vec<_> = considered.iter().map(|(path, _)| path.clone()).collect();
        assert_eq!(covering, PermissionPath::covering(name), "{name}");
        for operation in Operation::ALL {
            let mut found = considered.iter().filter_map(|(_, permission)| *permission);
            let allowing = found.find(|permission| permission.operations.contain(operation));
            assert_eq!(effective.allowing(operation, name), allowing, "{name}");
        }
    }
}

#[test]
fn permissions_on_covered_paths_cost_no_memory() {
    use Operation::{Delete, Read, Write};
    let granted = |permissions: &[(&str, &[Operation])]| {
        let permissions = permissions.iter().map(|(path, operations)| Permission {
            id: Uuid::nil(),
            path: PermissionPath::parse(path).unwrap(),
            actor: Actor::parse("a").unwrap(),
            operations: Operations::of(operations.iter().copied()).unwrap(),
        });
        let mut read = PermissionsBeingRead::default();
        let bytes = permissions.map(|permission| read.add(permission)).last();
        (read.finish(), bytes)
    };
    let (read, both) = (&[Read][..], &[Read, Write][..]);
    let (kept, kept_bytes) = granted(&[("/a/*", both), ("/b", both), ("/a/d/*", &[Delete])]);
    let (all, all_bytes) = granted(&[
        ("/a/*", both),
        ("/a/b", read),
        ("/a/b/*", both),
        ("/a/b/c/*", read),
        ("/a/d/*", &[Delete]),
        ("/b", both),
    ]);
    assert_eq!(all_bytes, kept_bytes);
    for name in ["/a/b", "/a/b/c", "/a/d/e", "/b"] {
        for operation in Operation::ALL {
            let allows = kept.allow(operation, name);
            assert_eq!(all.allow(operation, name), allows, "{operation} {name}");
        }
    }
}
