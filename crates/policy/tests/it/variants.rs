//! Every policy with each of its parameters at each end of its range, or at each of its words.

use blis_core::{Param, ParamKind, Values};

/// The defaults of `params`, and all values that differ from them in one parameter, which is at an
/// end of its range or another word.
pub(crate) fn variants(params: &'static [Param]) -> Vec<Values> {
    let changed = params.iter().flat_map(|param| {
        ends(&param.kind).into_iter().map(move |text| {
            // What is read only under another setting is varied under it.
            let under = param.when.map(|when| (when.param, when.is[0]));
            let given = under.into_iter().chain([(param.name, text.as_str())]);
            Values::parse(params, given).expect("ends are legal")
        })
    });
    std::iter::once(Values::defaults(params)).chain(changed).collect()
}

/// The spelling of a policy with these values, as far as they are read.
pub(crate) fn spell(name: &str, values: &Values) -> String {
    let read = values.iter().filter(|(param, _)| values.reads(param));
    let params: Vec<String> =
        read.map(|(param, value)| format!("{}={value}", param.name)).collect();
    if params.is_empty() { name.to_owned() } else { format!("{name}[{}]", params.join(",")) }
}

fn ends(kind: &ParamKind) -> Vec<String> {
    match *kind {
        ParamKind::Float { min, max, .. } | ParamKind::Log { min, max, .. } => {
            vec![min.to_string(), max.to_string()]
        }
        ParamKind::Int { min, max, .. } | ParamKind::IntOrAuto { min, max } => {
            vec![min.to_string(), max.to_string()]
        }
        ParamKind::Flag { .. } => vec!["true".to_owned(), "false".to_owned()],
        ParamKind::Choice { options } => options.iter().map(|word| (*word).to_owned()).collect(),
        ParamKind::Formula { default, .. } => vec![default.to_owned()],
    }
}

#[test]
fn parameters_are_varied_one_at_a_time() {
    let spec = blis_policy::routing::filters::kv_filter::SPEC;
    let spelled: Vec<String> = variants(spec.params).iter().map(|v| spell("f", v)).collect();
    let expected = ["0.8", "0", "1"].map(|share| format!("f[max-utilization={share}]"));
    assert_eq!(spelled, expected);
}
