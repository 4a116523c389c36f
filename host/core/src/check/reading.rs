//! Reading a table in batches and skipping unreadable rows.

use super::finding::Fault;
use crate::ports::{RepositoryError, SequenceRange};

/// A table and the position up to which it was read.
pub(super) struct Reading {
    table: &'static str,
    after: i64,
    end: i64,
    count_max: u32,
    /// The number of consecutive batches without a readable row.
    unreadable_batches: u32,
}

/// The rows of a batch, and its unreadable parts.
pub(super) struct Batch<T> {
    pub(super) rows: Vec<T>,
    pub(super) unreadable: Vec<Fault>,
}

impl Reading {
    /// Starts reading a table up to a sequence, in batches of `count_max` rows.
    pub(super) fn new(table: &'static str, end: i64, count_max: u32) -> Self {
        Self {
            table,
            after: 0,
            end,
            count_max,
            unreadable_batches: 0,
        }
    }

    /// Returns whether the table was read to its end.
    pub(super) fn is_done(&self) -> bool {
        self.after >= self.end
    }

    /// Returns the last sequence that was read, and the last sequence to read.
    pub(super) fn position(&self) -> (i64, i64) {
        (self.after.min(self.end), self.end)
    }

    /// Reads the next rows. If a batch can't be read, reads its rows one by one. After [`UNREADABLE_BATCHES_MAX`] batches
    /// without a readable row, skips the rest of the table.
    pub(super) async fn next<T>(
        &mut self,
        read: impl AsyncFn(SequenceRange) -> Result<Vec<T>, RepositoryError>,
        sequence: impl Fn(&T) -> i64,
    ) -> Result<Batch<T>, RepositoryError> {
        let range = SequenceRange {
            after: self.after,
            until: self.end,
            count_max: self.count_max,
        };
        let Ok(rows) = unless_unavailable(read(range).await)? else {
            return self.next_one_by_one(read).await;
        };
        self.after = rows.last().map_or(self.end, sequence);
        self.unreadable_batches = 0;
        Ok(Batch {
            rows,
            unreadable: Vec::new(),
        })
    }

    async fn next_one_by_one<T>(
        &mut self,
        read: impl AsyncFn(SequenceRange) -> Result<Vec<T>, RepositoryError>,
    ) -> Result<Batch<T>, RepositoryError> {
        let until = self.end.min(self.after + i64::from(self.count_max));
        let mut rows = Vec::new();
        let mut gaps: Vec<Gap> = Vec::new();
        for sequence in self.after + 1..=until {
            match unless_unavailable(read(single_row(sequence)).await)? {
                Ok(read) => rows.extend(read),
                Err(cause) => match gaps.last_mut().filter(|gap| gap.until == sequence - 1) {
                    Some(gap) => gap.until = sequence,
                    None => gaps.push(Gap {
                        after: sequence - 1,
                        until: sequence,
                        cause,
                    }),
                },
            }
        }
        let is_unreadable = gaps
            .first()
            .is_some_and(|gap| gap.after == self.after && gap.until == until);
        self.unreadable_batches = if is_unreadable {
            self.unreadable_batches + 1
        } else {
            0
        };
        let is_rest_skipped = self.unreadable_batches >= UNREADABLE_BATCHES_MAX && until < self.end;
        self.after = if is_rest_skipped { self.end } else { until };
        let unreadable = gaps.into_iter().map(|gap| Fault::Unreadable {
            table: self.table,
            after: gap.after,
            until: (!is_rest_skipped).then_some(gap.until),
            cause: gap.cause,
        });
        Ok(Batch {
            rows,
            unreadable: unreadable.collect(),
        })
    }
}

/// Consecutive unreadable sequences.
struct Gap {
    after: i64,
    until: i64,
    /// The error of the first sequence.
    cause: String,
}

pub(super) fn single_row(sequence: i64) -> SequenceRange {
    SequenceRange {
        after: sequence - 1,
        until: sequence,
        count_max: 1,
    }
}

/// Separates permanent errors, which are findings, from an unavailable database.
pub(super) fn unless_unavailable<T>(
    read: Result<T, RepositoryError>,
) -> Result<Result<T, String>, RepositoryError> {
    match read {
        Ok(read) => Ok(Ok(read)),
        Err(RepositoryError::Inconsistent(column)) => Ok(Err(format!("{column} is malformed"))),
        Err(RepositoryError::Query(cause)) => Ok(Err(cause.to_string())),
        Err(failure @ RepositoryError::KeyRecordMalformed(_)) => Ok(Err(failure.to_string())),
        Err(failure @ RepositoryError::Unavailable(_)) => Err(failure),
    }
}

/// The maximum number of consecutive batches without a readable row before the rest of a table is skipped. For versions, these
/// are 10,000 rows, more than a damaged interior page refers to.
pub(super) const UNREADABLE_BATCHES_MAX: u32 = 100;

#[cfg(test)]
mod tests {
    use std::{cell::Cell, ops::RangeInclusive};

    use super::*;

    /// Reads rows of which some are on damaged pages. Returns the sequences that were read, the gaps and the number of reads.
    async fn read(
        last: i64,
        end: i64,
        damaged: &[RangeInclusive<i64>],
    ) -> (Vec<i64>, Vec<(i64, Option<i64>)>, u32) {
        let reads = Cell::new(0);
        let read = async |range: SequenceRange| {
            reads.set(reads.get() + 1);
            let rows = range.after + 1..=range.until.min(last);
            let rows: Vec<i64> = rows.take(range.count_max as usize).collect();
            // Looking up a missing row on a damaged page fails, too.
            let mut visited = rows.clone();
            visited.extend((rows.is_empty()).then_some(range.after + 1));
            if visited
                .iter()
                .any(|row| damaged.iter().any(|damaged| damaged.contains(row)))
            {
                return Err(RepositoryError::Query("the page is damaged".into()));
            }
            Ok(rows)
        };
        let mut reading = Reading::new("t", end, 10);
        let (mut rows, mut gaps) = (Vec::new(), Vec::new());
        while !reading.is_done() {
            let batch = reading.next(read, |row| *row).await.unwrap();
            rows.extend(batch.rows);
            for fault in batch.unreadable {
                let Fault::Unreadable { after, until, .. } = fault else {
                    panic!("{fault}")
                };
                gaps.push((after, until));
            }
        }
        (rows, gaps, reads.get())
    }

    #[tokio::test]
    async fn all_rows_outside_damaged_pages_are_read() {
        for (damaged, gaps) in [
            (vec![], vec![]),
            (vec![1..=1], vec![(0, Some(1))]),
            (vec![35..=35], vec![(34, Some(35))]),
            (vec![4..=5, 9..=9], vec![(3, Some(5)), (8, Some(9))]),
            (vec![8..=13], vec![(7, Some(10)), (10, Some(13))]),
        ] {
            let (rows, found, _) = read(35, 35, &damaged).await;
            let sound = (1..=35).filter(|row| !damaged.iter().any(|one| one.contains(row)));
            assert_eq!(rows, sound.collect::<Vec<_>>(), "{damaged:?}");
            assert_eq!(found, gaps, "{damaged:?}");
        }
    }

    #[tokio::test]
    async fn a_table_with_an_unknown_end_is_read_to_its_last_row() {
        let (rows, gaps, reads) = read(25, i64::MAX, &[]).await;
        assert_eq!((rows.len(), gaps.len(), reads), (25, 0, 4));
    }

    #[tokio::test]
    async fn the_rest_is_skipped_after_too_many_unreadable_batches() {
        let max = i64::from(UNREADABLE_BATCHES_MAX);
        for (windows, end, is_read) in [(max - 1, 5_000, true), (max, 5_000, false)] {
            let (rows, gaps, _) = read(end, end, &[1..=10 * windows]).await;
            assert_eq!(rows.contains(&end), is_read);
            let last = gaps.last().unwrap();
            let until = is_read.then_some(10 * windows);
            assert_eq!(*last, (10 * (windows - 1), until));
        }
        let (_, gaps, _) = read(5_000, i64::MAX, &[1..=i64::MAX]).await;
        assert_eq!(gaps.last().unwrap().1, None);
    }

    #[tokio::test]
    async fn an_unavailable_database_is_not_reported_as_damage() {
        let unavailable = async |_| -> Result<Vec<i64>, RepositoryError> {
            Err(RepositoryError::Unavailable("connection refused".into()))
        };
        let outcome = Reading::new("t", 1, 10).next(unavailable, |row| *row).await;
        assert!(matches!(outcome, Err(RepositoryError::Unavailable(_))));
    }
}
