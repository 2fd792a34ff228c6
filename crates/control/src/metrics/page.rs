//! The Prometheus text format.

use std::fmt::Write as _;

/// A page under construction.
#[derive(Debug, Default)]
pub(super) struct Page(String);

impl Page {
    /// Begins a family of samples.
    pub(super) fn family(&mut self, name: &str, kind: &'static str, help: &str) -> Family<'_> {
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
        Family { text: &mut self.0, name: name.to_owned() }
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }
}

/// A family to add samples to.
pub(super) struct Family<'a> {
    text: &'a mut String,
    name: String,
}

impl Family<'_> {
    /// Adds a sample.
    pub(super) fn sample(&mut self, labels: &[(&str, &str)], value: u64) {
        self.part("", labels, &value.to_string());
    }

    /// Adds a sample of a part of a histogram.
    pub(super) fn part(&mut self, suffix: &str, labels: &[(&str, &str)], value: &str) {
        let _ = write!(self.text, "{}{suffix}", self.name);
        for (index, (label, value)) in labels.iter().enumerate() {
            let before = if index == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{before}{label}=\"{}\"", escaped(value));
        }
        let after = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.text, "{after} {value}");
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
