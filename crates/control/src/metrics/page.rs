//! Builder of a page of metrics in the Prometheus text format.

use super::visible_names::VisibleNames;
use signalbox_assembly::metric_family::{MetricFamily, MetricLabels, Points};
use signalbox_engine::labelled_durations::BucketReading;
use std::fmt::Write as _;

/// Formats microseconds as seconds, exactly and without trailing zeros.
pub(super) fn seconds_of(us: u64) -> String {
    let text = format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Builder of a page.
#[derive(Default)]
pub(super) struct Page {
    text: String,
    names: VisibleNames,
}

impl Page {
    /// Starts a page that leaves out samples with other names than these.
    pub(super) fn new(names: VisibleNames) -> Self {
        Self { text: String::new(), names }
    }

    /// Starts a family of samples.
    pub(super) fn family(&mut self, name: &str, kind: &'static str, help: &str) -> Family<'_> {
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        Family { text: &mut self.text, names: &self.names, name: name.to_owned() }
    }

    /// Adds a complete family.
    pub(super) fn add(&mut self, family: &MetricFamily) {
        match &family.points {
            Points::Counters(points) => {
                let mut family = self.family(family.name, "counter", family.help);
                points.iter().for_each(|(labels, count)| family.sample(&borrowed(&named(labels)), *count));
            }
            Points::Durations(points) => {
                let mut family = self.family(family.name, "histogram", family.help);
                points.iter().for_each(|(labels, took)| family.histogram(&borrowed(&named(labels)), took));
            }
        }
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}

/// Builder of a family.
pub(super) struct Family<'a> {
    text: &'a mut String,
    names: &'a VisibleNames,
    name: String,
}

impl Family<'_> {
    pub(super) fn sample(&mut self, labels: &[(&str, &str)], value: u64) {
        self.part("", labels, &value.to_string());
    }

    /// Adds one sample of a histogram, such as `_sum`.
    pub(super) fn part(&mut self, suffix: &str, labels: &[(&str, &str)], value: &str) {
        if !self.names.show(labels) {
            return;
        }
        let _ = write!(self.text, "{}{suffix}", self.name);
        for (index, (label, value)) in labels.iter().enumerate() {
            let before = if index == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{before}{label}=\"{}\"", escaped(value));
        }
        let after = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.text, "{after} {value}");
    }

    /// Adds all samples of one histogram.
    pub(super) fn histogram(&mut self, labels: &[(&str, &str)], took: &BucketReading) {
        let mut with_bound = labels.to_vec();
        with_bound.push(("le", ""));
        let last = with_bound.len() - 1;
        for (bound, count) in &took.within {
            let bound = seconds_of(*bound);
            let mut with_bound = with_bound.clone();
            with_bound[last].1 = &bound;
            self.part("_bucket", &with_bound, &count.to_string());
        }
        with_bound[last].1 = "+Inf";
        self.part("_bucket", &with_bound, &took.count.to_string());
        self.part("_sum", labels, &seconds_of(took.total_us));
        self.part("_count", labels, &took.count.to_string());
    }
}

/// Returns the labels under names that Prometheus accepts.
fn named(labels: &MetricLabels) -> Vec<(String, &str)> {
    labels.iter().map(|(name, value)| (name.replace('.', "_"), value.as_str())).collect()
}

fn borrowed<'a>(labels: &'a [(String, &'a str)]) -> Vec<(&'a str, &'a str)> {
    labels.iter().map(|(name, value)| (name.as_str(), *value)).collect()
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
