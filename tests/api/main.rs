//! The API as its callers see it: a real server, driven over HTTPS. One folder a noun, one file a verb or a rule.

mod audit;
mod authentication;
mod authorization;
mod bulk_regenerate;
mod certificate_settings;
mod certificates;
mod credentials;
mod generate;
mod given;
mod http;
mod interpolate;
mod keys;
mod lifecycle;
mod limits;
mod made_elsewhere;
mod management;
mod measurements;
mod mutual_tls;
mod names;
mod operations;
mod permissions;
mod regenerate;
mod rotation;
mod set;
mod storage;
