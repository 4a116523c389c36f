//! When many requests are to end because of one that failed.

use std::cell::Cell;

use crate::Error;

/// The failures of a run that asks for many things, as far as they tell whether it is of use to go on.
#[derive(Default)]
pub(crate) struct Endings {
    /// How often the connection was lost.
    losses: Cell<u64>,
    /// How often that was since the server answered last.
    in_a_row: Cell<u32>,
}

/// When a request was begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    after_losses: u64,
}

impl Endings {
    /// A request is begun now.
    pub(crate) fn begin(&self) -> Begun {
        Begun {
            after_losses: self.losses.get(),
        }
    }

    /// The server has answered.
    pub(crate) fn answered(&self) {
        self.in_a_row.set(0);
    }

    /// Whether no other request would fare better than this one, which was begun then. What one path does not allow, another
    /// may; and a connection that was lost may be had again.
    pub(crate) fn ends_all(&self, begun: Begun, error: &Error) -> bool {
        match error {
            Error::Unreachable { .. } => {
                // What was on its way at once was lost at once.
                if begun.after_losses == self.losses.get() {
                    self.losses.set(self.losses.get() + 1);
                    self.in_a_row.set(self.in_a_row.get() + 1);
                }
                self.in_a_row.get() >= LOSSES_IN_A_ROW_MAX
            }
            Error::Refused(refusal) => {
                self.answered();
                matches!(refusal.status, 401 | 503)
            }
            // It was asked as often as the client's retries say, and each request needs what it did not give.
            Error::ProviderUnavailable(_)
            | Error::LoginRefused(_)
            | Error::NotLoggedIn
            | Error::LoginExpired => true,
            _ => false,
        }
    }
}

/// How often the server may be out of reach, one time after the other, before nothing more is asked of it. Before each time
/// but the first, connections were tried as often as the client's retries say.
pub(crate) const LOSSES_IN_A_ROW_MAX: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Loss, Refusal};

    fn lost() -> Error {
        Error::Unreachable {
            server: "https://a.example".to_owned(),
            cause: "lost".to_owned(),
            loss: Loss::Lost,
        }
    }

    fn refused(status: u16) -> Error {
        Error::Refused(Refusal::read(status, br#"{"error":"no"}"#))
    }

    #[test]
    fn what_is_lost_together_counts_once_and_an_answer_begins_anew() {
        let endings = Endings::default();
        for _ in 0..2 {
            for _ in 1..LOSSES_IN_A_ROW_MAX {
                let together = [endings.begin(); 8];
                for begun in together {
                    assert!(!endings.ends_all(begun, &lost()));
                }
            }
            endings.answered();
        }
        for _ in 1..LOSSES_IN_A_ROW_MAX {
            assert!(!endings.ends_all(endings.begin(), &lost()));
        }
        assert!(endings.ends_all(endings.begin(), &lost()));
    }

    #[test]
    fn who_is_not_let_in_needs_ask_no_more_and_who_may_not_do_one_thing_may_do_another() {
        let endings = Endings::default();
        for (error, expected) in [
            (refused(400), false),
            (refused(401), true),
            (refused(403), false),
            (refused(404), false),
            (refused(503), true),
            (Error::LoginExpired, true),
            (Error::NotLoggedIn, true),
            (Error::ProviderUnavailable(Box::new(lost())), true),
            (Error::ProviderUnavailable(Box::new(refused(500))), true),
            (Error::AnswerEmpty, false),
        ] {
            assert_eq!(
                endings.ends_all(endings.begin(), &error),
                expected,
                "{error}"
            );
        }
    }
}
