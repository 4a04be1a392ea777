//! Expressions as trees: their parts by number, in the order in which they are written.

use blis_policy::formula::syntax::{Binary, Expr, Unary};

/// The expressions directly below `expr`.
pub(crate) fn children(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::Number(_) | Expr::Name(_) => Vec::new(),
        Expr::Unary(_, inner) => vec![inner],
        Expr::Binary(_, left, right) => vec![left, right],
        Expr::Call(_, inner) => inner.iter().collect(),
    }
}

/// The same expression over other children.
pub(crate) fn over(expr: &Expr, mut new: impl FnMut(&Expr) -> Expr) -> Expr {
    match expr {
        Expr::Number(_) | Expr::Name(_) => expr.clone(),
        Expr::Unary(sign, inner) => Expr::Unary(*sign, Box::new(new(inner))),
        Expr::Binary(binary, left, right) => {
            let left = new(left);
            Expr::Binary(*binary, Box::new(left), Box::new(new(right)))
        }
        Expr::Call(name, inner) => Expr::Call(name.clone(), inner.iter().map(new).collect()),
    }
}

/// How many parts `expr` has, itself included.
pub(crate) fn size(expr: &Expr) -> usize {
    1 + children(expr).into_iter().map(size).sum::<usize>()
}

/// All parts of `expr`, itself first.
pub(crate) fn parts(expr: &Expr) -> Vec<&Expr> {
    let mut all = vec![expr];
    for child in children(expr) {
        all.extend(parts(child));
    }
    all
}

/// `expr` with `new` as its part number `place`.
pub(crate) fn with(expr: &Expr, place: usize, new: &Expr) -> Expr {
    if place == 0 {
        return new.clone();
    }
    let mut first = 1;
    over(expr, |child| {
        let start = first;
        first += size(child);
        if (start..first).contains(&place) {
            with(child, place - start, new)
        } else {
            child.clone()
        }
    })
}

pub(crate) fn join(sign: Binary, left: Expr, right: Expr) -> Expr {
    Expr::Binary(sign, Box::new(left), Box::new(right))
}

pub(crate) fn negative(expr: Expr) -> Expr {
    Expr::Unary(Unary::Minus, Box::new(expr))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_numbered_as_they_are_written() {
        let expr = Expr::read("-a * (b + if(c < 1, d, 2))").expect("legal");
        assert_eq!((size(&expr), parts(&expr).len()), (11, 11));
        let new = Expr::Name("new".to_owned());
        for place in 0..size(&expr) {
            let changed = with(&expr, place, &new);
            assert_eq!(*parts(&changed)[place], new, "{place}");
            let smaller = size(parts(&expr)[place]) - 1;
            assert_eq!(size(&changed), 11 - smaller, "{place}: {changed}");
        }
    }
}
