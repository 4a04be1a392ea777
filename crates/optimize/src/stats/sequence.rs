//! How many seeds a study looks at, and how strict each look is.

use super::spending::nominal_levels;

/// The looks of a study: after how many seeds, and at which level for so many open questions.
#[derive(Clone, Debug, PartialEq)]
pub struct Sequence {
    looks: Vec<usize>,
    /// By open questions less one, then by look.
    levels: Vec<Vec<f64>>,
}

impl Sequence {
    /// Looks after `first` seeds, then after half as many again each time, and after `most`; with
    /// `questions` questions that are all answered rightly with probability 1 - `alpha`.
    pub fn new(first: usize, most: usize, questions: usize, alpha: f64) -> Sequence {
        let mut looks = vec![first.min(most)];
        while let Some(&last) = looks.last()
            && last < most
        {
            let next = last + last.div_ceil(2);
            // A look just before the last would not tell more than it costs.
            looks.push(if 6 * next >= 5 * most { most } else { next });
        }
        let level = |open: u32| nominal_levels(&looks, alpha / f64::from(open));
        let questions = u32::try_from(questions.max(1)).unwrap_or(u32::MAX);
        let levels = (1..=questions).map(level).collect();
        Sequence { looks, levels }
    }

    /// After how many seeds it looks, ascending.
    pub fn looks(&self) -> &[usize] {
        &self.looks
    }

    /// The two-sided level of look number `look` if `open` questions are not answered yet.
    ///
    /// # Panics
    /// If there is no such look or no open question.
    pub fn level(&self, look: usize, open: usize) -> f64 {
        self.levels[open - 1][look]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_grow_by_half_up_to_the_most() {
        assert_eq!(Sequence::new(5, 40, 1, 0.05).looks(), [5, 8, 12, 18, 27, 40]);
        assert_eq!(Sequence::new(1, 3, 1, 0.05).looks(), [1, 2, 3]);
        assert_eq!(Sequence::new(6, 10, 1, 0.05).looks(), [6, 10], "not 6, 9, 10");
        assert_eq!(Sequence::new(8, 8, 1, 0.05).looks(), [8]);
    }

    #[test]
    fn more_questions_are_stricter() {
        let sequence = Sequence::new(5, 12, 3, 0.05);
        for look in 0..3 {
            assert!(sequence.level(look, 3) < sequence.level(look, 2));
            assert!(sequence.level(look, 2) < sequence.level(look, 1));
            assert!(sequence.level(look, 1) < 0.05);
        }
    }
}
