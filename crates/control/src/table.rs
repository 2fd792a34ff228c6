//! Tables of text with control characters escaped.

use signalbox_wire::printable;

/// Renders rows under headings, each column as wide as its widest cell. Escapes control characters.
#[must_use]
pub fn render(headings: &[&str], rows: &[Vec<String>]) -> String {
    let heading: Vec<String> = headings.iter().map(|&one| one.to_owned()).collect();
    let rows: Vec<Vec<String>> =
        std::iter::once(&heading).chain(rows).map(|row| row.iter().map(|cell| harmless(cell)).collect()).collect();
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..headings.len()).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Returns the text on one line, without control characters.
#[must_use]
pub fn harmless(text: &str) -> String {
    printable::one_line(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_nothing_is_obeyed() {
        let rows = [vec!["a".to_owned(), "long\x1b[1m".to_owned()], vec!["bcd".to_owned(), String::new()]];
        assert_eq!(render(&["X", "Y"], &rows), "X    Y\na    long\\u{1b}[1m\nbcd\n");
    }
}
