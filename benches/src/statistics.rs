//! Medians.

/// Returns the value below which `share` of the samples lie, which is one of them; of an even number of samples the median
/// is the mean of the two in the middle.
///
/// # Panics
///
/// Without samples.
fn quantile(samples: &[f64], share: Share) -> f64 {
    assert!(!samples.is_empty(), "a quantile needs a sample");
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    match share {
        Share::Half => f64::midpoint(sorted[(count - 1) / 2], sorted[count / 2]),
        Share::NinetyFivePercent => sorted[(count * 95).div_ceil(100) - 1],
    }
}

#[derive(Clone, Copy)]
enum Share {
    Half,
    NinetyFivePercent,
}

/// Returns the median.
pub(crate) fn median(samples: &[f64]) -> f64 {
    quantile(samples, Share::Half)
}

/// Returns the 95th percentile.
pub(crate) fn p95(samples: &[f64]) -> f64 {
    quantile(samples, Share::NinetyFivePercent)
}

/// Returns the median of the ratios of samples that were taken in the same round.
///
/// A slow moment of the machine lasts longer than a round, so it is in both samples of a pair and falls out of their ratio;
/// it would not fall out of the ratio of two medians.
pub(crate) fn paired_ratio(samples: &[f64], floor: &[f64]) -> f64 {
    let ratios: Vec<f64> = samples
        .iter()
        .zip(floor)
        .map(|(sample, floor)| sample / floor)
        .collect();
    median(&ratios)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-9
    }

    #[test]
    fn the_median_is_the_middle_or_the_mean_of_the_two_middles() {
        assert!(same(median(&[3.0, 1.0, 2.0]), 2.0));
        assert!(same(median(&[4.0, 1.0, 2.0, 3.0]), 2.5));
        assert!(same(median(&[7.0]), 7.0));
    }

    #[test]
    fn the_95th_percentile_is_a_sample_that_five_percent_exceed() {
        let samples: Vec<f64> = (1..=100).map(f64::from).collect();
        assert!(same(p95(&samples), 95.0));
        assert!(same(p95(&[1.0, 2.0]), 2.0));
    }

    #[test]
    fn a_slow_round_does_not_move_the_paired_ratio() {
        let floor = [10.0, 10.0, 90.0];
        let ours = [11.0, 11.0, 99.0];
        assert!(same(paired_ratio(&ours, &floor), 1.1));
    }
}
