//! Prints how right the diagnosis is. Arguments: first seed and number of scenarios, then those held out.
#![allow(clippy::print_stdout, reason = "it prints a table")]

#[cfg(target_os = "linux")]
#[path = "../tests/diagnose/live.rs"]
mod live;
#[cfg(target_os = "linux")]
#[path = "../tests/diagnose/scene.rs"]
mod scene;
#[cfg(target_os = "linux")]
#[path = "../tests/diagnose/score.rs"]
mod score;

#[cfg(target_os = "linux")]
mod table {
    use std::collections::BTreeMap;

    use silvan_scenario::Scenario;

    use super::scene::Conditions;
    use super::score::{Score, run, score};

    /// A part with three digits, or a dash where there is nothing to be right or wrong about.
    fn part(value: f64, of: usize) -> String {
        if of == 0 {
            "-".to_owned()
        } else {
            format!("{value:.3}")
        }
    }

    fn row(name: &str, score: &Score) {
        let (roots, victims) = (score.roots, score.victims);
        println!(
            "{name:<34}{:>6}{:>7}{:>11}{:>8}{:>8}{:>8}{:>9}{:>12}{:>8}{:>8}{:>8}",
            score.scenarios,
            roots.hit + roots.missed,
            part(roots.precision(), roots.hit + roots.wrong),
            part(roots.recall(), roots.hit + roots.missed),
            part(score.top_right as f64 / score.top.max(1) as f64, score.top),
            part(score.top_at_best / score.top.max(1) as f64, score.top),
            victims.hit + victims.missed,
            part(victims.f1(), victims.hit + victims.missed + victims.wrong),
            part(score.best_f1(), victims.hit + victims.missed),
            part(score.victims_of_flows.f1(), victims.hit + victims.missed),
            part(
                score.causes_right as f64 / score.causes.max(1) as f64,
                score.causes
            ),
        );
    }

    pub fn print(title: &str, conditions: Conditions, first: u64, count: u64) {
        let mut rows: BTreeMap<String, Score> = BTreeMap::new();
        let mut all = Score::default();
        for seed in first..first + count {
            let (scene, survey, verdict, truth) = run(seed, conditions);
            let scenario = Scenario::from_toml(&scene.toml, "scene.toml", &[]).expect("it has run");
            let own = score(&survey, &verdict, &truth, scenario.fabric());
            let names = [scene.kind.name(), scene.control.name()];
            for name in names {
                rows.entry(name.to_owned()).or_default().add(&own);
            }
            all.add(&own);
        }
        println!("{title} (seeds {first} to {})", first + count - 1);
        println!(
            "{:<34}{:>6}{:>7}{:>11}{:>8}{:>8}{:>8}{:>9}{:>12}{:>8}{:>8}{:>8}",
            "",
            "runs",
            "roots",
            "precision",
            "recall",
            "top",
            "best",
            "victims",
            "victims F1",
            "best",
            "flows",
            "cause"
        );
        for (name, score) in &rows {
            row(name, score);
        }
        row("all", &all);
        println!("cause -> verdict");
        for ((is, said), count) in &all.confusion {
            println!("  {is} -> {said}: {count}");
        }
        println!();
    }
}

fn main() {
    #[cfg(target_os = "linux")]
    {
        use scene::Conditions;

        let numbers: Vec<u64> = std::env::args()
            .skip(1)
            .filter_map(|text| text.parse().ok())
            .collect();
        let rates = [0, 15, 31].map(|rate| {
            let conditions = Conditions {
                marking_rate: Some(rate),
                ..Conditions::default()
            };
            (format!("Marking_Rate {rate}"), conditions)
        });
        let narrow = Conditions {
            lacks_wide_counters: true,
            ..Conditions::default()
        };
        let drawn = ("as drawn".to_owned(), Conditions::default());
        let narrow = ("half without wide counters".to_owned(), narrow);
        for (conditions_title, conditions) in [drawn].into_iter().chain(rates).chain([narrow]) {
            for (title, range) in ["scenarios", "held out"]
                .iter()
                .zip(numbers.chunks_exact(2))
            {
                let title = format!("{conditions_title}: {title}");
                table::print(&title, conditions, range[0], range[1]);
            }
        }
    }
}
