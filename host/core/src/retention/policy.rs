//! Policies: how many versions of which credentials are kept, and for how long.

use std::num::NonZeroU32;

use chrono::{DateTime, TimeDelta, Utc};

use crate::{credential::PathPrefix, permission::PermissionPath};

/// What is kept of the credentials on a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionPolicy {
    /// A full name, or a path that ends in `/*`. Casing does not count, as it does not where names are looked up.
    pub path: PermissionPath,
    /// What is kept.
    pub kept: Kept,
}

/// What a policy keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// All versions.
    All,
    /// Those within limits, and those that are needed.
    Within(RetentionLimits),
}

/// How many versions are kept, and for how long. There is one limit at least; a version that is beyond any of them goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetentionLimits {
    versions_max: Option<NonZeroU32>,
    age_days_max: Option<NonZeroU32>,
}

impl RetentionLimits {
    /// Limits of the number of versions, the current one included, and of their age in days of 24 hours; none where there is
    /// neither.
    #[must_use]
    pub fn new(versions_max: Option<NonZeroU32>, age_days_max: Option<NonZeroU32>) -> Option<Self> {
        let is_any_there = versions_max.is_some() || age_days_max.is_some();
        is_any_there.then_some(Self {
            versions_max,
            age_days_max,
        })
    }

    /// How many versions of a credential are kept at most, the current one included.
    #[must_use]
    pub fn versions_max(&self) -> Option<u32> {
        self.versions_max.map(NonZeroU32::get)
    }

    /// For how many days of 24 hours a version is kept at most after it was made.
    #[must_use]
    pub fn age_days_max(&self) -> Option<u32> {
        self.age_days_max.map(NonZeroU32::get)
    }

    /// Whether there is a limit of age.
    fn has_age(self) -> bool {
        self.age_days_max.is_some()
    }

    /// What is beyond the limits at a moment; without one, age does not count.
    #[must_use]
    pub fn at(&self, now: Option<DateTime<Utc>>) -> RetentionThreshold {
        let first_moment = |days: u32| now?.checked_sub_signed(TimeDelta::days(i64::from(days)));
        RetentionThreshold {
            versions_max: self.versions_max(),
            // Where the calendar does not reach back so far, nothing is as old.
            created_before: self.age_days_max().and_then(first_moment),
        }
    }
}

/// Limits at a moment: beyond them is a version with so many newer ones, and one that was made before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetentionThreshold {
    /// How many versions of a credential are within the limit, the newest first.
    pub versions_max: Option<u32>,
    /// When the oldest was made that is within the limit.
    pub created_before: Option<DateTime<Utc>>,
}

/// All policies. Of those whose paths cover a name, the most specific one holds, and no other.
#[derive(Clone, Debug, Default)]
pub struct RetentionPolicies {
    stretches: Vec<PolicyStretch>,
}

/// Two policies have one path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are two policies for {0}; the casing of a path does not count")]
pub struct PathTwice(String);

impl RetentionPolicies {
    /// Puts policies together.
    ///
    /// # Errors
    /// When two of them are for the same path.
    pub fn new(policies: Vec<RetentionPolicy>) -> Result<Self, PathTwice> {
        let mut ranges: Vec<(NameRange, RetentionPolicy)> = policies
            .into_iter()
            .map(|policy| (NameRange::of(&policy.path), policy))
            .collect();
        // Of two that begin alike, the one that encloses the other comes first.
        ranges.sort_by(|(one, _), (other, _)| {
            let by_end = other.before.cmp(&one.before);
            one.from.cmp(&other.from).then(by_end)
        });
        let mut neighbours = ranges.iter().zip(ranges.iter().skip(1));
        if let Some((_, (_, twice))) = neighbours.find(|((one, _), (other, _))| one == other) {
            return Err(PathTwice(twice.path.to_string()));
        }
        Ok(Self {
            stretches: cut(ranges),
        })
    }

    /// Whether any policy has a limit of age, for which the clock counts.
    #[must_use]
    pub fn has_age_limits(&self) -> bool {
        self.stretches
            .iter()
            .any(|stretch| stretch.limits.has_age())
    }

    /// The names for which there are limits, cut into stretches for each of which one policy holds, in the order of names.
    #[must_use]
    pub fn stretches(&self) -> &[PolicyStretch] {
        &self.stretches
    }
}

/// Names that follow each other, for which one policy holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyStretch {
    /// The names.
    pub names: NameRange,
    /// The path of the policy.
    pub path: PermissionPath,
    /// Its limits.
    pub limits: RetentionLimits,
}

/// The folded names from one on up to another, without that one, byte by byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameRange {
    /// The first name, or what comes before it.
    pub from: String,
    /// What comes after the last name.
    pub before: String,
}

impl NameRange {
    /// What of the range comes after a name.
    #[must_use]
    pub fn after(&self, name: &str) -> Self {
        Self {
            from: following(name),
            before: self.before.clone(),
        }
    }

    /// The names that a path covers.
    fn of(path: &PermissionPath) -> Self {
        if let Some(enclosing) = path.enclosing() {
            let prefix = PathPrefix::new(enclosing);
            let from = prefix.as_str().to_owned();
            let before = format!("{}{AFTER_SLASH}", from.trim_end_matches('/'));
            return Self { from, before };
        }
        let from = path.lookup().folded().to_owned();
        let before = following(&from);
        Self { from, before }
    }
}

/// What comes right after a name: no name holds so low a character, which is the lowest that every database takes.
fn following(name: &str) -> String {
    format!("{name}\u{1}")
}

/// Cuts ranges, of which any two are apart or one encloses the other, into stretches for each of which the innermost range
/// holds. They come sorted.
fn cut(ranges: Vec<(NameRange, RetentionPolicy)>) -> Vec<PolicyStretch> {
    let mut stretches = Vec::new();
    let mut enclosing: Vec<(String, RetentionPolicy)> = Vec::new();
    let mut from = String::new();
    let mut add = |from: &str, before: &str, policy: &RetentionPolicy| {
        let Kept::Within(limits) = policy.kept else {
            return;
        };
        if from < before {
            stretches.push(PolicyStretch {
                names: NameRange {
                    from: from.to_owned(),
                    before: before.to_owned(),
                },
                path: policy.path.clone(),
                limits,
            });
        }
    };
    for (range, policy) in ranges {
        while let Some((before, ended)) = enclosing.pop_if(|(before, _)| *before <= range.from) {
            add(&from, &before, &ended);
            from = before;
        }
        if let Some((_, outer)) = enclosing.last() {
            add(&from, &range.from, outer);
        }
        from = range.from;
        enclosing.push((range.before, policy));
    }
    while let Some((before, ended)) = enclosing.pop() {
        add(&from, &before, &ended);
        from = before;
    }
    stretches
}

/// The character after the slash.
const AFTER_SLASH: char = '0';

#[cfg(test)]
mod tests {
    use super::*;

    fn within(versions_max: u32) -> Kept {
        let limits = RetentionLimits::new(NonZeroU32::new(versions_max), None);
        Kept::Within(limits.unwrap())
    }

    fn policies(of: &[(&str, Kept)]) -> Result<RetentionPolicies, PathTwice> {
        let policies = of.iter().map(|(path, kept)| RetentionPolicy {
            path: PermissionPath::parse(path).unwrap(),
            kept: *kept,
        });
        RetentionPolicies::new(policies.collect())
    }

    /// The paths of the policies in whose stretches a name stands.
    fn holding<'a>(policies: &'a RetentionPolicies, name: &str) -> Vec<&'a str> {
        let folded = name.to_ascii_lowercase();
        let stretches = policies.stretches().iter();
        stretches
            .filter(|stretch| stretch.names.from <= folded && folded < stretch.names.before)
            .map(|stretch| stretch.path.as_str())
            .collect()
    }

    #[test]
    fn the_most_specific_policy_alone_holds_for_a_name() {
        let policies = policies(&[
            ("/a/b", within(4)),
            ("/*", within(1)),
            ("/a/b/*", Kept::All),
            ("/A/*", within(2)),
            ("/a/b/C/*", within(3)),
            ("/a/b/c/kept", Kept::All),
        ])
        .unwrap();
        for (name, path) in [
            ("/z", Some("/*")),
            ("/a", Some("/*")),
            ("/a(", Some("/*")),
            ("/a-b/c", Some("/*")),
            ("/a0", Some("/*")),
            ("/aa/b", Some("/*")),
            ("/a/a", Some("/A/*")),
            ("/a/c", Some("/A/*")),
            ("/A/C", Some("/A/*")),
            ("/a/b-", Some("/A/*")),
            ("/a/bb", Some("/A/*")),
            ("/a/b", Some("/a/b")),
            ("/a/b/a", None),
            ("/a/b/c", None),
            ("/a/b/d", None),
            ("/a/b/c/d", Some("/a/b/C/*")),
            ("/a/b/c/d/e", Some("/a/b/C/*")),
            ("/a/b/c/kept", None),
            ("/a/b/c/kept-", Some("/a/b/C/*")),
            ("/a/b/c/kept/e", Some("/a/b/C/*")),
            ("/a/b/c/l", Some("/a/b/C/*")),
        ] {
            let expected: Vec<_> = path.into_iter().collect();
            assert_eq!(holding(&policies, name), expected, "{name}");
        }
        let stretches = policies.stretches();
        let mut neighbours = stretches.iter().zip(stretches.iter().skip(1));
        assert!(neighbours.all(|(one, other)| one.names.before <= other.names.from));
    }

    #[test]
    fn without_a_policy_or_a_limit_there_is_no_stretch() {
        assert!(policies(&[]).unwrap().stretches().is_empty());
        let kept = policies(&[("/*", Kept::All), ("/a", Kept::All)]);
        assert!(kept.unwrap().stretches().is_empty());
    }

    #[test]
    fn a_path_has_one_policy_whatever_its_casing() {
        for (one, other) in [("/a/*", "/A/*"), ("/a", "/A"), ("/*", "*"), ("a", "/a")] {
            let refused = policies(&[(one, within(1)), ("/b", within(1)), (other, Kept::All)]);
            assert!(refused.is_err(), "{one} {other}");
        }
        assert!(policies(&[("/a", within(1)), ("/a/*", within(1))]).is_ok());
    }

    #[test]
    fn the_threshold_of_an_age_is_so_many_days_before_the_moment() {
        let days = |days| RetentionLimits::new(None, NonZeroU32::new(days)).unwrap();
        let now = DateTime::from_timestamp(10 * 86_400, 0).unwrap();
        let since = |limits: RetentionLimits| limits.at(Some(now)).created_before;
        assert_eq!(since(days(9)), DateTime::from_timestamp(86_400, 0));
        assert_eq!(since(days(u32::MAX)), None);
        assert_eq!(days(9).at(Some(now)).versions_max, None);
        assert_eq!(RetentionLimits::new(None, None), None);
    }

    #[test]
    fn a_range_goes_on_after_a_name() {
        let path = PermissionPath::parse("/a/*").unwrap();
        let rest = NameRange::of(&path).after("/a/b");
        assert!(rest.from.as_str() > "/a/b");
        assert!(
            ["/a/b(", "/a/b/c", "/a/c"]
                .iter()
                .all(|name| rest.from.as_str() < *name)
        );
        assert_eq!(rest.before, "/a0");
    }
}
