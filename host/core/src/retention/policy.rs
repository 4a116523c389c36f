//! Retention policies.

use std::num::NonZeroU32;

use chrono::{DateTime, TimeDelta, Utc};

use crate::{
    credential::{AFTER_SLASH, PathPrefix},
    permission::PermissionPath,
};

/// The retention policy of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionPolicy {
    /// A full name, or a path that ends in `/*`. Case-insensitive, like lookups of names.
    pub path: PermissionPath,
    /// The versions to keep.
    pub kept: Kept,
}

/// The versions that a policy keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// All versions.
    All,
    /// Versions within limits, and needed versions.
    Within(RetentionLimits),
}

/// The limits of a policy, at least one. A version beyond any limit is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetentionLimits {
    versions_max: Option<NonZeroU32>,
    age_days_max: Option<NonZeroU32>,
}

impl RetentionLimits {
    /// Limits the number of versions, including the active version, and their age in days of 24 hours. Returns `None` if both
    /// limits are `None`.
    pub fn new(versions_max: Option<NonZeroU32>, age_days_max: Option<NonZeroU32>) -> Option<Self> {
        let has_limit = versions_max.is_some() || age_days_max.is_some();
        has_limit.then_some(Self {
            versions_max,
            age_days_max,
        })
    }

    /// Returns the maximum number of versions per credential, including the active version.
    pub fn versions_max(&self) -> Option<u32> {
        self.versions_max.map(NonZeroU32::get)
    }

    /// Returns the maximum age of a version, in days of 24 hours.
    pub fn age_days_max(&self) -> Option<u32> {
        self.age_days_max.map(NonZeroU32::get)
    }

    /// Returns the threshold at a time. Without a time, the age limit doesn't apply.
    pub fn at(&self, now: Option<DateTime<Utc>>) -> RetentionThreshold {
        let first_moment = |days: u32| now?.checked_sub_signed(TimeDelta::days(i64::from(days)));
        RetentionThreshold {
            versions_max: self.versions_max(),
            // If the calendar does not reach back this far, no version is that old.
            created_before: self.age_days_max().and_then(first_moment),
        }
    }
}

/// Limits at a point in time. A version exceeds them if it has too many newer versions, or was created too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetentionThreshold {
    /// The number of latest versions of a credential within the limit.
    pub versions_max: Option<u32>,
    /// The earliest creation time within the limit.
    pub created_before: Option<DateTime<Utc>>,
}

/// All policies. Only the most specific policy whose path covers a name applies to it.
#[derive(Clone, Debug, Default)]
pub struct RetentionPolicies {
    segments: Vec<PolicySegment>,
}

/// Two policies have the same path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("duplicate policy for {0}; paths are case-insensitive")]
pub struct DuplicatePathError(String);

impl RetentionPolicies {
    /// Combines policies.
    pub fn new(policies: Vec<RetentionPolicy>) -> Result<Self, DuplicatePathError> {
        let mut ranges: Vec<(NameRange, RetentionPolicy)> = policies
            .into_iter()
            .map(|policy| (NameRange::of(&policy.path), policy))
            .collect();
        // Of two ranges with the same start, the enclosing range comes first.
        ranges.sort_by(|(one, _), (other, _)| {
            let by_end = other.before.cmp(&one.before);
            one.from.cmp(&other.from).then(by_end)
        });
        let mut adjacent = ranges.iter().zip(ranges.iter().skip(1));
        if let Some((_, (_, duplicate))) = adjacent.find(|((one, _), (other, _))| one == other) {
            return Err(DuplicatePathError(duplicate.path.to_string()));
        }
        Ok(Self {
            segments: divide(ranges),
        })
    }

    /// Returns whether any policy has an age limit, which depends on the clock.
    pub fn has_age_limits(&self) -> bool {
        let mut segments = self.segments.iter();
        segments.any(|segment| segment.limits.age_days_max.is_some())
    }

    /// Returns the names that have limits, divided into segments with one policy each, in the order of names.
    pub fn segments(&self) -> &[PolicySegment] {
        &self.segments
    }
}

/// A range of names with one policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicySegment {
    /// The names.
    pub names: NameRange,
    /// The path of the policy.
    pub path: PermissionPath,
    /// Its limits.
    pub limits: RetentionLimits,
}

/// A half-open range of folded names, in byte order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameRange {
    /// The inclusive lower bound.
    pub from: String,
    /// The exclusive upper bound.
    pub before: String,
}

impl NameRange {
    /// Returns the part of the range after a name.
    pub fn after(&self, name: &str) -> Self {
        Self {
            from: following(name),
            before: self.before.clone(),
        }
    }

    /// Returns the range of the names that a path covers.
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

/// Returns the first text after a name. U+0001 is the lowest character that every database accepts, and lower than any
/// character of a name.
fn following(name: &str) -> String {
    format!("{name}\u{1}")
}

/// Divides sorted ranges, which are pairwise disjoint or nested, into segments, each with the policy of its innermost range.
fn divide(ranges: Vec<(NameRange, RetentionPolicy)>) -> Vec<PolicySegment> {
    let mut segments = Vec::new();
    let mut enclosing: Vec<(String, RetentionPolicy)> = Vec::new();
    let mut from = String::new();
    let mut add = |from: &str, before: &str, policy: &RetentionPolicy| {
        let Kept::Within(limits) = policy.kept else {
            return;
        };
        if from < before {
            segments.push(PolicySegment {
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
    segments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_threshold_is_the_given_number_of_days_before_now() {
        let days = |days| RetentionLimits::new(None, NonZeroU32::new(days)).unwrap();
        let now = DateTime::from_timestamp(10 * 86_400, 0).unwrap();
        let since = |limits: RetentionLimits| limits.at(Some(now)).created_before;
        assert_eq!(since(days(9)), DateTime::from_timestamp(86_400, 0));
        assert_eq!(since(days(u32::MAX)), None);
        assert_eq!(days(9).at(Some(now)).versions_max, None);
        assert_eq!(RetentionLimits::new(None, None), None);
    }

    #[test]
    fn the_rest_of_a_range_starts_after_the_name() {
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
