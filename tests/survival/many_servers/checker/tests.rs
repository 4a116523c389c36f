//! For each rule, a history that violates it, and similar histories that violate no rule.

use std::time::Duration;

use super::{
    Action, Call, Id,
    Mode::{self, Converge, NoOverwrite, Overwrite},
    Outcome, Seen, findings,
};

/// Returns a call about `/a` between two times.
fn call(begun: u64, ended: u64, action: Action, outcome: Outcome) -> Call {
    Call {
        name: "/a".to_owned(),
        by: "test".to_owned(),
        begun: Duration::from_millis(begun),
        ended: Duration::from_millis(ended),
        action,
        outcome,
    }
}

fn seen(id: Id) -> Seen {
    Seen {
        id,
        parameters: 20,
        is_transitional: false,
        value: None,
    }
}

fn transitional(id: Id) -> Seen {
    Seen {
        is_transitional: true,
        ..seen(id)
    }
}

/// Returns a generate in this mode that added or returned a version.
fn generate(begun: u64, ended: u64, mode: Mode, id: Id) -> Call {
    generate_with(20, begun, ended, mode, id)
}

fn generate_with(parameters: u32, begun: u64, ended: u64, mode: Mode, id: Id) -> Call {
    let version = Seen {
        parameters,
        ..seen(id)
    };
    let action = Action::Generate { mode, parameters };
    call(begun, ended, action, Outcome::Version(version))
}

fn overwrite(begun: u64, ended: u64, id: Id) -> Call {
    generate(begun, ended, Overwrite, id)
}

fn set(begun: u64, ended: u64, id: Id) -> Call {
    call(begun, ended, Action::Set, Outcome::Version(seen(id)))
}

fn delete(begun: u64, ended: u64) -> Call {
    call(begun, ended, Action::Delete, Outcome::Done)
}

/// Returns a read of these versions, newest first.
fn read(begun: u64, ended: u64, ids: &[Id]) -> Call {
    let versions = ids.iter().copied().map(seen).collect();
    call(begun, ended, Action::Read, Outcome::Versions(versions))
}

/// The id of the credential.
const OWN: Id = 100;

#[track_caller]
fn violations(history: &[Call]) -> Vec<String> {
    let found = findings(history);
    assert_eq!(found.undecided, Vec::<String>::new());
    found.violations
}

#[track_caller]
fn assert_broken(rule: &str, history: &[Call]) {
    assert!(!violations(history).is_empty(), "not detected: {rule}");
}

#[track_caller]
fn assert_explained(history: &[Call]) {
    assert_eq!(violations(history), Vec::<String>::new());
}

#[test]
fn a_name_has_one_value_until_overwritten_or_deleted() {
    let keep = |begun, ended, id| generate(begun, ended, NoOverwrite, id);
    let two_values = [keep(0, 9, 1), keep(1, 8, 2)];
    assert_broken("no-overwrite yields one value", &two_values);
    assert_explained(&[keep(0, 9, 1), keep(1, 8, 1)]);
    assert_explained(&[keep(0, 3, 1), delete(2, 5), keep(4, 8, 2)]);
}

#[test]
fn equal_parameters_converge_and_others_add_a_version() {
    let first = || generate(0, 1, Converge, 1);
    let second = generate(2, 3, Converge, 2);
    assert_broken("converge with equal parameters", &[first(), second]);
    let mut kept = generate_with(30, 2, 3, Converge, 1);
    kept.outcome = Outcome::Version(seen(1));
    assert_broken("converge with other parameters", &[first(), kept]);
    let between = generate_with(30, 2, 5, Converge, 2);
    assert_explained(&[first(), between, generate(3, 6, Converge, 3)]);
}

#[test]
fn acknowledged_writes_are_visible_to_later_reads() {
    let first = || overwrite(0, 1, 1);
    let stale = [first(), overwrite(2, 3, 2), read(4, 5, &[1])];
    assert_broken("a read returns writes that ended before it began", &stale);
    assert_explained(&[first(), overwrite(2, 5, 2), read(3, 4, &[1])]);
    let second = overwrite(2, 9, 2);
    let back_again = [first(), second, read(3, 4, &[2, 1]), read(5, 6, &[1])];
    assert_broken("a later read does not return an older state", &back_again);
    let gone = call(2, 3, Action::ReadVersion(1), Outcome::Absent);
    assert_broken("a version is found by its id", &[first(), gone]);
}

#[test]
fn acknowledged_versions_are_neither_lost_nor_invented() {
    let lost = [overwrite(0, 5, 1), overwrite(1, 4, 2), read(6, 7, &[2])];
    assert_broken("an acknowledged version exists", &lost);
    let unknown = [overwrite(0, 1, 1), read(2, 3, &[9, 1])];
    assert_broken("an unrequested version", &unknown);
}

#[test]
fn versions_are_in_the_order_in_which_they_were_written() {
    let reversed = [overwrite(0, 1, 1), overwrite(2, 3, 2), read(4, 5, &[1, 2])];
    assert_broken("newest first", &reversed);
    assert_explained(&[overwrite(0, 3, 1), overwrite(1, 2, 2), read(4, 5, &[1, 2])]);
}

#[test]
fn deleted_versions_stay_deleted() {
    let back = [set(0, 1, 1), delete(2, 3), read(4, 5, &[1])];
    assert_broken("a deleted name exists again", &back);
    let again = set(4, 5, 2);
    let kept = [set(0, 1, 1), delete(2, 3), again, read(6, 7, &[2, 1])];
    assert_broken("a deleted name has its old versions again", &kept);
    let twice = [set(0, 1, 1), delete(2, 5), delete(3, 6)];
    assert_broken("a credential is deleted once", &twice);
}

#[test]
fn a_version_has_one_value_and_one_name() {
    let with_value = |mut call: Call, value| {
        call.outcome = Outcome::Version(Seen {
            value: Some(value),
            ..seen(1)
        });
        call
    };
    let reading = call(2, 3, Action::ReadVersion(1), Outcome::Absent);
    let changed = [with_value(overwrite(0, 1, 1), 7), with_value(reading, 8)];
    assert_broken("an id changes its value", &changed);
    let mut other = overwrite(2, 3, 1);
    other.name = "/b".to_owned();
    assert_broken("two names share an id", &[overwrite(0, 1, 1), other]);
}

#[test]
fn the_active_version_determines_a_regeneration() {
    let regenerated = |outcome| call(2, 3, Action::Regenerate, outcome);
    let kept = [set(0, 1, 1), regenerated(Outcome::Version(seen(2)))];
    assert_broken("a set value is regenerated", &kept);
    assert_explained(&[set(0, 1, 1), regenerated(Outcome::Refused)]);
    let longer = Outcome::Version(Seen {
        parameters: 24,
        ..seen(2)
    });
    let changed = [overwrite(0, 1, 1), regenerated(longer)];
    assert_broken("a regeneration changes the parameters", &changed);
}

#[test]
fn at_most_one_version_is_transitional() {
    let first = || overwrite(0, 1, 1);
    let add = |begun, ended, outcome| {
        let action = Action::RegenerateAsTransitional { credential: OWN };
        call(begun, ended, action, outcome)
    };
    let added = |begun, ended, id| add(begun, ended, Outcome::Version(transitional(id)));
    let move_to_first = |begun, ended| {
        let (credential, to) = (OWN, Some(1));
        let action = Action::MoveTransitional { credential, to };
        call(begun, ended, action, Outcome::Done)
    };
    let read = |begun, ended, versions: [Seen; 2]| {
        let outcome = Outcome::Certificate(OWN, versions.into());
        call(begun, ended, Action::ReadCertificate, outcome)
    };
    let two = [first(), added(2, 5, 2), added(3, 6, 3)];
    assert_broken("two transitional versions are added", &two);
    let flagged = read(6, 7, [transitional(2), transitional(1)]);
    let both = [first(), added(2, 3, 2), move_to_first(4, 5), flagged];
    assert_broken("the flag is on two versions", &both);
    let refused = [first(), add(2, 3, Outcome::Refused)];
    assert_broken("refused without a transitional version", &refused);
    let refused = add(3, 6, Outcome::Refused);
    let moved = read(9, 10, [seen(2), transitional(1)]);
    assert_explained(&[first(), added(2, 5, 2), refused, move_to_first(7, 8), moved]);
}

#[test]
fn the_last_version_is_kept_and_deleted_ones_stay_deleted() {
    let delete = |begun, ended, version| {
        let credential = OWN;
        let action = Action::DeleteVersion {
            credential,
            version,
        };
        call(begun, ended, action, Outcome::Done)
    };
    let two = || [overwrite(0, 1, 1), overwrite(2, 3, 2)];
    let [first, second] = two();
    let none_left = [first, second, delete(4, 7, 1), delete(5, 8, 2)];
    assert_broken("the last version is deleted", &none_left);
    let [first, second] = two();
    let back = [first, second, delete(4, 5, 1), read(6, 7, &[2, 1])];
    assert_broken("a deleted version exists again", &back);
}

#[test]
fn a_call_without_a_response_takes_effect_later_or_never() {
    let first = || overwrite(0, 1, 1);
    let lost = || Call {
        outcome: Outcome::Unknown,
        ..overwrite(2, 3, 2)
    };
    assert_explained(&[first(), lost(), read(4, 5, &[1])]);
    assert_explained(&[first(), lost(), read(4, 5, &[1]), read(6, 7, &[9, 1])]);
    let twice = [first(), lost(), read(4, 5, &[9, 8, 1])];
    assert_broken("one call adds two versions", &twice);
    let undone = [first(), lost(), read(4, 5, &[9, 1]), read(6, 7, &[1])];
    assert_broken("an effect is undone", &undone);
    let foreign = [first(), lost(), read(4, 5, &[2, 1]), overwrite(6, 7, 2)];
    assert_broken("a version is read before its call began", &foreign);
}

#[test]
fn reads_reveal_versions_of_a_bulk_regeneration() {
    let bulk = || call(2, 3, Action::RegenerateInBulk, Outcome::Done);
    let first = || overwrite(0, 1, 1);
    assert_explained(&[first(), bulk(), read(4, 5, &[2, 1])]);
    let missing = [first(), bulk(), read(4, 5, &[1])];
    assert_broken("a bulk regeneration adds nothing", &missing);
}
