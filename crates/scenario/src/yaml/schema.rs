//! JSON Schemas of the shapes that all files share, and of types that read themselves.

use super::{Amount, Named, Node, OneOrMany, Range, Whole};
use schemars::{Schema, json_schema};
use serde_json::{Map, Value};

/// Gives types a schema that stands where they are used.
macro_rules! inline_schema {
    ($([$($generics:tt)*] $type:ty, $generator:ident => $schema:expr;)*) => { $(
        impl<$($generics)*> schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema($generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $schema
            }
        }
    )* };
}
pub(crate) use inline_schema;

inline_schema! {
    [const MIN: u64, const MAX: u64] Whole<MIN, MAX>, _generator => {
        json_schema!({ "type": "integer", "minimum": MIN, "maximum": MAX })
    };
    [R: Range] Amount<R>, _generator => {
        json_schema!({ "type": "number", "minimum": R::MIN, "maximum": R::MAX })
    };
    [T: schemars::JsonSchema] Named<T>, generator => {
        let each = generator.subschema_for::<T>();
        json_schema!({ "type": "object", "additionalProperties": each })
    };
    [T: schemars::JsonSchema] OneOrMany<T>, generator => {
        let one = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [one, { "type": "array", "items": one }] })
    };
    [] Node, _generator => json_schema!(true);
}

/// A name, perhaps with parameters in brackets, or these `fields`.
pub(crate) fn named_or(fields: &[&str]) -> Schema {
    let properties: Map<String, Value> =
        fields.iter().map(|field| ((*field).to_owned(), true.into())).collect();
    json_schema!({
        "anyOf": [
            { "type": "string" },
            { "type": "object", "properties": properties, "additionalProperties": false }
        ]
    })
}
