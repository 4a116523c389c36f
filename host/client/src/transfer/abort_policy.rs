//! Decides whether a failed request aborts the whole run.

use std::cell::Cell;

use crate::Error;

/// The connection losses of a run of many requests.
#[derive(Default)]
pub(crate) struct Losses {
    total: Cell<u64>,
    /// The number of losses since the last response.
    in_a_row: Cell<u32>,
}

/// The point at which a request was started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestStart {
    after_losses: u64,
}

impl Losses {
    /// Returns the start of a request, to pass to [`Losses::aborts_run`].
    pub(crate) fn begin(&self) -> RequestStart {
        RequestStart {
            after_losses: self.total.get(),
        }
    }

    /// Records a response of the server.
    pub(crate) fn responded(&self) {
        self.in_a_row.set(0);
    }

    /// Returns whether the error of this request aborts the run, because all other requests would fail as well.
    pub(crate) fn aborts_run(&self, started: RequestStart, error: &Error) -> bool {
        match error {
            Error::Unreachable { .. } => {
                // An outage fails all concurrent requests, so their failures count as one loss.
                if started.after_losses == self.total.get() {
                    self.total.set(self.total.get() + 1);
                    self.in_a_row.set(self.in_a_row.get() + 1);
                }
                self.in_a_row.get() >= LOSSES_IN_A_ROW_MAX
            }
            Error::Refused(refusal) => {
                self.responded();
                matches!(refusal.status, 401 | 503)
            }
            Error::OtherServer { .. }
            | Error::ResponseEmpty
            | Error::ResponseNotEmpty
            | Error::ResponseOfOther(_)
            | Error::ResponseMalformed(_)
            | Error::ResponseTooLarge(_)
            | Error::RequestMalformed(_) => false,
            // There is no token, although every request needs one, or the server refuses the client certificate.
            _ => true,
        }
    }
}

/// The number of consecutive losses that aborts a run. A request counts as lost only after all its retries failed.
pub(crate) const LOSSES_IN_A_ROW_MAX: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Loss, ResponseError};

    fn lost() -> Error {
        Error::Unreachable {
            server: "https://a.example".to_owned(),
            cause: "lost".to_owned(),
            loss: Loss::Lost,
        }
    }

    fn refused(status: u16) -> Error {
        Error::Refused(ResponseError::read(status, br#"{"error":"no"}"#))
    }

    #[test]
    fn simultaneous_losses_count_once_and_responses_reset_the_count() {
        let losses = Losses::default();
        for _ in 0..2 {
            for _ in 1..LOSSES_IN_A_ROW_MAX {
                let together = [losses.begin(); 8];
                for started in together {
                    assert!(!losses.aborts_run(started, &lost()));
                }
            }
            losses.responded();
        }
        for _ in 1..LOSSES_IN_A_ROW_MAX {
            assert!(!losses.aborts_run(losses.begin(), &lost()));
        }
        assert!(losses.aborts_run(losses.begin(), &lost()));
    }

    #[test]
    fn only_errors_that_affect_every_request_end_the_run() {
        let losses = Losses::default();
        for (error, expected) in [
            (refused(400), false),
            (refused(401), true),
            (refused(403), false),
            (refused(404), false),
            (refused(503), true),
            (Error::LoginExpired, true),
            (Error::TokenExpired("file".to_owned()), true),
            (Error::NotLoggedIn, true),
            (Error::ProviderUnavailable(Box::new(lost())), true),
            (Error::ProviderUnavailable(Box::new(refused(500))), true),
            (Error::ProviderChanged("https://b.example".to_owned()), true),
            (Error::NoIdentityProvider, true),
            (Error::ResponseEmpty, false),
            (Error::ResponseOfOther("/b".to_owned()), false),
            (Error::ResponseTooLarge(1), false),
        ] {
            assert_eq!(
                losses.aborts_run(losses.begin(), &error),
                expected,
                "{error}"
            );
        }
    }
}
