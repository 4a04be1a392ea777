//! What is one step away from a genome: with a part cut, replaced by its like, or grown.

use crate::breed::Breeder;
use crate::genome::Genome;
use crate::tree::{children, join, negative, parts, with};
use blis_policy::formula::signals::Role;
use blis_policy::formula::syntax::{Binary, Expr};
use blis_policy::formula::{Sort, known};

impl Breeder<'_> {
    /// All genomes that are one step away from `genome`, each once.
    pub fn neighbours(&mut self, genome: &Genome) -> Vec<Genome> {
        let mut all: Vec<Genome> = Vec::new();
        for (role, formula) in genome.formulas() {
            let mut near = Vec::new();
            for (place, part) in parts(formula).into_iter().enumerate() {
                let mut steps: Vec<Expr> = children(part).into_iter().cloned().collect();
                steps.extend(self.others(role, part));
                steps.extend(self.grown(role, part));
                near.extend(steps.iter().map(|new| Some(with(formula, place, new))));
            }
            if role != Role::Scorer {
                near.push(None);
            }
            for formula in near {
                let fit = self.fits(&genome.with(role, formula));
                all.extend(fit.filter(|it| it != genome && !all.contains(it)));
            }
        }
        all
    }

    /// `part` with another sign, function, signal or number; units may not fit.
    pub(crate) fn others(&self, role: Role, part: &Expr) -> Vec<Expr> {
        match part {
            Expr::Name(name) => {
                let others = self.space.signals(role).filter(|signal| signal.name != name);
                let others = others.map(|signal| Expr::Name(signal.name.to_owned()));
                others.chain([Expr::Number(1.0)]).collect()
            }
            Expr::Binary(sign, left, right) => {
                let other = match sign {
                    Binary::Plus => Binary::Minus,
                    Binary::Minus => Binary::Plus,
                    Binary::Times => Binary::Over,
                    Binary::Over => Binary::Times,
                    Binary::And => Binary::Or,
                    Binary::Or => Binary::And,
                    Binary::Equal => Binary::Unequal,
                    Binary::Unequal => Binary::Equal,
                    Binary::Less | Binary::AtMost => Binary::Greater,
                    Binary::Greater | Binary::AtLeast => Binary::Less,
                };
                let swapped = Expr::Binary(*sign, right.clone(), left.clone());
                vec![Expr::Binary(other, left.clone(), right.clone()), swapped]
            }
            Expr::Call(name, inner) => {
                let others: &[&str] = match name.as_str() {
                    "min" | "max" => &["min", "max"],
                    "prefer_low" | "prefer_high" => &["prefer_low", "prefer_high"],
                    "mean" | "least" | "most" => &["mean", "least", "most"],
                    "sqrt" | "log" => &["sqrt", "log"],
                    _ => &[],
                };
                let others = others.iter().filter(|other| **other != name);
                others.map(|other| Expr::Call((*other).to_owned(), inner.clone())).collect()
            }
            Expr::Unary(_, inner) => vec![(**inner).clone()],
            Expr::Number(x) => {
                vec![negative(part.clone()), Expr::Number(x / 2.0), Expr::Number(x * 2.0)]
            }
        }
    }

    /// The number `part` with something: one more, times and over every signal, and with every
    /// signal of its unit their sum, difference, least and greatest.
    fn grown(&self, role: Role, part: &Expr) -> Vec<Expr> {
        let Some(found) = known(role, part).filter(|it| it.sort == Sort::Number) else {
            return Vec::new();
        };
        let one = |expr: Expr| join(Binary::Plus, expr, Expr::Number(1.0));
        let mut all = vec![one(part.clone())];
        for signal in self.space.signals(role) {
            let name = Expr::Name(signal.name.to_owned());
            for sign in [Binary::Times, Binary::Over] {
                all.push(join(sign, part.clone(), one(name.clone())));
            }
            if found.unit == signal.unit && !found.literal {
                for sign in [Binary::Plus, Binary::Minus] {
                    all.push(join(sign, part.clone(), name.clone()));
                }
                for bound in ["min", "max"] {
                    all.push(Expr::Call(bound.to_owned(), vec![part.clone(), name.clone()]));
                }
            }
        }
        all
    }
}
