//! The functions of formulas.

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Min,
    Max,
    Abs,
    Log,
    Exp,
    Sqrt,
    Clamp,
    If,
    Number,
    Least,
    Most,
    Mean,
    Sum,
    PreferLow,
    PreferHigh,
}

/// Name, function, arguments, and what it is.
pub(super) const FUNCTIONS: [(&str, Function, &str, &str); 15] = [
    ("min", Function::Min, "x, y, ...", "the least of its arguments"),
    ("max", Function::Max, "x, y, ...", "the greatest of its arguments"),
    ("clamp", Function::Clamp, "x, low, high", "`min(max(x, low), high)`"),
    ("abs", Function::Abs, "x", "`x` without its sign"),
    ("log", Function::Log, "x", "natural logarithm, without unit"),
    ("exp", Function::Exp, "x", "exponential, without unit"),
    ("sqrt", Function::Sqrt, "x", "square root, without unit"),
    ("if", Function::If, "condition, x, y", "`x` if the condition holds, else `y`"),
    ("number", Function::Number, "x", "`x` without its unit"),
    ("least", Function::Least, "x", "the least `x` of all instances"),
    ("most", Function::Most, "x", "the greatest `x` of all instances"),
    ("mean", Function::Mean, "x", "the mean `x` of all instances"),
    ("sum", Function::Sum, "x", "the sum of `x` over all instances"),
    (
        "prefer_low",
        Function::PreferLow,
        "x",
        "1 where `x` is least of all instances, 0 where it is greatest, in proportion between; 1 \
         if all are equal",
    ),
    ("prefer_high", Function::PreferHigh, "x", "the same with 1 where `x` is greatest"),
];
