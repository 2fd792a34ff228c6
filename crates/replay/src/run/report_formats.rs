//! Formats reports as text, JSON, JUnit, SARIF and GitHub annotations.

use super::lineage::Lineage;
use super::report::{CallReport, ReplayVerdict, RunReport};
use crate::diff::Differences;
use serde_json::{Value, json};
use signalbox_wire::printable;
use std::fmt::Write as _;

impl RunReport {
    /// Formats the report as text.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for call in self.failures() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "✗ {}", printable::lines(&call.title()));
            call.complaints().iter().for_each(|line| _ = writeln!(text, "    {}", printable::lines(line)));
        }
        for call in self.calls.iter().filter(|call| matches!(call.verdict, ReplayVerdict::Depends { .. })) {
            let _ = writeln!(text, "– {}", printable::lines(&call.title()));
            call.dependence().iter().for_each(|line| _ = writeln!(text, "    {}", printable::lines(line)));
        }
        let words = [
            ("same", "the same"),
            ("different", "different"),
            ("slow", "too slow"),
            ("unanswered", "without an answer"),
            ("unclear", "not sent, since it is not clear which object is meant"),
            ("depends", "not compared, since they depend on calls that were not sent or failed"),
            ("from_tape", "not sent, since they may change something (`--allow-writes` sends them)"),
            ("hole", "not comparable, since the tape has holes there"),
            ("filtered", "left out by filters"),
            ("skipped", "skipped"),
        ];
        let counted = words.iter().map(|(word, told)| (self.count(word), told)).filter(|(count, _)| *count > 0);
        let mut counted: Vec<String> = counted.map(|(count, told)| format!("{count} {told}")).collect();
        let edited = self.calls.iter().filter(|call| call.edited).count();
        if edited > 0 {
            counted.push(format!("{edited} of them with an edited request"));
        }
        let rebound = match self.rebound {
            0 => String::new(),
            1 => "; 1 value that the server made up was replaced".to_owned(),
            count => format!("; {count} values that the server made up were replaced"),
        };
        let _ =
            writeln!(text, "{}{rebound}", if counted.is_empty() { "no calls".to_owned() } else { counted.join(", ") });
        text
    }

    /// Lists the trace of each value from an answer to later requests.
    #[must_use]
    pub fn explain(&self) -> String {
        if self.lineage.is_empty() {
            return "no request has a value from an earlier answer\n".to_owned();
        }
        self.lineage.iter().map(|value| value.to_text() + "\n").collect()
    }

    /// Returns the report as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let calls: Vec<Value> = self.calls.iter().map(CallReport::to_json).collect();
        let lineage: Vec<Value> = self.lineage.iter().map(Lineage::to_json).collect();
        json!({"passed": !self.has_failed(), "calls": calls, "rebound": self.rebound, "notifications": self.notifications,
               "lineage": lineage})
    }

    /// Formats the report as JUnit XML, for CI systems.
    #[must_use]
    pub fn to_junit(&self, tape: &str) -> String {
        let wanted = |call: &&CallReport| !matches!(call.verdict, ReplayVerdict::Filtered | ReplayVerdict::Handshake);
        let calls: Vec<&CallReport> = self.calls.iter().filter(wanted).collect();
        let skipped = calls.iter().filter(|call| is_skipped(&call.verdict)).count();
        let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        let (name, count, failed) = (xml_text(tape), calls.len(), self.failures().count());
        let _ = writeln!(
            xml,
            "<testsuites><testsuite name=\"{name}\" tests=\"{count}\" failures=\"{failed}\" skipped=\"{skipped}\">"
        );
        for call in calls {
            let took = call.took.unwrap_or_default().as_secs_f64();
            let (title, class) = (xml_text(&call.title()), xml_text(&call.method));
            let _ = write!(xml, "<testcase name=\"{title}\" classname=\"{class}\" time=\"{took:.3}\">");
            match &call.verdict {
                verdict if verdict.is_failure() => {
                    let why = call.complaints().join("\n");
                    let _ = write!(xml, "<failure message=\"{}\">{}</failure>", verdict.word(), xml_text(&why));
                }
                ReplayVerdict::FromTape => xml.push_str("<skipped message=\"it may change something\"/>"),
                ReplayVerdict::Depends { .. } => {
                    let _ = write!(xml, "<skipped message=\"{}\"/>", xml_text(&call.dependence().join("\n")));
                }
                ReplayVerdict::Skipped => xml.push_str("<skipped message=\"it was not reached\"/>"),
                ReplayVerdict::Hole(why) => _ = write!(xml, "<skipped message=\"{why}\"/>"),
                _ => {}
            }
            xml.push_str("</testcase>\n");
        }
        xml.push_str("</testsuite></testsuites>\n");
        xml
    }

    /// Returns the report as SARIF 2.1.0, for code hosts and editors.
    #[must_use]
    pub fn to_sarif(&self, tape: &str) -> Value {
        let result = |call: &CallReport| {
            let text = format!("{}\n{}", call.title(), call.complaints().join("\n"));
            json!({
                "ruleId": call.verdict.word(),
                "level": "error",
                "message": {"text": text},
                "locations": [{"physicalLocation": {"artifactLocation": {"uri": tape}},
                               "logicalLocations": [{"name": call.subject.clone().unwrap_or_else(|| call.method.clone())}]}],
                "partialFingerprints": {"call/v1": format!("{}:{}", call.number, call.verdict.word())},
            })
        };
        let rules =
            ["different", "slow", "unanswered", "unclear"].map(|id| json!({"id": id, "name": format!("Replay{id}")}));
        let results: Vec<Value> = self.failures().map(result).collect();
        json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{
                "tool": {"driver": {"name": "signalbox", "version": env!("CARGO_PKG_VERSION"), "rules": rules}},
                "results": results,
            }],
        })
    }

    /// Formats the failures as GitHub workflow annotations.
    #[must_use]
    pub fn to_github(&self, tape: &str) -> String {
        let line = |call: &CallReport| {
            let title = github_property(&call.title());
            let text = github_data(&call.complaints().join("\n"));
            format!("::error file={},title={title}::{text}\n", github_property(tape))
        };
        self.failures().map(line).collect()
    }
}

impl CallReport {
    /// Returns the call's report as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut told = json!({
            "call": self.number, "session": self.session, "method": self.method, "subject": self.subject,
            "verdict": self.verdict.word(), "took_ms": self.took.map(|took| took.as_secs_f64() * 1000.0),
        });
        if self.edited {
            told["edited"] = true.into();
        }
        match &self.verdict {
            ReplayVerdict::Different(differences) => {
                add_differences(&mut told, differences);
            }
            ReplayVerdict::Depends { call, differences } => {
                told["depends_on"] = (*call).into();
                differences.iter().for_each(|differences| add_differences(&mut told, differences));
            }
            ReplayVerdict::Unclear(why) => told["why"] = why.clone().into(),
            ReplayVerdict::Hole(why) => told["why"] = (*why).into(),
            _ => {}
        }
        told
    }
}

fn add_differences(told: &mut Value, differences: &Differences) {
    let list = differences
        .list
        .iter()
        .map(|one| json!({"pointer": one.pointer, "kind": one.kind.word(), "recorded": one.recorded, "new": one.new}));
    told["differences"] = list.collect();
    told["more"] = differences.more.into();
}

fn is_skipped(verdict: &ReplayVerdict) -> bool {
    matches!(
        verdict,
        ReplayVerdict::FromTape | ReplayVerdict::Hole(_) | ReplayVerdict::Skipped | ReplayVerdict::Depends { .. }
    )
}

/// Escapes a text for XML 1.0. Control characters that XML cannot represent become U+FFFD.
fn xml_text(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => written.push_str("&amp;"),
            '<' => written.push_str("&lt;"),
            '>' => written.push_str("&gt;"),
            '"' => written.push_str("&quot;"),
            '\n' => written.push_str("&#10;"),
            '\t' | '\r' => written.push(' '),
            c if (c as u32) < 0x20 || matches!(c, '\u{FFFE}' | '\u{FFFF}') => written.push('\u{FFFD}'),
            c => written.push(c),
        }
    }
    written
}

fn github_data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn github_property(text: &str) -> String {
    github_data(text).replace(':', "%3A").replace(',', "%2C")
}
