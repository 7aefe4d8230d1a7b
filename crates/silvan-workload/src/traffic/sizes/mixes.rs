//! Measured distributions: percentage of flows up to each size [bytes]; the first three from HPCC's `traffic_gen`.

use silvan_core::Bytes;

use super::CdfPoint;

type Points = &'static [(u64, f64)];

pub(super) const WEB_SEARCH: Points = &[
    (0, 0.0),
    (10_000, 15.0),
    (20_000, 20.0),
    (30_000, 30.0),
    (50_000, 40.0),
    (80_000, 53.0),
    (200_000, 60.0),
    (1_000_000, 70.0),
    (2_000_000, 80.0),
    (5_000_000, 90.0),
    (10_000_000, 97.0),
    (30_000_000, 100.0),
];

pub(super) const HADOOP: Points = &[
    (0, 0.0),
    (100, 1.0),
    (200, 2.0),
    (300, 5.0),
    (350, 15.0),
    (400, 20.0),
    (500, 30.0),
    (600, 40.0),
    (700, 50.0),
    (1_000, 60.0),
    (2_000, 67.0),
    (7_000, 70.0),
    (30_000, 72.0),
    (50_000, 82.0),
    (80_000, 87.0),
    (120_000, 90.0),
    (300_000, 95.0),
    (1_000_000, 97.5),
    (2_000_000, 99.0),
    (10_000_000, 100.0),
];

pub(super) const ALI_STORAGE: Points = &[
    (0, 0.0),
    (4_000, 22.93),
    (8_000, 69.21),
    (16_000, 80.61),
    (32_000, 90.47),
    (64_000, 93.53),
    (128_000, 96.77),
    (256_000, 97.53),
    (2_000_000, 100.0),
];

/// Requests up to 4 KiB, and bulk transfers of 1, 4 and 16 MiB.
pub(super) const CHECKPOINT: Points = &[
    (128, 0.0),
    (4 << 10, 30.0),
    ((1 << 20) - 1, 30.0),
    (1 << 20, 50.0),
    ((4 << 20) - 1, 50.0),
    (4 << 20, 90.0),
    ((16 << 20) - 1, 90.0),
    (16 << 20, 100.0),
];

pub(super) fn points(points: Points) -> Vec<CdfPoint> {
    let points = points.iter();
    points
        .map(|&(bytes, percent)| CdfPoint(Bytes::from_bytes(bytes), percent))
        .collect()
}
