//! What is wrong with a tape, and how that is told.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use super::Point;

/// Longest part of a message that is quoted.
const QUOTED: usize = 300;

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TapeFault {
    /// It was on the wire and is not on the tape.
    Missing,
    /// It is on the tape and was not on the wire.
    Extra,
    /// It is on the tape with other bytes.
    Differs,
    /// It is on the tape at another place among those of its connection.
    Disorder,
    /// It is on the tape without its decision.
    Undecided,
    /// It passed although a rule refuses it.
    Passed,
    /// The meeting did not go as it should.
    Meeting,
}

impl fmt::Display for TapeFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Missing => "missing on the tape",
            Self::Extra => "only on the tape",
            Self::Differs => "differs",
            Self::Disorder => "out of order",
            Self::Undecided => "undecided",
            Self::Passed => "passed though refused",
            Self::Meeting => "meeting",
        })
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What is wrong.
    pub fault: TapeFault,
    /// Where; none where it is about the meeting.
    pub point: Option<Point>,
    /// What the message is.
    pub label: String,
    /// The message, or what is known.
    pub text: String,
}

impl Finding {
    /// Something wrong with a message.
    pub fn new(fault: TapeFault, point: Point, label: impl Into<String>, text: impl Into<String>) -> Self {
        Self { fault, point: Some(point), label: label.into(), text: text.into() }
    }

    /// Something wrong with the meeting.
    pub fn meeting(label: impl Into<String>, text: impl Into<String>) -> Self {
        Self { fault: TapeFault::Meeting, point: None, label: label.into(), text: text.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let point = self.point.map(|point| point.to_string()).unwrap_or_default();
        write!(out, "{} {point} {}: {}", self.fault, self.label, cut(&self.text))
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Findings of one kind.
#[derive(Debug, Default)]
struct Alike<'a> {
    count: usize,
    cells: Vec<&'a str>,
    example: &'a str,
}

/// All findings of all cells, those of one kind together: how many, in which cells, and one of them.
pub fn summary(cells: &[(String, Vec<Finding>)]) -> String {
    let mut kinds: BTreeMap<(TapeFault, Option<Point>, &str), Alike<'_>> = BTreeMap::new();
    for (cell, findings) in cells {
        for finding in findings {
            let alike = kinds.entry((finding.fault, finding.point, &finding.label)).or_default();
            alike.count += 1;
            alike.example = &finding.text;
            if alike.cells.last() != Some(&cell.as_str()) {
                alike.cells.push(cell);
            }
        }
    }
    let mut out = String::new();
    for ((fault, point, label), Alike { count, cells, example }) in kinds {
        let point = point.map(|point| point.to_string()).unwrap_or_default();
        // Writing to a string does not fail.
        let _ = writeln!(out, "{fault} | {point} | {label} | {count}× in {} cells", cells.len());
        let _ = writeln!(out, "    {}", cells.join(", "));
        let _ = writeln!(out, "    {}", cut(example));
    }
    out
}
