//! Flows by class and size: percentiles, confidence intervals, and whether the run is stationary.

use silvan_core::Time;
use silvan_model::Simulation;

use super::FlowRow;
use crate::table::{Table, TableSchema};

const BINS: [u64; 5] = [0, 10_000, 100_000, 1_000_000, 10_000_000];

/// Schmeiser, "Batch Size Effects in the Analysis of Simulation Output", Operations Research 30:3, 1982: 10 to 30.
const BATCHES: usize = 20;

const LEAST: usize = 2;

/// 97.5 % quantile of Student's t distribution with 19 degrees of freedom.
const T_MEAN: f64 = 2.093_024;

struct Bin<'a> {
    class: u16,
    from: Option<u64>,
    to: Option<u64>,
    rows: Vec<&'a FlowRow>,
}

pub(super) fn table(engine: &dyn Simulation, rows: &[FlowRow], warm: Time) -> Option<Table> {
    let measured = rows.iter().filter(|row| row.is_listed && row.start >= warm);
    let mut measured: Vec<&FlowRow> = measured.collect();
    if !rows.iter().any(|row| row.is_listed) {
        return None;
    }
    measured.sort_by_key(|row| (row.class, row.start));
    let classes = measured.chunk_by(|one, other| one.class == other.class);
    let bins: Vec<Bin<'_>> = classes.flat_map(bins).collect();
    let of = |read: fn(&FlowRow) -> Option<f64>| -> Vec<Sample> {
        bins.iter().map(|bin| Sample::new(bin, read)).collect()
    };
    let completion = of(|row| Some(row.completion()? as f64));
    let slowdown = of(FlowRow::slowdown);
    let names = engine.classes();
    let mut table = Table::new(&FLOW_SIZES);
    macro_rules! push {
        ($name:literal, $rows:expr, $row:ident => $value:expr) => {
            table.push($name, $rows.iter().map(|$row| $value).collect::<Vec<_>>());
        };
    }
    push!("class", bins, bin => u32::from(bin.class));
    push!("name", bins, bin => names[usize::from(bin.class)].clone());
    push!("from_bytes", bins, bin => bin.from);
    push!("to_bytes", bins, bin => bin.to);
    push!("flows", bins, bin => bin.rows.len() as u64);
    push!("finished_flows", slowdown, sample => sample.sorted.len() as u64);
    push!("bytes", bins, bin => bin.rows.iter().map(|row| row.bytes).sum::<u64>());
    push!("completion_mean_ps", completion, sample => sample.mean());
    push!("completion_p50_ps", completion, sample => sample.quantile(0.5));
    push!("completion_p99_ps", completion, sample => sample.quantile(0.99));
    push!("slowdown_mean", slowdown, sample => sample.mean());
    push!("slowdown_ci", slowdown, sample => sample.interval());
    push!("slowdown_p50", slowdown, sample => sample.quantile(0.5));
    push!("slowdown_p95", slowdown, sample => sample.quantile(0.95));
    push!("slowdown_p99", slowdown, sample => sample.quantile(0.99));
    push!("slowdown_p999", slowdown, sample => sample.quantile(0.999));
    push!("trend_t", slowdown, sample => sample.trend());
    Some(table)
}

fn bins<'a>(rows: &[&'a FlowRow]) -> Vec<Bin<'a>> {
    let Some(class) = rows.first().map(|row| row.class) else {
        return Vec::new();
    };
    let all = Bin {
        class,
        from: None,
        to: None,
        rows: rows.to_vec(),
    };
    let sizes = BINS.iter().enumerate().map(|(number, &from)| {
        let to = BINS.get(number + 1).copied();
        let holds = |row: &&&FlowRow| row.bytes >= from && to.is_none_or(|to| row.bytes < to);
        Bin {
            class,
            from: Some(from),
            to,
            rows: rows.iter().filter(holds).copied().collect(),
        }
    });
    let sizes = sizes.filter(|bin| !bin.rows.is_empty());
    std::iter::once(all).chain(sizes).collect()
}

struct Sample {
    flows: usize,
    values: Vec<f64>,
    sorted: Vec<f64>,
}

impl Sample {
    fn new(bin: &Bin<'_>, read: fn(&FlowRow) -> Option<f64>) -> Self {
        let values: Vec<f64> = bin.rows.iter().filter_map(|row| read(row)).collect();
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let unfinished = bin.rows.iter().filter(|row| row.end.is_none()).count();
        let flows = values.len() + unfinished;
        Self {
            flows,
            values,
            sorted,
        }
    }

    fn mean(&self) -> Option<f64> {
        (!self.values.is_empty()).then(|| mean(&self.values))
    }

    /// Definition 7 of Hyndman and Fan, The American Statistician 50:4, 1996, as in numpy; unfinished flows are
    /// largest.
    fn quantile(&self, part: f64) -> Option<f64> {
        let last = self.flows.checked_sub(1)?;
        let rank = part * last as f64;
        let below = *self.sorted.get(rank as usize)?;
        if rank.fract() == 0.0 {
            return Some(below);
        }
        let above = self.sorted.get(rank as usize + 1)?;
        Some(below + (above - below) * rank.fract())
    }

    /// Means of batches of flows that follow each other, if there are enough flows.
    fn batches(&self, value: fn(f64) -> f64) -> Option<Vec<f64>> {
        let size = self.values.len() / BATCHES;
        let batch = |values: &[f64]| values.iter().copied().map(value).sum::<f64>() / size as f64;
        (size >= LEAST).then(|| {
            self.values
                .chunks_exact(size)
                .take(BATCHES)
                .map(batch)
                .collect()
        })
    }

    fn interval(&self) -> Option<f64> {
        let batches = self.batches(|value| value)?;
        let mean = mean(&batches);
        let squares: f64 = batches.iter().map(|batch| (batch - mean).powi(2)).sum();
        let count = BATCHES as f64;
        Some(T_MEAN * (squares / (count - 1.0) / count).sqrt())
    }

    /// Student's t of the slope of the logarithms' batch means over time, with 18 degrees of freedom if stationary.
    fn trend(&self) -> Option<f64> {
        let batches = self.batches(f64::ln)?;
        let count = BATCHES as f64;
        let (centre, mean) = ((count - 1.0) / 2.0, mean(&batches));
        let places = || (0..BATCHES).map(|place| place as f64 - centre);
        let width: f64 = places().map(|place| place * place).sum();
        let sum: f64 = places()
            .zip(&batches)
            .map(|(place, batch)| place * (batch - mean))
            .sum();
        let slope = sum / width;
        let residuals = places().zip(&batches);
        let squares: f64 = residuals
            .map(|(place, batch)| (batch - mean - slope * place).powi(2))
            .sum();
        let error = (squares / (count - 2.0) / width).sqrt();
        Some(if error == 0.0 { 0.0 } else { slope / error })
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

pub(crate) const FLOW_SIZES: TableSchema = TableSchema {
    name: "flow_sizes",
    rows: "One row per class of [many flows](../guide/traffic.md#flows) and range of sizes: flows that started after the warm-up. Means are of finished flows. Percentiles are of all flows: an unfinished flow counts as slower than all others, and a percentile that depends on it is null.",
    columns: &[
        (&["class"], "Row of `classes`."),
        (&["name"], "Name of the class."),
        (
            &["from_bytes", "to_bytes"],
            "First size of the range, and first size beyond it. Both are null for all sizes, `to_bytes` for the last range.",
        ),
        (
            &["flows", "finished_flows"],
            "Number of flows, and how many of them finished.",
        ),
        (&["bytes"], "Sum of their sizes."),
        (
            &[
                "completion_mean_ps",
                "completion_p50_ps",
                "completion_p99_ps",
            ],
            "Mean, median and 99th percentile of the completion time.",
        ),
        (
            &["slowdown_mean", "slowdown_ci"],
            "Mean slowdown, and half of its 95 % confidence interval, by 20 batch means; the latter null for fewer than 40 flows.",
        ),
        (
            &[
                "slowdown_p50",
                "slowdown_p95",
                "slowdown_p99",
                "slowdown_p999",
            ],
            "Percentiles of the slowdown, interpolated as numpy does by default.",
        ),
        (
            &["trend_t"],
            "Student's t, with 18 degrees of freedom, of the slope of a line through 20 batch means of the logarithm of the slowdown; null for fewer than 40 flows.",
        ),
    ],
    has_counters: false,
};
