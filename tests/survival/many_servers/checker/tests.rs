//! For each rule, a history that violates it, and similar histories that violate no rule.

use std::time::Duration;

use super::{Action, Call, Id, Mode, Outcome, Seen, findings};

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

fn version(id: Id) -> Outcome {
    Outcome::Version(seen(id))
}

/// Returns a list of versions, newest first.
fn versions(ids: &[Id]) -> Outcome {
    Outcome::Versions(ids.iter().copied().map(seen).collect())
}

fn generate(mode: Mode) -> Action {
    Action::Generate {
        mode,
        parameters: 20,
    }
}

const CONVERGE: fn() -> Action = || generate(Mode::Converge);
const NO_OVERWRITE: fn() -> Action = || generate(Mode::NoOverwrite);
const OVERWRITE: fn() -> Action = || generate(Mode::Overwrite);
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
    let two_values = [
        call(0, 9, NO_OVERWRITE(), version(1)),
        call(1, 8, NO_OVERWRITE(), version(2)),
    ];
    assert_broken("no-overwrite yields one value", &two_values);
    let one_value = [
        call(0, 9, NO_OVERWRITE(), version(1)),
        call(1, 8, NO_OVERWRITE(), version(1)),
    ];
    assert_explained(&one_value);
    let two_after_deletion = [
        call(0, 3, NO_OVERWRITE(), version(1)),
        call(2, 5, Action::Delete, Outcome::Done),
        call(4, 8, NO_OVERWRITE(), version(2)),
    ];
    assert_explained(&two_after_deletion);
}

#[test]
fn equal_parameters_converge_and_others_add_a_version() {
    let second = [
        call(0, 1, CONVERGE(), version(1)),
        call(2, 3, CONVERGE(), version(2)),
    ];
    assert_broken("converge with equal parameters", &second);
    let other = Action::Generate {
        mode: Mode::Converge,
        parameters: 30,
    };
    let kept = [
        call(0, 1, CONVERGE(), version(1)),
        call(2, 3, other.clone(), version(1)),
    ];
    assert_broken("converge with other parameters", &kept);
    let made = Outcome::Version(Seen {
        parameters: 30,
        ..seen(2)
    });
    let between = [
        call(0, 1, CONVERGE(), version(1)),
        call(2, 5, other, made),
        call(3, 6, CONVERGE(), version(3)),
    ];
    assert_explained(&between);
}

#[test]
fn acknowledged_writes_are_visible_to_later_reads() {
    let stale = [
        call(0, 1, OVERWRITE(), version(1)),
        call(2, 3, OVERWRITE(), version(2)),
        call(4, 5, Action::Read, versions(&[1])),
    ];
    assert_broken("a read returns writes that ended before it began", &stale);
    let concurrent = [
        call(0, 1, OVERWRITE(), version(1)),
        call(2, 5, OVERWRITE(), version(2)),
        call(3, 4, Action::Read, versions(&[1])),
    ];
    assert_explained(&concurrent);
    let back_again = [
        call(0, 1, OVERWRITE(), version(1)),
        call(2, 9, OVERWRITE(), version(2)),
        call(3, 4, Action::Read, versions(&[2, 1])),
        call(5, 6, Action::Read, versions(&[1])),
    ];
    assert_broken("a later read does not return an older state", &back_again);
    let gone = [
        call(0, 1, OVERWRITE(), version(1)),
        call(2, 3, Action::ReadVersion(1), Outcome::Absent),
    ];
    assert_broken("a version is found by its id", &gone);
}

#[test]
fn acknowledged_versions_are_neither_lost_nor_invented() {
    let lost = [
        call(0, 5, OVERWRITE(), version(1)),
        call(1, 4, OVERWRITE(), version(2)),
        call(6, 7, Action::Read, versions(&[2])),
    ];
    assert_broken("an acknowledged version exists", &lost);
    let unknown = [
        call(0, 1, OVERWRITE(), version(1)),
        call(2, 3, Action::Read, versions(&[9, 1])),
    ];
    assert_broken("an unrequested version", &unknown);
}

#[test]
fn versions_are_in_the_order_in_which_they_were_written() {
    let reversed = [
        call(0, 1, OVERWRITE(), version(1)),
        call(2, 3, OVERWRITE(), version(2)),
        call(4, 5, Action::Read, versions(&[1, 2])),
    ];
    assert_broken("newest first", &reversed);
    let either = [
        call(0, 3, OVERWRITE(), version(1)),
        call(1, 2, OVERWRITE(), version(2)),
        call(4, 5, Action::Read, versions(&[1, 2])),
    ];
    assert_explained(&either);
}

#[test]
fn deleted_versions_stay_deleted() {
    let back = [
        call(0, 1, Action::Set, version(1)),
        call(2, 3, Action::Delete, Outcome::Done),
        call(4, 5, Action::Read, versions(&[1])),
    ];
    assert_broken("a deleted name exists again", &back);
    let kept = [
        call(0, 1, Action::Set, version(1)),
        call(2, 3, Action::Delete, Outcome::Done),
        call(4, 5, Action::Set, version(2)),
        call(6, 7, Action::Read, versions(&[2, 1])),
    ];
    assert_broken("a deleted name has its old versions again", &kept);
    let twice = [
        call(0, 1, Action::Set, version(1)),
        call(2, 5, Action::Delete, Outcome::Done),
        call(3, 6, Action::Delete, Outcome::Done),
    ];
    assert_broken("a credential is deleted once", &twice);
}

#[test]
fn a_version_has_one_value_and_one_name() {
    let with_value = |value| {
        Outcome::Version(Seen {
            value: Some(value),
            ..seen(1)
        })
    };
    let changed = [
        call(0, 1, OVERWRITE(), with_value(7)),
        call(2, 3, Action::ReadVersion(1), with_value(8)),
    ];
    assert_broken("an id changes its value", &changed);
    let mut other = call(2, 3, OVERWRITE(), version(1));
    other.name = "/b".to_owned();
    let shared = [call(0, 1, OVERWRITE(), version(1)), other];
    assert_broken("two names share an id", &shared);
}

#[test]
fn the_active_version_determines_a_regeneration() {
    let regenerated = |outcome| call(2, 3, Action::Regenerate, outcome);
    let set = || call(0, 1, Action::Set, version(1));
    let kept = [set(), regenerated(version(2))];
    assert_broken("a set value is regenerated", &kept);
    assert_explained(&[set(), regenerated(Outcome::Refused)]);
    let longer = Outcome::Version(Seen {
        parameters: 24,
        ..seen(2)
    });
    let changed = [call(0, 1, OVERWRITE(), version(1)), regenerated(longer)];
    assert_broken("a regeneration changes the parameters", &changed);
}

#[test]
fn at_most_one_version_is_transitional() {
    let add = || Action::RegenerateAsTransitional { credential: OWN };
    let first = || call(0, 1, OVERWRITE(), version(1));
    let two = [
        first(),
        call(2, 5, add(), Outcome::Version(transitional(2))),
        call(3, 6, add(), Outcome::Version(transitional(3))),
    ];
    assert_broken("two transitional versions are added", &two);
    let flagged = vec![transitional(2), transitional(1)];
    let moved = Action::MoveTransitional {
        credential: OWN,
        to: Some(1),
    };
    let both = [
        first(),
        call(2, 3, add(), Outcome::Version(transitional(2))),
        call(4, 5, moved.clone(), Outcome::Done),
        call(
            6,
            7,
            Action::ReadCertificate,
            Outcome::Certificate(OWN, flagged),
        ),
    ];
    assert_broken("the flag is on two versions", &both);
    let refused = [first(), call(2, 3, add(), Outcome::Refused)];
    assert_broken("refused without a transitional version", &refused);
    let flagged = vec![seen(2), transitional(1)];
    let in_turn = [
        first(),
        call(2, 5, add(), Outcome::Version(transitional(2))),
        call(3, 6, add(), Outcome::Refused),
        call(7, 8, moved, Outcome::Done),
        call(
            9,
            10,
            Action::ReadCertificate,
            Outcome::Certificate(OWN, flagged),
        ),
    ];
    assert_explained(&in_turn);
}

#[test]
fn the_last_version_is_kept_and_deleted_ones_stay_deleted() {
    let delete = |version| Action::DeleteVersion {
        credential: OWN,
        version,
    };
    let none_left = [
        call(0, 1, OVERWRITE(), version(1)),
        call(2, 3, OVERWRITE(), version(2)),
        call(4, 7, delete(1), Outcome::Done),
        call(5, 8, delete(2), Outcome::Done),
    ];
    assert_broken("the last version is deleted", &none_left);
    let back = [
        call(0, 1, OVERWRITE(), version(1)),
        call(2, 3, OVERWRITE(), version(2)),
        call(4, 5, delete(1), Outcome::Done),
        call(6, 7, Action::Read, versions(&[2, 1])),
    ];
    assert_broken("a deleted version exists again", &back);
}

#[test]
fn a_call_without_a_response_takes_effect_later_or_never() {
    let first = || call(0, 1, OVERWRITE(), version(1));
    let lost = || call(2, 3, OVERWRITE(), Outcome::Unknown);
    let never = [first(), lost(), call(4, 5, Action::Read, versions(&[1]))];
    assert_explained(&never);
    let late = [
        first(),
        lost(),
        call(4, 5, Action::Read, versions(&[1])),
        call(6, 7, Action::Read, versions(&[9, 1])),
    ];
    assert_explained(&late);
    let twice = [
        first(),
        lost(),
        call(4, 5, Action::Read, versions(&[9, 8, 1])),
    ];
    assert_broken("one call adds two versions", &twice);
    let undone = [
        first(),
        lost(),
        call(4, 5, Action::Read, versions(&[9, 1])),
        call(6, 7, Action::Read, versions(&[1])),
    ];
    assert_broken("an effect is undone", &undone);
    let foreign = [
        first(),
        lost(),
        call(4, 5, Action::Read, versions(&[2, 1])),
        call(6, 7, OVERWRITE(), version(2)),
    ];
    assert_broken("a version is read before its call began", &foreign);
}

#[test]
fn reads_reveal_versions_of_a_bulk_regeneration() {
    let bulk = || call(2, 3, Action::RegenerateInBulk, Outcome::Done);
    let first = || call(0, 1, OVERWRITE(), version(1));
    let added = [first(), bulk(), call(4, 5, Action::Read, versions(&[2, 1]))];
    assert_explained(&added);
    let missing = [first(), bulk(), call(4, 5, Action::Read, versions(&[1]))];
    assert_broken("a bulk regeneration adds nothing", &missing);
}
