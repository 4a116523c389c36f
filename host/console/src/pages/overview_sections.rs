//! The sections of the overview on types, rotations and plugins.

use keywright_core::{
    credential::{CredentialCounts, RotatingAuthorities},
    encryption_key::KeyUsage,
    ports::PluginState,
};
use maud::{Markup, html};

use super::keys_and_plugins::{circuit, rotation};
use crate::paths::{GENERATE, KEYS_AND_PLUGINS, link_to_rotation};

/// Renders the numbers of credentials by type.
pub(super) fn types(counts: &CredentialCounts) -> Markup {
    html! {
        section aria-labelledby="types" {
            h2 id="types" { "Credentials by type" }
            @if counts.by_type.is_empty() {
                p.empty {
                    "There is no credential that you may read. Ask an administrator for permission to read a path, or "
                    a href=(GENERATE) { "generate a credential" } "."
                }
            } @else {
                dl.counts {
                    @for (credential_type, count) in &counts.by_type {
                        div { dt { (credential_type.as_str()) } dd { (count) } }
                    }
                }
            }
            @if !counts.is_complete { p { "You may read more than the " (counts.total()) " credentials that were counted." } }
        }
    }
}

/// Renders the rotations of CAs and of the encryption key that are not complete.
pub(super) fn rotations(authorities: &RotatingAuthorities, usage: &KeyUsage) -> Markup {
    let key_rotation = rotation(usage);
    html! {
        section aria-labelledby="rotations" {
            h2 id="rotations" { "Rotations in progress" }
            @if authorities.names.is_empty() && key_rotation.is_none() {
                p.empty { "No CA that you may read has a transitional version, and all versions are encrypted with the active key. To rotate a CA, open its certificate and select " strong { "Rotate this CA" } "." }
            }
            @if !authorities.names.is_empty() {
                p { "CAs with a transitional version:" }
                ul.plain {
                    @for name in &authorities.names { li { a href=(link_to_rotation(name.as_str())) { (name.as_str()) } } }
                }
            }
            @if authorities.has_more { p { "Only the " (authorities.names.len()) " oldest CAs are shown." } }
            @if let Some(key_rotation) = key_rotation { (key_rotation) }
        }
    }
}

/// Renders the plugins with an open circuit.
pub(super) fn plugins(states: &[PluginState]) -> Markup {
    let open = states
        .iter()
        .filter_map(|plugin| Some((plugin, plugin.open_circuit.as_ref()?)));
    let open: Vec<_> = open.collect();
    html! {
        section aria-labelledby="circuits" {
            h2 id="circuits" { "Disabled plugins" }
            @if open.is_empty() {
                p.empty { "No plugin is disabled. A plugin that keeps failing appears here; see " a href=(KEYS_AND_PLUGINS) { "all plugins" } "." }
            } @else {
                ul.plain {
                    @for (plugin, open) in open { li { a href=(KEYS_AND_PLUGINS) { (plugin.identity.name) } ": " (circuit(open)) } }
                }
                p { "The reasons are in the server's log." }
            }
        }
    }
}
