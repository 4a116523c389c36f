//! Parses requests.
//!
//! The path is normalized first (`path.rs`). A handler's arguments then parse the query (`query.rs`), and receive the body
//! (`body.rs`) and deserialize it (`strict_json.rs`).

mod body;
mod path;
mod query;
mod strict_json;

pub(crate) use body::{has_media_type, read_body, read_json_body};
pub(crate) use path::{OriginalTarget, with_normal_path};
pub(crate) use query::{QueryError, QueryParameters};
pub(crate) use strict_json::{
    BodyError, JsonText, Metadata, RequestObject, StrictJson, parse_document, truncated_name,
};
