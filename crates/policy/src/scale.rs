//! Amounts as scores from 0 to 1, for scorers and formulas.

/// Which end of a scale scores 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Best {
    Least,
    Most,
}

/// Replaces amounts by their place between the least and the most of them, 0..=1, the best being 1;
/// 1 for all if all are equal.
pub(crate) fn min_max(amounts: &mut [f64], best: Best) {
    let (least, most) =
        amounts.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(*x), b.max(*x)));
    if least >= most {
        amounts.fill(1.0);
        return;
    }
    for amount in amounts {
        let from = if best == Best::Least { most - *amount } else { *amount - least };
        *amount = from / (most - least);
    }
}
