//! Properties of any text as a file of sizes.

use silvan_workload::traffic::read_cdf;

/// A text is a rising distribution that ends with all flows, or has a line at fault.
pub fn check(text: &str) {
    match read_cdf(text, None) {
        Ok(points) => {
            assert!(points.len() >= 2, "{text:?}");
            assert!(
                points
                    .windows(2)
                    .all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1),
                "{text:?}"
            );
            assert_eq!(points[points.len() - 1].1.to_bits(), 100f64.to_bits());
        }
        Err(error) => {
            let lines = text.lines().count().max(1);
            assert!((1..=lines).contains(&error.place), "{text:?}: {error}");
            assert!(!error.message.is_empty() && !error.hint.is_empty());
        }
    }
}
