//! Several questions asked of the same runs: Holm's step-down procedure.
//!
//! With m questions, one of them is answered at level alpha / m; if it is, the others share the
//! whole of alpha as m - 1 questions do, and so on. The probability of even one wrong answer is at
//! most alpha, whatever the questions have to do with each other.

/// Answers those of `open` that can be answered, and removes them. `answers` says whether a
/// question can be answered if so many are open.
pub fn step_down(open: &mut Vec<usize>, mut answers: impl FnMut(usize, usize) -> bool) {
    loop {
        let count = open.len();
        open.retain(|&question| !answers(question, count));
        if open.len() == count {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(p_values: &[f64], alpha: f64) -> Vec<usize> {
        let mut open: Vec<usize> = (0..p_values.len()).collect();
        step_down(&mut open, |i, count| {
            p_values[i] <= alpha / f64::from(u32::try_from(count).expect("few"))
        });
        (0..p_values.len()).filter(|i| !open.contains(i)).collect()
    }

    #[test]
    fn holm_worked_out_by_hand() {
        // 0.005 <= 0.05/4; then 0.015 <= 0.05/3; then 0.03 > 0.05/2, so it stops, although
        // 0.04 <= 0.05.
        assert_eq!(answered(&[0.03, 0.005, 0.04, 0.015], 0.05), [1, 3]);
        assert_eq!(answered(&[0.02, 0.025], 0.05), [0, 1], "the first makes room for the second");
        assert_eq!(answered(&[0.026, 0.026], 0.05), [0_usize; 0]);
        assert_eq!(answered(&[0.05], 0.05), [0]);
        assert_eq!(answered(&[], 0.05), [0_usize; 0]);
    }
}
