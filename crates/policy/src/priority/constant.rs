//! `constant`: all requests are equally important.
//!
//! **Prefers** no request.
//!
//! **Reads** nothing.
//!
//! **Parameters** none.
//!
//! **Origin** a server without priorities.

use crate::prelude::*;

/// How `constant` introduces itself.
pub const SPEC: Spec<dyn Priority> = Spec {
    name: "constant",
    help: "Gives every request the same priority",
    ..Spec::built_by(|_, _| Box::new(Constant))
};

/// The same priority for all.
#[derive(Clone, Copy, Debug)]
pub struct Constant;

impl Priority for Constant {
    fn priority(&self, _: &WaitingView<'_>, _: Time) -> f64 {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::examples::waiting;

    #[test]
    fn neither_the_request_nor_the_time_matters() {
        let priority = |tokens, micros| {
            Constant.priority(&waiting(tokens), Time::from_micros(micros)).to_bits()
        };
        assert_eq!(priority(1, 0), priority(1_000, 5_000_000));
    }
}
