use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use silvan_core::{Bytes, Span};

const LARGEST: u64 = 1 << 40;

/// Format of a list of flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FlowFormat {
    /// Comma-separated values. The first line names the columns: `from` and `to`, a host each; `bytes`; and one of `start` (a
    /// time with its unit), `start_s`, `start_ms`, `start_us`, `start_ns` and `start_ps`. Other columns have no effect.
    #[default]
    Csv,
    /// `flow.txt` of ns-3 (HPCC's artifact and its descendants): the number of flows, then in each line sender, receiver, priority
    /// group, destination port, bytes and start in seconds. Priority group and port have no effect, and neither has what follows.
    #[serde(rename = "ns-3")]
    Ns3,
}

/// A line that is no flow.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct FlowLineError {
    /// The line, from 1.
    pub line: usize,
    /// The fault.
    pub message: String,
    /// The remedy.
    pub hint: &'static str,
}

/// An end of a flow as the file names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowEnd {
    /// The name of a host.
    Name(String),
    /// The number of a host.
    Number(u64),
}

/// A line of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowLine {
    /// The sender.
    pub from: FlowEnd,
    /// The receiver.
    pub to: FlowEnd,
    /// Payload.
    pub bytes: u64,
    /// Time in the file.
    pub start: Span,
    line: usize,
}

impl FlowLine {
    pub(crate) fn error(&self, message: String, hint: &'static str) -> FlowLineError {
        FlowLineError {
            line: self.line,
            message,
            hint,
        }
    }
}

/// Reads a list of flows. Errors: the first line at fault.
pub fn read_flows(text: &str, format: FlowFormat) -> Result<Vec<FlowLine>, FlowLineError> {
    match format {
        FlowFormat::Csv => read_csv(text),
        FlowFormat::Ns3 => read_ns3(text),
    }
}

fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = (1..).zip(text.lines());
    lines.filter(|(_, line)| !line.trim().is_empty())
}

const STARTS: [(&str, Option<&str>); 6] = [
    ("start", None),
    ("start_s", Some("s")),
    ("start_ms", Some("ms")),
    ("start_us", Some("us")),
    ("start_ns", Some("ns")),
    ("start_ps", Some("ps")),
];

struct Columns {
    from: usize,
    to: usize,
    bytes: usize,
    start: usize,
    unit: Option<&'static str>,
}

impl Columns {
    fn of(line: usize, header: &str) -> Result<Self, FlowLineError> {
        const HINT: &str = "name the columns in the first line, e.g. from,to,bytes,start";
        let fail = |message| {
            Err(FlowLineError {
                line,
                message,
                hint: HINT,
            })
        };
        let names: Vec<&str> = cells(header).collect();
        for (place, name) in names.iter().enumerate() {
            if names[..place].contains(name) {
                return fail(format!("there are two columns {name:?}"));
            }
        }
        let find = |name: &str| names.iter().position(|other| *other == name);
        let starts = STARTS
            .iter()
            .filter_map(|(name, unit)| Some((find(name)?, *unit)));
        let starts: Vec<_> = starts.collect();
        let &[(start, unit)] = starts.as_slice() else {
            let found = starts.len();
            return fail(format!("{found} columns have the start; one is expected"));
        };
        let (Some(from), Some(to), Some(bytes)) = (find("from"), find("to"), find("bytes")) else {
            let missing = ["from", "to", "bytes"];
            let missing = missing.into_iter().find(|name| find(name).is_none());
            return fail(format!(
                "there is no column {:?}",
                missing.unwrap_or_default()
            ));
        };
        Ok(Self {
            from,
            to,
            bytes,
            start,
            unit,
        })
    }
}

fn cells(line: &str) -> impl Iterator<Item = &str> {
    line.split(',')
        .map(|cell| cell.trim().trim_matches('"').trim())
}

fn read_csv(text: &str) -> Result<Vec<FlowLine>, FlowLineError> {
    let mut lines = lines(text);
    let (line, header) = lines.next().unwrap_or((1, ""));
    let columns = Columns::of(line, header)?;
    let width = cells(header).count();
    let mut flows = Vec::new();
    for (line, content) in lines {
        let cells: Vec<&str> = cells(content).collect();
        if cells.len() != width {
            let (found, hint) = (cells.len(), "separate the values by commas");
            let message = format!("{found} values; the first line names {width} columns");
            return Err(FlowLineError {
                line,
                message,
                hint,
            });
        }
        let start = cells[columns.start];
        let start = match columns.unit {
            None => start.parse().ok(),
            Some(unit) => time(start, unit),
        };
        flows.push(flow(
            line,
            [cells[columns.from], cells[columns.to], cells[columns.bytes]],
            start,
        )?);
    }
    Ok(flows)
}

fn read_ns3(text: &str) -> Result<Vec<FlowLine>, FlowLineError> {
    let mut lines = lines(text);
    let (line, count) = lines.next().unwrap_or((1, ""));
    let Ok(count) = count.trim().parse::<usize>() else {
        let message = "the first line is the number of flows".to_owned();
        let hint = "write the number, then a line for each flow; or set format to \"csv\"";
        return Err(FlowLineError {
            line,
            message,
            hint,
        });
    };
    let mut flows = Vec::new();
    let mut last = line;
    for (line, content) in lines.take(count) {
        last = line;
        let words: Vec<&str> = content.split_whitespace().collect();
        let &[from, to, _group, _port, bytes, start] = words.as_slice() else {
            let message = format!("{} values; a flow has 6", words.len());
            let hint = "write sender, receiver, priority group, port, bytes and start in seconds";
            return Err(FlowLineError {
                line,
                message,
                hint,
            });
        };
        flows.push(flow(line, [from, to, bytes], time(start, "s"))?);
    }
    if flows.len() < count {
        let found = flows.len();
        let message = format!("{found} flows follow; the first line announces {count}");
        return Err(FlowLineError {
            line: last,
            message,
            hint: "correct the number in the first line",
        });
    }
    Ok(flows)
}

fn flow(
    line: usize,
    [from, to, bytes]: [&str; 3],
    start: Option<Span>,
) -> Result<FlowLine, FlowLineError> {
    let fail = |message: String, hint| {
        Err(FlowLineError {
            line,
            message,
            hint,
        })
    };
    if from.is_empty() || to.is_empty() {
        return fail(
            "a host is missing".to_owned(),
            "name sender and receiver of each flow",
        );
    }
    let size = match bytes.parse::<u64>() {
        Ok(bytes) => Some(bytes),
        Err(_) => bytes.parse::<Bytes>().ok().map(Bytes::as_u64),
    };
    let Some(size) = size.filter(|size| (1..=LARGEST).contains(size)) else {
        let most = Bytes::from_bytes(LARGEST);
        let message = format!("{bytes:?} is no size of a flow: 1 B to {most} are supported");
        return fail(message, "write the bytes, such as 4096");
    };
    let Some(start) = start else {
        let message = "the start is no time from 0 on".to_owned();
        return fail(
            message,
            "write a time such as 10 us in the column start, a number in the others",
        );
    };
    let end = |word: &str| match word.parse() {
        Ok(number) => FlowEnd::Number(number),
        Err(_) => FlowEnd::Name(word.to_owned()),
    };
    Ok(FlowLine {
        from: end(from),
        to: end(to),
        bytes: size,
        start,
        line,
    })
}

/// Exact to the picosecond; exponents and many digits are rounded.
fn time(word: &str, unit: &str) -> Option<Span> {
    if let Ok(span) = format!("{word} {unit}").parse() {
        return Some(span);
    }
    let one: Span = format!("1 {unit}").parse().ok()?;
    let picoseconds = word.parse::<f64>().ok()? * one.as_ps() as f64;
    let is_possible = (0.0..u64::MAX as f64).contains(&picoseconds);
    is_possible.then(|| Span::from_ps(picoseconds.round() as u64))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn numbers(flows: &[FlowLine]) -> Vec<(u64, u64, u64, u64)> {
        let number = |end: &FlowEnd| match end {
            FlowEnd::Number(number) => *number,
            FlowEnd::Name(name) => panic!("{name}"),
        };
        let flows = flows.iter();
        flows
            .map(|flow| {
                let (from, to) = (number(&flow.from), number(&flow.to));
                (from, to, flow.bytes, flow.start.as_ps())
            })
            .collect()
    }

    /// Oracle: the first lines of `mix/flow.txt` of HPCC's artifact, and the text that follows its flows.
    #[test]
    fn flow_file_of_ns_3_is_read() {
        let text = "2\n2 1 3 100 200000000 2\n3 1 3 100 5000 2.0000015\n\nFirst line: # of flows\nsrc0 dst0 3\n";
        let flows = read_flows(text, FlowFormat::Ns3).unwrap();
        assert_eq!(
            numbers(&flows),
            [
                (2, 1, 200_000_000, 2_000_000_000_000),
                (3, 1, 5_000, 2_000_001_500_000)
            ]
        );
    }

    #[test]
    fn columns_are_found_by_their_names() {
        let text = "\u{feff}name, start_us,bytes,to,from\r\n\r\nx,1.5,\"64 KiB\",\"b\",a\r\ny,1e-3,1,0,7\r\n";
        let flows = read_flows(text, FlowFormat::Csv).unwrap();
        let name = |name: &str| FlowEnd::Name(name.to_owned());
        assert_eq!((&flows[0].from, &flows[0].to), (&name("a"), &name("b")));
        assert_eq!(
            (flows[0].bytes, flows[0].start.as_ps()),
            (65_536, 1_500_000)
        );
        assert_eq!(numbers(&flows[1..]), [(7, 0, 1, 1_000)]);
        let text = "from,to,bytes,start\n1,2,3,10 us\n";
        let flows = read_flows(text, FlowFormat::Csv).unwrap();
        assert_eq!(numbers(&flows), [(1, 2, 3, 10_000_000)]);
    }

    #[test]
    fn mistakes_have_their_line() {
        let csv = [
            ("", 1, "0 columns have the start"),
            ("from,to,bytes", 1, "0 columns have the start"),
            ("from,to,bytes,start,start_s", 1, "2 columns have the start"),
            ("from,from,bytes,start", 1, "two columns \"from\""),
            ("from,too,bytes,start", 1, "no column \"to\""),
            ("from,to,bytes,start\n1,2,3", 2, "3 values"),
            ("from,to,bytes,start\n\n1,2,0,1 us", 3, "no size of a flow"),
            ("from,to,bytes,start\n1,2,-5,1 us", 2, "no size of a flow"),
            ("from,to,bytes,start\n1,2,5,1", 2, "no time"),
            ("from,to,bytes,start_s\n1,2,5,-1", 2, "no time"),
            ("from,to,bytes,start_s\n1,2,5,nan", 2, "no time"),
            ("from,to,bytes,start_s\n,2,5,1", 2, "a host is missing"),
        ];
        let ns3 = [
            ("", 1, "the number of flows"),
            ("from,to,bytes,start", 1, "the number of flows"),
            ("2\n1 2 3 100 5 0\n", 2, "1 flows follow"),
            ("1\n1 2 3 5 0\n", 2, "5 values"),
            ("1\n1 2 3 100 x 0\n", 2, "no size"),
        ];
        let csv = csv.map(|case| (FlowFormat::Csv, case));
        let ns3 = ns3.map(|case| (FlowFormat::Ns3, case));
        for (format, (text, line, message)) in csv.into_iter().chain(ns3) {
            let error = read_flows(text, format).unwrap_err();
            assert_eq!(error.line, line, "{text:?}: {error}");
            assert!(error.message.contains(message), "{text:?}: {error}");
        }
    }

    proptest! {
        /// Oracle: the flows that the text was written from, in both formats.
        #[test]
        fn written_flows_are_read_back(
            flows in prop::collection::vec((0..1_000_u64, 0..1_000_u64, 1..=LARGEST, 0..1_u64 << 52), 0..40)
        ) {
            let mut csv = "start_ps,from,to,bytes\n".to_owned();
            let mut ns3 = format!("{}\n", flows.len());
            for (from, to, bytes, start) in &flows {
                csv += &format!("{start},{from},{to},{bytes}\n");
                let (whole, part) = (start / 1_000_000_000_000, start % 1_000_000_000_000);
                ns3 += &format!("{from} {to} 3 100 {bytes} {whole}.{part:012}\n");
            }
            prop_assert_eq!(numbers(&read_flows(&csv, FlowFormat::Csv).unwrap()), flows.clone());
            prop_assert_eq!(numbers(&read_flows(&ns3, FlowFormat::Ns3).unwrap()), flows);
        }
    }
}
