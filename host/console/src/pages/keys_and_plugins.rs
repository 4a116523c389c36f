//! The encryption keys, the credential types and the plugins of this server.

use std::time::Duration;

use axum::extract::Request;
use keywright_core::{
    credential::KnownType,
    encryption_key::{KeyUsage, UsedKey},
    ports::{KeyStatus, PluginState},
};
use maud::{Markup, html};

use crate::{
    page::{PageResult, table},
    paths::KEYS_AND_PLUGINS,
    state::Visit,
};

/// Shows the keys, the types and the plugins. None of this depends on the user's permissions, as in the API.
pub(crate) async fn show(visit: Visit, _: Request) -> PageResult {
    let mut used = visit.ports().encryption_keys.used().await?;
    // The records of keys remain after the keys are removed from the configuration.
    used.retain(|key| key.status != KeyStatus::Unknown || key.versions > 0);
    used.sort_by_key(|key| (key.status, key.id));
    let types = visit.ports().credentials.types.all();
    let plugins = visit.ports().plugins.states(visit.caller.actor());
    let page = visit.page(KEYS_AND_PLUGINS, "Keys and plugins");
    Ok(page.render(&html! {
        (keys(&used))
        (table_of_plugins(&types, &plugins))
    }))
}

/// Renders the progress of a rotation of the encryption key, if one is not complete.
pub(super) fn rotation(usage: &KeyUsage) -> Option<Markup> {
    let active_key = usage.active_key;
    let total = active_key.saturating_add(usage.inactive_keys);
    (usage.inactive_keys > 0).then(|| {
        html! {
            p {
                label for="rotation" { "Rotation of the encryption key" } " "
                progress id="rotation" max=(total) value=(active_key) {}
            }
            p { (active_key) " of " (total) " versions are encrypted with the active key. The server re-encrypts the others in the background, unless " code { "encryption.rotation" } " is off." }
        }
    })
}

/// Renders the circuit of a plugin that is temporarily disabled for the user.
pub(super) fn circuit(open_for: Duration) -> Markup {
    html! { span.mark.late { "open" } " for you, next attempt in " (seconds(open_for)) }
}

/// Returns a duration in whole seconds, rounded up.
fn seconds(duration: Duration) -> String {
    match duration.as_millis().div_ceil(1_000) {
        1 => "1 second".to_owned(),
        seconds => format!("{seconds} seconds"),
    }
}

fn keys(used: &[UsedKey]) -> Markup {
    let usage = KeyUsage::of(used);
    let rows = html! {
        @for key in used {
            tr {
                th scope="row" { code { (key.id) } }
                td {
                    @match key.status {
                        KeyStatus::Active => span.mark.active { "active" },
                        KeyStatus::Inactive => "inactive",
                        KeyStatus::Unknown => span.mark.late { "not configured" },
                    }
                }
                td { (key.versions) }
            }
        }
    };
    html! {
        section id="encryption-keys" aria-labelledby="keys" data-live[usage.inactive_keys > 0] {
            h2 id="keys" { "Encryption keys" }
            p { "The number of stored versions that each key encrypts. " code { "keywright keys status" } " prints the same ids." }
            (table("Table of the keys", &["Key", "State", "Versions"], &rows))
            @if let Some(rotation) = rotation(&usage) { (rotation) }
            @if usage.unknown_keys > 0 { p { "Number of versions that can't be read because their keys are not configured: " (usage.unknown_keys) ". Ask an administrator to configure the keys." } }
        }
    }
}

fn table_of_plugins(types: &[KnownType], plugins: &[PluginState]) -> Markup {
    let generator = |known: &KnownType| {
        let mut plugins = plugins.iter();
        plugins.find(|plugin| {
            let generated = plugin.credential_type.as_ref();
            generated.is_some_and(|generated| generated.as_str() == known.name)
        })
    };
    let mut others = plugins.iter();
    let resolver = others.find(|plugin| plugin.credential_type.is_none());
    let columns = ["Type", "Plugin", "Randomness", "Calls", "Faults", "Circuit"];
    let rows = html! {
        @for known in types { (row(&known.name, &known.summary, generator(known))) }
        @if resolver.is_some() { (row("resolver", "Finds references in documents for interpolation.", resolver)) }
    };
    html! {
        section aria-labelledby="plugins" {
            h2 id="plugins" { "Types and plugins" }
            p { "Calls and faults are counted on this server, from the time when the plugin was loaded." }
            (table("Table of the types", &columns, &rows))
            @if plugins.is_empty() { p.empty { "No plugins are configured on this server. Ask an administrator to configure a generator." } }
        }
    }
}

fn row(name: &str, summary: &str, plugin: Option<&PluginState>) -> Markup {
    html! {
        tr {
            th scope="row" { strong { (name) } p.detail { (summary) } }
            @if let Some(plugin) = plugin {
                td.wide { (plugin.identity.version) p.detail { "sha256:" (plugin.identity.digest) } }
                td.wrapped { (randomness(plugin)) }
                td { (plugin.calls) }
                td { @if plugin.faults > 0 { span.mark.soon { (plugin.faults) } } @else { "0" } }
                td.wrapped { @if let Some(open_for) = plugin.circuit_open_for { (circuit(open_for)) } @else { "closed" } }
            } @else {
                td colspan="5" { "Set by callers, without a plugin." }
            }
        }
    }
}

fn randomness(plugin: &PluginState) -> Markup {
    html! {
        @match (plugin.entropy_bits_min, &plugin.credential_type) {
            (Some(bits), _) => { "tested: at least " (bits) " bits" },
            (None, Some(_)) => "derives its values",
            (None, None) => "not applicable",
        }
    }
}
