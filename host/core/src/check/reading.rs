//! Reading a table from its beginning to its end, around whatever of it can't be read.

use super::Fault;
use crate::ports::{RepositoryFailure, SequenceRange};

/// How far a table has been read.
pub(super) struct Reading {
    table: &'static str,
    after: i64,
    end: i64,
    count_max: u32,
    /// How often nothing at all could be read, one time after the other.
    in_vain: u32,
}

/// What was read, and what could not be.
pub(super) struct Batch<T> {
    pub(super) rows: Vec<T>,
    pub(super) unreadable: Vec<Fault>,
}

/// A row that has a place in its table.
pub(super) trait Sequenced {
    fn sequence(&self) -> i64;
}

impl Reading {
    /// A table of which nothing has been read, up to a sequence, so many rows at once.
    pub(super) fn new(table: &'static str, end: i64, count_max: u32) -> Self {
        Self {
            table,
            after: 0,
            end,
            count_max,
            in_vain: 0,
        }
    }

    /// Whether nothing is left.
    pub(super) fn is_done(&self) -> bool {
        self.after >= self.end
    }

    /// The last sequence that was looked at, and the last one that there is.
    pub(super) fn position(&self) -> (i64, i64) {
        (self.after.min(self.end), self.end)
    }

    /// The next rows. Where they can't be read together, each is read alone; where nothing can be read for long, the rest of
    /// the table is given up.
    pub(super) async fn next<T: Sequenced>(
        &mut self,
        read: impl AsyncFn(SequenceRange) -> Result<Vec<T>, RepositoryFailure>,
    ) -> Result<Batch<T>, RepositoryFailure> {
        let range = SequenceRange {
            after: self.after,
            until: self.end,
            count_max: self.count_max,
        };
        let Ok(rows) = unless_away(read(range).await)? else {
            return self.next_one_by_one(read).await;
        };
        self.after = rows.last().map_or(self.end, Sequenced::sequence);
        self.in_vain = 0;
        Ok(Batch {
            rows,
            unreadable: Vec::new(),
        })
    }

    async fn next_one_by_one<T: Sequenced>(
        &mut self,
        read: impl AsyncFn(SequenceRange) -> Result<Vec<T>, RepositoryFailure>,
    ) -> Result<Batch<T>, RepositoryFailure> {
        let until = self.end.min(self.after + i64::from(self.count_max));
        let mut rows = Vec::new();
        let mut gaps: Vec<Gap> = Vec::new();
        for sequence in self.after + 1..=until {
            match unless_away(read(alone(sequence)).await)? {
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
        let is_in_vain = gaps
            .first()
            .is_some_and(|gap| gap.after == self.after && gap.until == until);
        self.in_vain = if is_in_vain { self.in_vain + 1 } else { 0 };
        let is_given_up = self.in_vain >= IN_VAIN_MAX && until < self.end;
        self.after = if is_given_up { self.end } else { until };
        let unreadable = gaps.into_iter().map(|gap| Fault::Unreadable {
            table: self.table,
            after: gap.after,
            until: (!is_given_up).then_some(gap.until),
            cause: gap.cause,
        });
        Ok(Batch {
            rows,
            unreadable: unreadable.collect(),
        })
    }
}

/// Sequences that follow each other, of which none can be read.
struct Gap {
    after: i64,
    until: i64,
    /// What is said of the first.
    cause: String,
}

/// One row.
pub(super) fn alone(sequence: i64) -> SequenceRange {
    SequenceRange {
        after: sequence - 1,
        until: sequence,
        count_max: 1,
    }
}

/// What was read, or why it can't be, however often one tries.
///
/// # Errors
/// When the database does not answer.
pub(super) fn unless_away<T>(
    read: Result<T, RepositoryFailure>,
) -> Result<Result<T, String>, RepositoryFailure> {
    match read {
        Ok(read) => Ok(Ok(read)),
        Err(RepositoryFailure::Inconsistent(column)) => Ok(Err(format!("{column} is malformed"))),
        Err(RepositoryFailure::Query(cause)) => Ok(Err(cause.to_string())),
        Err(failure @ RepositoryFailure::Unavailable(_)) => Err(failure),
    }
}

/// How often in a row nothing may be readable before the rest of a table is given up: of the versions 10,000, more than hang on
/// a damaged page above them.
pub(super) const IN_VAIN_MAX: u32 = 100;

#[cfg(test)]
mod tests {
    use std::{cell::Cell, ops::RangeInclusive};

    use super::*;

    struct Row(i64);

    impl Sequenced for Row {
        fn sequence(&self) -> i64 {
            self.0
        }
    }

    /// What is read of the rows up to a last one of which some are on damaged pages: the sequences, and what is told of the
    /// others; with how often something was read.
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
            // Where a page is damaged, what is not there can't be read either.
            let mut looked_at = rows.clone();
            looked_at.extend((rows.is_empty()).then_some(range.after + 1));
            if looked_at
                .iter()
                .any(|row| damaged.iter().any(|damaged| damaged.contains(row)))
            {
                return Err(RepositoryFailure::Query("the page is damaged".into()));
            }
            Ok(rows.into_iter().map(Row).collect())
        };
        let mut reading = Reading::new("t", end, 10);
        let (mut rows, mut gaps) = (Vec::new(), Vec::new());
        while !reading.is_done() {
            let batch = reading.next(read).await.unwrap();
            rows.extend(batch.rows.iter().map(Sequenced::sequence));
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
    async fn all_is_read_but_what_is_on_damaged_pages() {
        for (damaged, gaps) in [
            (vec![], vec![]),
            (vec![1..=1], vec![(0, Some(1))]),
            (vec![35..=35], vec![(34, Some(35))]),
            (vec![4..=5, 9..=9], vec![(3, Some(5)), (8, Some(9))]),
            (vec![8..=13], vec![(7, Some(10)), (10, Some(13))]),
        ] {
            let (rows, told, _) = read(35, 35, &damaged).await;
            let sound = (1..=35).filter(|row| !damaged.iter().any(|one| one.contains(row)));
            assert_eq!(rows, sound.collect::<Vec<_>>(), "{damaged:?}");
            assert_eq!(told, gaps, "{damaged:?}");
        }
    }

    #[tokio::test]
    async fn a_table_whose_end_is_not_known_is_read_as_far_as_there_are_rows() {
        let (rows, gaps, reads) = read(25, i64::MAX, &[]).await;
        assert_eq!((rows.len(), gaps.len(), reads), (25, 0, 4));
    }

    #[tokio::test]
    async fn the_rest_is_given_up_where_nothing_can_be_read_for_too_long() {
        let in_vain_max = i64::from(IN_VAIN_MAX);
        for (windows, end, is_read) in [(in_vain_max - 1, 5_000, true), (in_vain_max, 5_000, false)]
        {
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
    async fn a_database_that_does_not_answer_is_no_damage() {
        let away = async |_| -> Result<Vec<Row>, RepositoryFailure> {
            Err(RepositoryFailure::Unavailable("nobody answers".into()))
        };
        let outcome = Reading::new("t", 1, 10).next(away).await;
        assert!(matches!(outcome, Err(RepositoryFailure::Unavailable(_))));
    }
}
