//! Regenerating a credential: `POST /api/v1/regenerate`.

mod certificate;
mod certificate_kept;
mod certificate_limits;
mod certificate_set;
mod keys;
mod password_and_user;
mod requests;
