//! Performance aims of Signalbox relative to the bare forwarder, and whether a run met them.

use crate::report::{FORWARD, SIGNALBOX};
use crate::results::{ResultCell, Results, Run, named};

/// Limit on a ratio to the bare forwarder, in all cells that it covers.
struct Aim {
    text: &'static str,
    payload: u64,
    /// Restricts the aim to this number of connections.
    connections: Option<u64>,
    value: fn(&Run) -> f64,
    bound: Threshold,
}

#[derive(Clone, Copy)]
enum Threshold {
    AtMost(f64),
    AtLeast(f64),
}

impl Threshold {
    fn holds(self, ratio: f64) -> bool {
        match self {
            Self::AtMost(most) => ratio <= most,
            Self::AtLeast(least) => ratio >= least,
        }
    }

    fn worse(self, one: f64, other: f64) -> bool {
        match self {
            Self::AtMost(_) => one > other,
            Self::AtLeast(_) => one < other,
        }
    }

    fn text(self) -> String {
        match self {
            Self::AtMost(most) => format!("at most {most}"),
            Self::AtLeast(least) => format!("at least {least}"),
        }
    }
}

/// Most calls are about 256 bytes. A single connection measures the wake-ups of an idle machine rather than work, so it
/// is excluded.
const AIMS: &[Aim] = &[
    Aim {
        text: "CPU per call, 256 B",
        payload: 256,
        connections: None,
        value: |run| run.cpu,
        bound: Threshold::AtMost(1.3),
    },
    Aim {
        text: "rate, 256 B",
        payload: 256,
        connections: None,
        value: |run| run.rate,
        bound: Threshold::AtLeast(0.85),
    },
    Aim {
        text: "p99, 256 B, 64 connections",
        payload: 256,
        connections: Some(64),
        value: |run| run.p99,
        bound: Threshold::AtMost(1.5),
    },
    Aim {
        text: "rate, 64 KiB",
        payload: 65536,
        connections: None,
        value: |run| run.rate,
        bound: Threshold::AtLeast(0.85),
    },
];

/// Renders one line per aim: the worst ratio over all eras and connection counts above one, and whether it meets the
/// aim.
pub fn render(results: &Results) -> String {
    let mut text = "\n### Aims, beside the bare forwarder\n\n".to_owned();
    for aim in AIMS {
        let mut worst: Option<(f64, &ResultCell)> = None;
        for (cell, servers) in &results.0 {
            let counted = match aim.connections {
                Some(only) => cell.connections == only,
                None => cell.connections > 1,
            };
            if cell.backend != "http" || cell.payload != aim.payload || !counted {
                continue;
            }
            let ratio = named(servers, SIGNALBOX).and_then(|own| own.ratio(named(servers, FORWARD), aim.value));
            if let Some(ratio) = ratio
                && worst.is_none_or(|(known, _)| aim.bound.worse(ratio, known))
            {
                worst = Some((ratio, cell));
            }
        }
        let (name, bound) = (aim.text, aim.bound.text());
        text += &match worst {
            None => format!("- {name}: {bound}: not measured\n"),
            Some((ratio, cell)) => format!(
                "- {name}: {bound}: {}, {ratio:.2} ({} era, {} connections, the worst)\n",
                if aim.bound.holds(ratio) { "met" } else { "NOT met" },
                cell.era,
                cell.connections,
            ),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::render;
    use crate::results::Results;
    use crate::results::tests::line;

    #[test]
    fn the_worst_cell_decides() {
        let good = line("forward", "http", 1, 100.0) + &line("signalbox", "http", 1, 90.0);
        let text = render(&Results::read(&good).unwrap());
        assert!(text.contains("- rate, 256 B: at least 0.85: met, 0.90 (old era, 16 connections"), "{text}");
        assert!(text.contains("- CPU per call, 256 B: at most 1.3: met, 1.00"), "{text}");
        assert!(text.contains("- p99, 256 B, 64 connections: at most 1.5: not measured"), "{text}");
        let new = |text: String| text.replace(r#""era":"old""#, r#""era":"new""#);
        let bad = good + &new(line("forward", "http", 1, 100.0)) + &new(line("signalbox", "http", 1, 80.0));
        let text = render(&Results::read(&bad).unwrap());
        assert!(text.contains("- rate, 256 B: at least 0.85: NOT met, 0.80 (new era"), "{text}");
    }
}
