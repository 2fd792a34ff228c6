//! Table of backends: its columns, and which of them fit.

use super::view::{BackendView, FiguresView, LabelsView};
use crate::table::harmless;
use crate::terminal::{OutputStyle, Tone};

/// Data of one row.
pub struct Row<'a> {
    pub backend: &'a BackendView,
    /// Traffic of the backend.
    pub figures: Option<&'a FiguresView>,
    /// Operator's labels of the backend.
    pub labels: Option<&'a LabelsView>,
}

/// One column. It is left out if all its cells are empty.
struct Column {
    heading: &'static str,
    /// Priority for removal if the columns do not fit: the highest goes first, 0 stays.
    spare: u8,
    cell: fn(&Row<'_>) -> Option<String>,
}

const fn column(heading: &'static str, spare: u8, cell: fn(&Row<'_>) -> Option<String>) -> Column {
    Column { heading, spare, cell }
}

/// All columns, in order.
const COLUMNS: &[Column] = &[
    column("BACKEND", 0, |row| Some(row.backend.name.clone())),
    column("CATEGORY", 12, |row| row.labels?.category.clone()),
    column("TRUST", 11, |row| row.labels?.trust_level.clone()),
    column("TRANSPORT", 6, |row| row.backend.transport.clone()),
    column("STATE", 0, |row| Some(row.backend.state.clone())),
    column("REVISION", 5, |row| row.backend.revision.clone()),
    column("ERA", 8, |row| Some(row.backend.eras.join(" and ")).filter(|eras| !eras.is_empty())),
    column("TOOLS", 7, |row| listed(row, "tools")),
    column("PROMPTS", 10, |row| listed(row, "prompts")),
    column("RESOURCES", 10, |row| listed(row, "resources")),
    column("RESTARTS", 4, |row| row.backend.restarts.map(|count| count.to_string())),
    column("IN FLIGHT", 2, |row| row.backend.in_flight.map(|count| count.to_string())),
    column("WAITING", 9, |row| row.backend.waiting.map(|count| count.to_string())),
    column("CALLS", 3, |row| row.figures.map(|one| one.calls.to_string())),
    column("RATE", 1, |row| row.figures?.rate().map(per_second)),
    column("ERRORS", 1, |row| row.figures.map(|one| one.errors.to_string())),
    column("P50", 3, |row| row.figures?.quantile(|one| one.p50_ms)),
    column("P95", 2, |row| row.figures?.quantile(|one| one.p95_ms)),
    column("P99", 2, |row| row.figures?.quantile(|one| one.p99_ms)),
];

/// Formats a rate for display.
#[must_use]
pub fn per_second(rate: f64) -> String {
    if rate > 0.0 && rate < 10.0 { format!("{rate:.1}/s") } else { format!("{rate:.0}/s") }
}

fn listed(row: &Row<'_>, what: &str) -> Option<String> {
    row.backend.lists.get(what).map(ToString::to_string)
}

/// Returns the tone of a state.
fn tone(state: &str) -> Tone {
    match state {
        "up" | "asleep" | "waiting" => Tone::Good,
        "down" => Tone::Bad,
        _ => Tone::Odd,
    }
}

/// Number of spaces between columns.
const GAP: usize = 2;

/// Renders the table within the width of the style.
#[must_use]
pub fn table(rows: &[Row<'_>], style: OutputStyle) -> String {
    let mut shown: Vec<(&Column, Vec<String>)> = Vec::new();
    for column in COLUMNS {
        let cells: Vec<Option<String>> = rows.iter().map(|row| (column.cell)(row)).collect();
        if cells.iter().any(Option::is_some) {
            let cells = cells.into_iter().map(|cell| cell.map_or_else(|| "-".to_owned(), |text| harmless(&text)));
            shown.push((column, cells.collect()));
        }
    }
    while style.width.is_some_and(|width| total(&shown) > width) {
        let Some(most) = shown.iter().map(|(column, _)| column.spare).max().filter(|most| *most > 0) else { break };
        let last = shown.iter().rposition(|(column, _)| column.spare == most);
        last.map(|place| shown.remove(place));
    }
    let heading = line(&shown, |column, _| (column.heading.to_owned(), None), style);
    let lines = rows.iter().enumerate().map(|(index, row)| {
        let cell = |column: &Column, cells: &[String]| {
            let tone = (column.heading == "STATE").then(|| tone(&row.backend.state));
            (cells[index].clone(), tone)
        };
        line(&shown, cell, style)
    });
    std::iter::once(heading).chain(lines).collect()
}

fn width((column, cells): &(&Column, Vec<String>)) -> usize {
    cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0).max(column.heading.len())
}

fn total(shown: &[(&Column, Vec<String>)]) -> usize {
    shown.iter().map(|column| width(column) + GAP).sum::<usize>().saturating_sub(GAP)
}

fn line(
    shown: &[(&Column, Vec<String>)],
    cell: impl Fn(&Column, &[String]) -> (String, Option<Tone>),
    style: OutputStyle,
) -> String {
    let mut line = String::new();
    for (place, one) in shown.iter().enumerate() {
        let (text, tone) = cell(one.0, &one.1);
        let room = if place + 1 == shown.len() { 0 } else { width(one) + GAP };
        let padding = room.saturating_sub(text.chars().count());
        line.push_str(&tone.map_or_else(|| text.clone(), |tone| style.paint(tone, &text)));
        line.push_str(&" ".repeat(padding));
    }
    format!("{}\n", line.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backend(name: &str) -> BackendView {
        BackendView {
            name: name.to_owned(),
            transport: Some("stdio".to_owned()),
            state: "up".to_owned(),
            revision: Some("2025-11-25".to_owned()),
            in_flight: Some(1),
            ..BackendView::default()
        }
    }

    fn check(width: Option<usize>) -> String {
        let (one, two) = (backend("a"), BackendView { state: "down".to_owned(), ..backend("long-name") });
        let figures = FiguresView { calls: 12, errors: 3, per_second_now: Some(2.5), ..FiguresView::default() };
        let rows = [
            Row { backend: &one, figures: Some(&figures), labels: None },
            Row { backend: &two, figures: None, labels: None },
        ];
        table(&rows, OutputStyle { width, colour: false })
    }

    #[test]
    fn columns_without_content_are_left_out() {
        assert_eq!(
            check(None),
            "BACKEND    TRANSPORT  STATE  REVISION    IN FLIGHT  CALLS  RATE   ERRORS\n\
             a          stdio      up     2025-11-25  1          12     2.5/s  3\n\
             long-name  stdio      down   2025-11-25  1          -      -      -\n"
        );
    }

    #[test]
    fn where_it_is_narrow_the_least_important_go_first() {
        let narrow = check(Some(61));
        assert!(narrow.lines().all(|line| line.chars().count() <= 61), "{narrow}");
        assert_eq!(
            narrow.lines().next(),
            Some("BACKEND    STATE  REVISION    IN FLIGHT  CALLS  RATE   ERRORS"),
            "{narrow}"
        );
        assert_eq!(check(Some(1)).lines().next(), Some("BACKEND    STATE"));
    }
}
