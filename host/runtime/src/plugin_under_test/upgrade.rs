//! Comparing two releases of a generator: the effects on the credentials of the old release when the new release is configured.
//!
//! For each request, the old release generates a value. The same functions as in a server then converge or regenerate it with
//! the new release, so a prediction equals the behavior of a server.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use keywright_core::{
    Secret, UseCaseError,
    credential::{
        BaseVersion, CredentialType, Parameters, RequestedParameters, canonical_parameters,
        is_generated_from, regeneration_parameters,
    },
    ports::{Generator, PluginCallError},
    text::for_log,
};
use serde::Serialize;
use serde_json::{Map, Value};
use strum::Display;

use super::{
    PluginTestError, PluginUnderTest, Vector,
    description_changes::{Difference, Effect, differences},
    on_calling_thread,
    requests::requests,
};
use crate::{
    breaker::Breakers,
    config::SandboxConfig,
    generator::{GeneratorGuest, InputParameters, TestInputs, WasmGenerator},
    host::{SystemRandom, TestIssuers},
    lane::Lanes,
    load_error::PluginRefusedError,
    schema::SensitiveJson,
};

/// The comparison of a generator with an older release.
#[derive(Debug, Serialize)]
pub struct UpgradeReport {
    /// The worst of all effects.
    pub verdict: Effect,
    /// The plugin version of the old release.
    pub old_version: String,
    /// The plugin version of the new release.
    pub new_version: String,
    /// The differences between the descriptions.
    pub description: Vec<Difference>,
    /// The compared requests: all requests that the old release accepts.
    pub requests: Vec<ComparedRequest>,
}

/// A request to generate a credential, and predictions for this credential after the upgrade.
#[derive(Debug, Serialize)]
pub struct ComparedRequest {
    /// The requested parameters.
    pub parameters: Map<String, Value>,
    /// One prediction for each operation.
    pub predictions: Vec<Prediction>,
}

/// The predicted outcome of an operation after the upgrade.
#[derive(Debug, Serialize)]
pub struct Prediction {
    /// The operation.
    pub operation: Operation,
    /// Its outcome with the new release.
    pub outcome: Outcome,
    /// The difference from the old release.
    pub effect: Effect,
    /// The change, or the reason for the failure.
    pub reason: Option<String>,
}

/// An operation on a value of the old release.
#[derive(Clone, Copy, Debug, Display, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "lowercase")]
pub enum Operation {
    /// The same request in mode `converge`.
    Converge,
    /// Regenerating the credential.
    Regenerate,
    /// Setting a credential to the value, for example by an import.
    Set,
    /// The same request in mode `converge`, for a credential that was set to the value.
    #[strum(serialize = "converge a set value")]
    ConvergeSet,
    /// Regenerating a credential that was set to the value.
    #[strum(serialize = "regenerate a set value")]
    RegenerateSet,
}

/// The outcome of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Converge keeps the value; regenerate uses the same parameters as the old release; set accepts the value.
    Same,
    /// Converge adds a version; regenerate uses other parameters, or its value violates the schema of the old release.
    Changed,
    /// The operation fails.
    Failed,
}

impl PluginUnderTest {
    /// Compares a generator with an older release: their descriptions, and what a server does with requests and stored
    /// credentials of the old release. Also compares the requests in `vectors`.
    ///
    /// # Errors
    /// If a server would refuse one of them, for a reason other than its randomness or the settings of the new release.
    pub async fn compare_with(
        &self,
        old: &Self,
        vectors: &[Vector],
        now: DateTime<Utc>,
    ) -> Result<UpgradeReport, PluginTestError> {
        let (mut before, after) = (old.described()?, self.described()?);
        if let Some(refusal) = before.refused_settings.take() {
            return Err(old.refused(refusal));
        }
        let description = differences(&before, &after);
        // A server refuses the new release for another type, or with settings that violate its schema.
        let is_same_type = before.generator.credential_type == after.generator.credential_type;
        let compared = if is_same_type && after.refused_settings.is_none() {
            let given = vectors.iter().filter_map(Vector::parameters);
            let requests = requests(&before.generator, given);
            self.compared(old, requests, now).await?
        } else {
            Vec::new()
        };
        let effects = compared.iter().flat_map(|request| &request.predictions);
        let effects = effects.map(|prediction| prediction.effect);
        let effects = effects.chain(description.iter().map(|difference| difference.effect));
        Ok(UpgradeReport {
            verdict: effects.max().unwrap_or(Effect::Compatible),
            old_version: before.generator.plugin_version,
            new_version: after.generator.plugin_version,
            description,
            requests: compared,
        })
    }

    /// Compares the requests that the old release accepts.
    async fn compared(
        &self,
        old: &Self,
        requests: Vec<Map<String, Value>>,
        now: DateTime<Utc>,
    ) -> Result<Vec<ComparedRequest>, PluginTestError> {
        let old_guest = old.own_guest()?;
        let credential_type = &old_guest.plugin.identity.name;
        let comparison = Comparison {
            credential_type: CredentialType::parse(credential_type)
                .map_err(|_| old.refused(PluginRefusedError::CredentialTypeMalformed))?,
            old: Release {
                generator: old.generator()?,
                input_parameters: old_guest.input_parameters.clone(),
            },
            new: Release {
                generator: self.generator()?,
                input_parameters: self.own_guest()?.input_parameters,
            },
            old_guest,
            issuers: Arc::clone(&self.host.issuers),
            now,
        };
        let mut compared = Vec::new();
        for parameters in requests {
            self.host
                .begin(&format!("comparing request {}", compared.len() + 1));
            if let Some(predictions) = comparison.predictions(&parameters).await {
                compared.push(ComparedRequest {
                    parameters,
                    predictions,
                });
            }
        }
        Ok(compared)
    }

    /// Returns the generator as a server calls it, on threads of its own. Its notes are discarded.
    fn generator(&self) -> Result<Arc<dyn Generator>, PluginTestError> {
        let mut guest = self.own_guest()?;
        guest.plugin.notes = None;
        let lanes = Lanes::start([1, 1], SandboxConfig::new(PathBuf::new()).queue_limits())?;
        let breaker = Breakers::new(u32::MAX, Duration::ZERO).of(&self.digest);
        Ok(Arc::new(WasmGenerator::new(
            guest,
            Arc::new(lanes),
            breaker,
        )))
    }

    fn own_guest(&self) -> Result<GeneratorGuest, PluginTestError> {
        on_calling_thread(|| self.guest(None, Arc::new(SystemRandom), &Arc::default()))?
    }
}

/// Two releases of a generator.
struct Comparison {
    credential_type: CredentialType,
    /// For the schema of values.
    old_guest: GeneratorGuest,
    old: Release,
    new: Release,
    issuers: TestIssuers,
    now: DateTime<Utc>,
}

/// A release of a generator.
struct Release {
    generator: Arc<dyn Generator>,
    input_parameters: InputParameters,
}

impl Comparison {
    /// Returns the predictions for a request, or `None` if the old release does not generate a value.
    async fn predictions(&self, parameters: &Map<String, Value>) -> Option<Vec<Prediction>> {
        let requested = RequestedParameters::from(parameters.clone());
        let canonical = self.canonical(&requested, &self.old).await.ok()?;
        let value = self.generate(&self.old, &canonical).await.ok()?;
        let generated = BaseVersion {
            credential_type: &self.credential_type,
            value: &value,
            parameters: Some(&canonical),
            generated_by: Some(&self.old.generator.identity().digest),
        };
        let mut predictions = vec![
            self.converge(Operation::Converge, generated, &requested)
                .await,
            self.regenerate(Operation::Regenerate, generated).await,
        ];
        // The host, not the plugin, checks certificates that are set.
        if !self.credential_type.is_certificate()
            && let Ok(accepted) = self.old.generator.accept(&value).await
        {
            let set = BaseVersion {
                value: &accepted,
                parameters: None,
                generated_by: None,
                ..generated
            };
            predictions.extend([
                self.set(&value).await,
                self.converge(Operation::ConvergeSet, set, &requested).await,
                self.regenerate(Operation::RegenerateSet, set).await,
            ]);
        }
        Some(predictions)
    }

    async fn converge(
        &self,
        operation: Operation,
        stored: BaseVersion<'_>,
        requested: &RequestedParameters,
    ) -> Prediction {
        let (before, _) = self.converged(stored, requested, &self.old).await;
        let (outcome, reason) = self.converged(stored, requested, &self.new).await;
        prediction(operation, before, outcome, reason)
    }

    async fn converged(
        &self,
        stored: BaseVersion<'_>,
        requested: &RequestedParameters,
        release: &Release,
    ) -> (Outcome, Option<String>) {
        let generator = release.generator.as_ref();
        let outcome = async {
            let effective = self.canonical(requested, release).await?;
            if is_generated_from(stored, &effective, generator).await? {
                return Ok((Outcome::Same, None));
            }
            self.generate(release, &effective).await?;
            let compared = regeneration_parameters(stored, generator).await.ok();
            let compared = compared.as_ref().or(stored.parameters);
            let changes = compared.map(|compared| changes(compared, &effective));
            let reason = match changes.filter(|changes| !changes.is_empty()) {
                Some(changes) => format!("adds a version: {changes}"),
                None => "adds a version".to_owned(),
            };
            Ok((Outcome::Changed, Some(reason)))
        };
        outcome.await.unwrap_or_else(|failure| failed(&failure))
    }

    async fn regenerate(&self, operation: Operation, stored: BaseVersion<'_>) -> Prediction {
        let before = regeneration_parameters(stored, self.old.generator.as_ref()).await;
        let outcome = async {
            let parameters = regeneration_parameters(stored, self.new.generator.as_ref()).await?;
            let value = self.generate(&self.new, &parameters).await?;
            Ok(match &before {
                Ok(before) if *before != parameters => {
                    let changes = changes(before, &parameters);
                    let reason = format!("uses other parameters: {changes}");
                    (Outcome::Changed, Some(reason))
                }
                _ if !self.has_old_shape(&value) => {
                    (Outcome::Changed, Some(OTHER_SHAPE.to_owned()))
                }
                _ => (Outcome::Same, None),
            })
        };
        let (outcome, reason) = outcome.await.unwrap_or_else(|failure| failed(&failure));
        let before = before.map_or(Outcome::Failed, |_| Outcome::Same);
        prediction(operation, before, outcome, reason)
    }

    /// Sets a value that the old release accepts.
    async fn set(&self, value: &Secret) -> Prediction {
        let (outcome, reason) = match self.new.generator.accept(value).await {
            Ok(_) => (Outcome::Same, None),
            Err(failure) => failed(&failure.into()),
        };
        prediction(Operation::Set, Outcome::Same, outcome, reason)
    }

    /// Generates a value. If the parameters name an issuer, the test CA signs. Inputs are the examples of the release.
    async fn generate(
        &self,
        release: &Release,
        parameters: &Parameters,
    ) -> Result<Secret, PluginCallError> {
        let generator = release.generator.as_ref();
        let name = generator.issuer_parameter();
        let named = name.and_then(|name| parameters.text(name));
        let issuer = named.and_then(|_| (self.issuers)(parameters, self.now));
        let inputs = release
            .input_parameters
            .test_inputs(parameters, &TestInputs::default())?;
        generator
            .generate(parameters, self.now, issuer, inputs)
            .await
    }

    async fn canonical(
        &self,
        requested: &RequestedParameters,
        release: &Release,
    ) -> Result<Parameters, UseCaseError> {
        let generator = release.generator.as_ref();
        canonical_parameters(&self.credential_type, Some(requested), generator).await
    }

    fn has_old_shape(&self, value: &Secret) -> bool {
        let schema = &self.old_guest.description.value_schema;
        SensitiveJson::parse(value).is_ok_and(|json| schema.is_valid(json.value()))
    }
}

fn prediction(
    operation: Operation,
    before: Outcome,
    outcome: Outcome,
    reason: Option<String>,
) -> Prediction {
    let effect = match (before, outcome) {
        (Outcome::Failed, _) => Effect::Compatible,
        (_, Outcome::Failed) => Effect::Breaks,
        (Outcome::Same, Outcome::Changed) => Effect::Changes,
        _ => Effect::Compatible,
    };
    Prediction {
        operation,
        outcome,
        effect,
        reason,
    }
}

fn failed(failure: &UseCaseError) -> (Outcome, Option<String>) {
    (Outcome::Failed, Some(for_log(&failure.to_string())))
}

/// Describes the parameters that differ: `length: 16, now 24`.
fn changes(before: &Parameters, after: &Parameters) -> String {
    let names = [before, after].map(|parameters| parameters.clone().into_fields());
    let names: BTreeSet<_> = names.iter().flat_map(Map::keys).collect();
    let text = |value: Option<&Value>| value.map_or_else(|| "absent".to_owned(), Value::to_string);
    let changes: Vec<_> = names
        .into_iter()
        .map(|name| (name, before.field(name), after.field(name)))
        .filter(|(_, before, after)| before != after)
        .map(|(name, before, after)| format!("{name}: {}, now {}", text(before), text(after)))
        .collect();
    for_log(&changes.join("; "))
}

/// The reason if a value violates the schema of the old release.
const OTHER_SHAPE: &str = "returns a value that does not match the schema of the old release";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parameters(json: &Value) -> Parameters {
        Parameters::new(json.as_object().unwrap().clone())
    }

    #[test]
    fn changes_list_only_parameters_that_differ() {
        for (before, after, expected) in [
            (json!({"a": 1}), json!({"a": 1}), ""),
            (json!({"a": 1, "b": null}), json!({"a": 2}), "a: 1, now 2"),
            (
                json!({"b": 1}),
                json!({"a": "x"}),
                r#"a: absent, now "x"; b: 1, now absent"#,
            ),
        ] {
            assert_eq!(changes(&parameters(&before), &parameters(&after)), expected);
        }
    }

    #[test]
    fn only_a_worse_outcome_than_before_changes_or_breaks() {
        use Outcome::{Changed, Failed, Same};
        for (before, outcome, effect) in [
            (Same, Same, Effect::Compatible),
            (Same, Changed, Effect::Changes),
            (Same, Failed, Effect::Breaks),
            (Changed, Changed, Effect::Compatible),
            (Changed, Same, Effect::Compatible),
            (Changed, Failed, Effect::Breaks),
            (Failed, Failed, Effect::Compatible),
            (Failed, Changed, Effect::Compatible),
        ] {
            let predicted = prediction(Operation::Converge, before, outcome, None);
            assert_eq!(predicted.effect, effect, "{before:?} {outcome:?}");
        }
    }
}
