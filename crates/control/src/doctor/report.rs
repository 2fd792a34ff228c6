//! Findings formatted for display.

use super::finding::{Finding, Severity};
use crate::table::harmless;
use crate::terminal::{OutputStyle, Tone};

/// Formats every finding in order, then the number of each severity.
#[must_use]
pub fn report(findings: &[Finding], style: OutputStyle) -> String {
    let widest = findings.iter().map(|one| one.check.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for finding in findings {
        text.push_str(&one(finding, widest, style));
    }
    let count = |severity| findings.iter().filter(|one| one.severity == severity).count();
    let (problems, warnings) = (count(Severity::Problem), count(Severity::Warning));
    let verdict = match (problems, warnings) {
        (0, 0) => "everything is fine".to_owned(),
        (0, warnings) => format!("no problems; warnings: {warnings}"),
        (problems, 0) => format!("problems: {problems}"),
        (problems, warnings) => format!("problems: {problems}, warnings: {warnings}"),
    };
    text.push_str(&format!("\n{verdict}\n"));
    text
}

/// Formats one finding: severity, name of the check, then its sentences one below the other.
fn one(finding: &Finding, widest: usize, style: OutputStyle) -> String {
    let word = format!("{:<7}", finding.severity.as_str());
    let word = match finding.severity {
        Severity::Ok => style.paint(Tone::Good, &word),
        Severity::Note => word,
        Severity::Warning => style.paint(Tone::Odd, &word),
        Severity::Problem => style.paint(Tone::Bad, &word),
    };
    let indent = " ".repeat(7 + 2 + widest + 2);
    let check = harmless(&finding.check);
    let mut text = format!("{word}  {check:<widest$}  {}\n", harmless(&finding.found));
    for (label, words) in [("where: ", &finding.place), ("do: ", &finding.advice)] {
        if let Some(words) = words {
            text.push_str(&format!("{indent}{label}{}\n", harmless(words)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: OutputStyle = OutputStyle { width: None, colour: false };

    #[test]
    fn a_finding_says_what_where_and_what_to_do() {
        let findings = [
            Finding::ok("config", "fine"),
            Finding::problem("backend a", "program `npx` was \u{1b}[1m not found", "install Node.js")
                .at("backends.a.command"),
            Finding::warning("clock", "late", "set it"),
        ];
        assert_eq!(
            report(&findings, PLAIN),
            "ok       config     fine\n\
             problem  backend a  program `npx` was \\u{1b}[1m not found\n\
             \x20                   where: backends.a.command\n\
             \x20                   do: install Node.js\n\
             warning  clock      late\n\
             \x20                   do: set it\n\
             \n\
             problems: 1, warnings: 1\n"
        );
        assert!(report(&findings[..1], PLAIN).ends_with("\neverything is fine\n"));
        assert!(report(&findings[2..], PLAIN).ends_with("\nno problems; warnings: 1\n"));
    }
}
