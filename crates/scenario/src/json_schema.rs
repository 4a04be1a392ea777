//! JSON Schemas of the files that people write, for editors that complete and check them.
//!
//! Structs that derive `Deserialize` derive their schema too. Here is what is common to all files:
//! a field that is left out is not written as `null`, a text may look like a number, and names of
//! models, GPUs, policies, strategies and workloads are offered.

use crate::scenario::schema::Scenario;
use crate::strategy::StrategyFields;
use crate::workload_spec::Spec;
use crate::{presets, profile, strategy};
use blis_latency::Catalogue;
use blis_policy::registry;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// The schema of a file that is read as a `T`, called `title`.
pub fn of<T: JsonSchema>(title: &str) -> Value {
    let schema = SchemaSettings::draft07().into_generator().into_root_schema_for::<T>();
    let mut schema = schema.to_value();
    relax(&mut schema);
    schema["title"] = title.into();
    schema
}

/// The schema of a scenario.
pub fn scenario() -> Value {
    let mut schema = of::<Scenario>("scenario");
    for (place, names) in offers() {
        offer(&mut schema, place, &names);
    }
    schema
}

/// The schema of a workload specification.
pub fn workload() -> Value {
    of::<Spec>("workload")
}

/// The schema of a strategy. A text may stand for a number of it, as in `{weight}`.
pub fn strategy() -> Value {
    let mut schema = of::<StrategyFields>("strategy");
    let known: Vec<String> = fields(&scenario()).map(|(name, _)| name.clone()).collect();
    schema["properties"]["set"] = json!({ "type": "object", "propertyNames": { "enum": known } });
    schema
}

/// `schema` with scenario fields, laid over others, at `places`; `null` takes a field away.
///
/// # Panics
/// If there is no such place, which is a mistake of the caller.
pub fn patched(mut schema: Value, places: &[&str]) -> Value {
    let mut scenario = scenario();
    let definitions = scenario["definitions"].take();
    let patch: Map<String, Value> = fields(&scenario)
        .map(|(name, field)| (name.clone(), json!({ "anyOf": [field, { "const": null }] })))
        .collect();
    for place in places {
        let place = schema.pointer_mut(place).expect("the schema has this place");
        *place = json!({ "$ref": "#/definitions/Patch" });
    }
    let all = schema["definitions"].as_object_mut().expect("structs have definitions");
    all.extend(definitions.as_object().cloned().unwrap_or_default());
    let patch = json!({ "type": "object", "properties": patch, "additionalProperties": false });
    all.insert("Patch".to_owned(), patch);
    schema
}

/// The fields of the schema of a struct.
fn fields(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().into_iter().flatten()
}

/// Takes `null` out of all types, and lets texts look like numbers.
fn relax(schema: &mut Value) {
    let Value::Object(fields) = schema else {
        if let Value::Array(items) = schema {
            items.iter_mut().for_each(relax);
        }
        return;
    };
    fields.remove("default");
    let null = json!({ "type": "null" });
    if let Some(Value::Array(options)) = fields.get_mut("anyOf") {
        options.retain(|option| *option != null);
    }
    if let Some(Value::Array(types)) = fields.get_mut("type") {
        types.retain(|name| name != "null");
        if let [one] = types.as_slice() {
            let one = one.clone();
            fields.insert("type".to_owned(), one);
        }
    }
    let is_text = fields.get("type").is_some_and(|name| name == "string");
    let is_free = !["enum", "const", "pattern"].iter().any(|key| fields.contains_key(*key));
    if is_text && is_free {
        fields.insert("type".to_owned(), json!(["string", "number", "boolean"]));
    }
    for (key, value) in fields {
        match value {
            // Names that people chose, not words of JSON Schema.
            Value::Object(named) if key == "properties" || key == "definitions" => {
                named.values_mut().for_each(relax);
            }
            value => relax(value),
        }
    }
}

/// Names that an editor should offer, and the fields that they are for.
fn offers() -> Vec<(&'static str, Vec<String>)> {
    let catalogue = Catalogue::shipped();
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let mut latency = vec!["coefficients", "constant", "operators", "roofline"];
    latency.extend(profile::names());
    let strategies: Vec<&str> = strategy::ALL.iter().map(|strategy| strategy.name).collect();
    let workloads: Vec<&str> = presets::ALL.iter().map(|preset| preset.name).collect();
    let mut offers = vec![
        ("/properties/model", catalogue.models.iter().map(|model| model.name.clone()).collect()),
        ("/properties/hardware", catalogue.gpus.iter().map(|gpu| gpu.name.clone()).collect()),
        ("/properties/strategy", owned(&strategies)),
        ("/definitions/LatencyFields/properties/model", owned(&latency)),
        ("/definitions/WorkloadFields/properties/preset", owned(&workloads)),
    ];
    for kind in registry::kinds() {
        let place = match kind.yaml_key {
            "admission" => "/properties/admission",
            "routing" => "/properties/routing",
            "scheduler" => "/properties/scheduler",
            "priority" => "/properties/priority",
            "preempt" => "/properties/preempt",
            "evict" => "/properties/evict",
            "kv_tier.offload" => "/definitions/KvTierFields/properties/offload",
            _ => continue,
        };
        offers.push((place, kind.entries.iter().map(|entry| entry.name.to_owned()).collect()));
    }
    offers
}

/// Adds `names` to what the field at `place` may be.
fn offer(schema: &mut Value, place: &str, names: &[String]) {
    let field = schema.pointer_mut(place).expect("the schema has this field");
    let old = field.take();
    let description = old.get("description").cloned().unwrap_or_default();
    *field = json!({ "description": description, "anyOf": [{ "enum": names }, old] });
}
