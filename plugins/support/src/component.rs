/// Implements the exports of a generator without an issuer for a plugin's own bindings: `descriptor`, `generator`,
/// `normalizer`, `acceptor`, and `recoverer` if `recover` is given.
///
/// Defines the type `Component`, which the caller's module of bindings exports. The plugin's version is that of its package.
#[macro_export]
macro_rules! generator_component {
    (
        bindings: $bindings:ident,
        credential_type: $credential_type:literal,
        summary: $summary:literal,
        parameters_schema: $parameters_schema:expr,
        value_schema: $value_schema:expr,
        entropy_bits_min: $entropy_bits_min:expr,
        generate: $generate:expr,
        normalize: $normalize:expr,
        accept: $accept:expr,
        $(recover: $recover:expr,)?
    ) => {
        use $bindings::{
            exports::keywright::generator as exported, keywright::generator::types::Failure,
            wasi::random::random::get_random_bytes,
        };

        $crate::wit_failure!($bindings::keywright::generator::types);

        struct Component;

        impl exported::descriptor::Guest for Component {
            fn describe() -> exported::descriptor::Description {
                exported::descriptor::Description {
                    credential_type: $credential_type.to_owned(),
                    plugin_version: env!("CARGO_PKG_VERSION").to_owned(),
                    summary: $summary.to_owned(),
                    parameters_schema: $parameters_schema.to_owned(),
                    value_schema: $value_schema.to_owned(),
                    issuer_parameter: None,
                    entropy_bits_min: Some($entropy_bits_min),
                }
            }
        }

        impl exported::generator::Guest for Component {
            fn generate(generation: exported::generator::Generation) -> Result<String, Failure> {
                let mut random = $crate::HostRandom::new(get_random_bytes);
                Ok($generate(&generation.parameters, &generation.settings, &mut random)?)
            }
        }

        impl exported::normalizer::Guest for Component {
            fn normalize(parameters: String, settings: String) -> Result<String, Failure> {
                Ok($normalize(&parameters, &settings)?)
            }
        }

        impl exported::acceptor::Guest for Component {
            fn accept(value: String, settings: String) -> Result<String, Failure> {
                let mut random = $crate::HostRandom::new(get_random_bytes);
                Ok($accept(&value, &settings, &mut random)?)
            }
        }

        $($crate::wit_recoverer!($bindings, Component, $recover);)?
    };
}

/// Implements the export `recoverer` of a component for a plugin's own bindings.
#[macro_export]
macro_rules! wit_recoverer {
    ($bindings:ident, $component:ident, $recover:expr) => {
        const _: () = {
            use $bindings::{
                exports::keywright::generator::recoverer, keywright::generator::types::Failure,
            };

            impl recoverer::Guest for $component {
                fn recover(
                    stored: recoverer::Stored,
                    settings: String,
                ) -> Result<recoverer::Recovered, Failure> {
                    let recovered = $recover(stored.parameters, &stored.value, &settings)?;
                    Ok(recoverer::Recovered {
                        parameters: recovered.parameters,
                        complete: recovered.is_complete,
                    })
                }
            }
        };
    };
}
