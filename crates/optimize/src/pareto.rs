//! Fronts of several objectives, all minimised: dominance, ranks, crowding, hypervolume.

/// Whether `a` is at least as good as `b` everywhere and better somewhere.
pub(crate) fn dominates(a: &[f64], b: &[f64]) -> bool {
    a.iter().zip(b).all(|(x, y)| x <= y) && a.iter().zip(b).any(|(x, y)| x < y)
}

/// Indices of the points that no other dominates, in order; of equal points the first.
pub fn front(points: &[Vec<f64>]) -> Vec<usize> {
    let beaten = |i: usize| {
        let by = |(j, other): (usize, &Vec<f64>)| {
            dominates(other, &points[i]) || (j < i && *other == points[i])
        };
        points.iter().enumerate().any(by)
    };
    (0..points.len()).filter(|&i| !beaten(i)).collect()
}

/// The volume that `points` dominate below `reference`, exactly.
///
/// Two objectives take n log n steps, three n² log n; more are sliced along the last objective.
///
/// # Panics
/// If a point has not as many objectives as the reference.
pub fn hypervolume(points: &[Vec<f64>], reference: &[f64]) -> f64 {
    let inside: Vec<Vec<f64>> = points
        .iter()
        .inspect(|point| assert_eq!(point.len(), reference.len(), "as many objectives"))
        .filter(|point| point.iter().zip(reference).all(|(x, r)| x < r))
        .cloned()
        .collect();
    volume(inside, reference)
}

fn volume(mut points: Vec<Vec<f64>>, reference: &[f64]) -> f64 {
    let last = reference.len() - 1;
    if points.is_empty() {
        return 0.0;
    }
    if last == 0 {
        let least = points.iter().map(|point| point[0]).fold(f64::INFINITY, f64::min);
        return reference[0] - least;
    }
    points.sort_by(|a, b| a[last].total_cmp(&b[last]));
    if last == 1 {
        let mut edge = reference[0];
        let mut sum = 0.0;
        for point in &points {
            if point[0] < edge {
                sum += (edge - point[0]) * (reference[1] - point[1]);
                edge = point[0];
            }
        }
        return sum;
    }
    // Between two heights of the last objective, the cross-section does not change.
    let mut sum = 0.0;
    let mut slice: Vec<Vec<f64>> = Vec::new();
    for (index, point) in points.iter().enumerate() {
        slice.push(point[..last].to_vec());
        let kept = front(&slice);
        slice = kept.into_iter().map(|i| slice[i].clone()).collect();
        let top = points.get(index + 1).map_or(reference[last], |next| next[last]);
        if top > point[last] {
            sum += (top - point[last]) * volume(slice.clone(), &reference[..last]);
        }
    }
    sum
}

/// Ranks: 0 for the front, 1 for the front of the rest, and so on.
pub(crate) fn ranks(count: usize, better: impl Fn(usize, usize) -> bool) -> Vec<usize> {
    let mut rank = vec![usize::MAX; count];
    let mut left: Vec<usize> = (0..count).collect();
    let mut current = 0;
    while !left.is_empty() {
        let (layer, rest): (Vec<usize>, Vec<usize>) =
            left.iter().partition(|&&i| !left.iter().any(|&j| better(j, i)));
        assert!(!layer.is_empty(), "dominance has no circles");
        for i in layer {
            rank[i] = current;
        }
        left = rest;
        current += 1;
    }
    rank
}

/// How far apart the neighbours of each point stand, summed over objectives; infinite at the ends.
pub(crate) fn crowding(points: &[&[f64]]) -> Vec<f64> {
    let mut distance = vec![0.0; points.len()];
    let Some(first) = points.first() else { return distance };
    for k in 0..first.len() {
        let mut order: Vec<usize> = (0..points.len()).collect();
        order.sort_by(|&a, &b| points[a][k].total_cmp(&points[b][k]).then(a.cmp(&b)));
        let (least, most) = (order[0], order[points.len() - 1]);
        let range = points[most][k] - points[least][k];
        distance[least] = f64::INFINITY;
        distance[most] = f64::INFINITY;
        if range > 0.0 {
            for around in order.windows(3) {
                distance[around[1]] += (points[around[2]][k] - points[around[0]][k]) / range;
            }
        }
    }
    distance
}

#[cfg(test)]
mod tests {
    use super::*;
    use blis_core::Dice;
    use blis_core::random::Purpose;

    /// Volume of the union of boxes by inclusion and exclusion: slow and sure.
    fn by_inclusion(points: &[Vec<f64>], reference: &[f64]) -> f64 {
        let mut sum = 0.0;
        for subset in 1..1_u32 << points.len() {
            let chosen = (0..points.len()).filter(|i| subset & (1 << i) != 0);
            let mut corner = vec![f64::NEG_INFINITY; reference.len()];
            for i in chosen {
                for (c, x) in corner.iter_mut().zip(&points[i]) {
                    *c = c.max(*x);
                }
            }
            let sides = corner.iter().zip(reference).map(|(c, r)| (r - c).max(0.0));
            let sign = if subset.count_ones() % 2 == 1 { 1.0 } else { -1.0 };
            sum += sign * sides.product::<f64>();
        }
        sum
    }

    #[test]
    fn hypervolume_agrees_with_inclusion_and_exclusion() {
        let mut outside = 0;
        let mut dominated = 0;
        for (key, objectives) in (0..120_u64).zip([1, 2, 3, 4].into_iter().cycle()) {
            let mut dice = Dice::new(9, Purpose::Search, key);
            let points: Vec<Vec<f64>> = (0..7)
                .map(|_| (0..objectives).map(|_| (dice.unit() * 6.0).floor() / 5.0).collect())
                .collect();
            let reference = vec![0.9; objectives];
            outside += points.iter().filter(|p| p.iter().any(|&x| x > 0.9)).count();
            dominated += points.len() - front(&points).len();
            let (fast, slow) =
                (hypervolume(&points, &reference), by_inclusion(&points, &reference));
            assert!((fast - slow).abs() < 1e-12, "key {key}: {fast}, not {slow}: {points:?}");
        }
        assert!(outside > 10 && dominated > 100, "{outside} outside, {dominated} dominated");
    }

    #[test]
    fn equal_points_stand_on_the_front_once() {
        let points = vec![vec![1.0, 2.0], vec![2.0, 1.0], vec![1.0, 2.0], vec![2.0, 2.0]];
        assert_eq!(front(&points), [0, 1]);
        let better = |a: usize, b: usize| dominates(&points[a], &points[b]);
        assert_eq!(ranks(4, better), [0, 0, 0, 1]);
    }

    #[test]
    fn points_at_the_ends_are_never_crowded() {
        let points: [&[f64]; 4] = [&[0.0, 1.0], &[0.1, 0.9], &[0.2, 0.8], &[1.0, 0.0]];
        let distance = crowding(&points);
        assert!(distance[0].is_infinite() && distance[3].is_infinite());
        assert!(distance[1] < distance[2], "{distance:?}");
        assert!(crowding(&[]).is_empty());
    }
}
