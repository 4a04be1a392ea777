//! What there is of each service class, as a JSON object whose keys are their names.
//!
//! For `#[serde(with = "by_class")]`. Classes that are not known are skipped.

use blis_core::SloClass;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

/// Writes the object.
///
/// # Errors
/// Those of the writer.
pub fn serialize<T: Serialize, S: Serializer>(
    items: &[(SloClass, T)],
    to: S,
) -> Result<S::Ok, S::Error> {
    to.collect_map(items.iter().map(|(class, item)| (class.name(), item)))
}

/// Reads the object; most important class first.
///
/// # Errors
/// If it is no object of such items.
pub fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    from: D,
) -> Result<Vec<(SloClass, T)>, D::Error> {
    let mut named = BTreeMap::<String, T>::deserialize(from)?;
    let take = |class: SloClass| Some((class, named.remove(class.name())?));
    Ok(SloClass::ALL.into_iter().filter_map(take).collect())
}
