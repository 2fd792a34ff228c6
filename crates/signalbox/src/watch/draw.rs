//! Draws the view: the title, the list, the details, the footer.

use super::calls::WatchedCall;
use super::detail;
use super::held::HeldEntry;
use super::text::{clock, fit, took};
use super::view::{Mode, WatchView};
use crate::output::counted;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

/// Widths of the fixed columns. The subject of a call gets the remaining width.
const WHO: usize = 10;
const BACKEND: usize = 10;
const OUTCOME: usize = 12;
const TOOK: usize = 8;
/// Width below which some columns are omitted.
const NARROW: usize = 70;

/// Draws the view into a frame of any size.
pub fn draw(view: &WatchView, frame: &mut Frame<'_>) {
    let area = frame.area();
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    if width == 0 || height == 0 {
        return;
    }
    let mut lines = vec![title(view, width)];
    let room = height.saturating_sub(2);
    lines.extend(match view.mode {
        Mode::Detail(from) => read(view, from, width, room),
        _ => listed(view, width, room),
    });
    lines.truncate(height.saturating_sub(1));
    lines.resize(height.saturating_sub(1), Line::default());
    lines.push(footer(view, width));
    // On a terminal of one line, the footer with the keys is the most useful line.
    let skip = lines.len().saturating_sub(height);
    frame.render_widget(Paragraph::new(lines.split_off(skip)), Rect::new(area.x, area.y, area.width, area.height));
}

fn title(view: &WatchView, width: usize) -> Line<'static> {
    let mut text = format!(" {}  {}", view.title, counted(view.calls.seen(), "call"));
    if !view.held.is_empty() {
        text = format!("{text}  {} held", view.held.len());
    }
    if view.lost > 0 {
        text = format!("{text}  {} lost", view.lost);
    }
    if view.paused {
        text.push_str("  PAUSED");
    }
    if !view.filter.is_empty() {
        text = format!("{text}  /{}", view.filter);
    }
    Line::styled(fit(&text, width), Style::default().add_modifier(Modifier::REVERSED))
}

fn footer(view: &WatchView, width: usize) -> Line<'static> {
    let typing = |what: &str, text: &str| Line::raw(fit_end(&format!("{what}{text}_"), width));
    match (&view.mode, &view.said) {
        (Mode::Filter, _) => typing("/", &view.filter),
        (Mode::Answer(id, text), _) => typing(&format!("answer {id} with the text: "), text),
        (Mode::Refuse(id, text), _) => typing(&format!("refuse {id}, because: "), text),
        (_, Some(said)) => Line::styled(fit(&format!(" {said}"), width), Style::default().add_modifier(Modifier::BOLD)),
        (Mode::Detail(_), None) => {
            Line::raw(fit(" esc back  up/down scroll  r release  e edit  a answer  x refuse  q quit", width))
        }
        (Mode::List, None) => {
            let held = if view.held.is_empty() { "n hold next" } else { "r release  e edit  a answer  x refuse" };
            Line::raw(fit(&format!(" enter detail  / filter  p pause  {held}  q quit"), width))
        }
    }
}

/// Cuts a text at its beginning, so that the end, where the user types, stays visible.
fn fit_end(text: &str, width: usize) -> String {
    let excess = text.chars().count().saturating_sub(width);
    fit(&text.chars().skip(excess).collect::<String>(), width)
}

fn listed(view: &WatchView, width: usize, room: usize) -> Vec<Line<'static>> {
    let cursor = view.cursor();
    let mut lines = Vec::new();
    // Held messages take at most half of the rows.
    let most = (room / 2).max(1);
    let first = cursor.map_or(0, |cursor| (cursor + 1).saturating_sub(most)).min(view.held.len().saturating_sub(most));
    for (place, held) in view.held.iter().enumerate().skip(first).take(most) {
        lines.push(row(view, held_text(held, width), cursor == Some(place), Some(Color::Yellow)));
    }
    lines.push(Line::styled(heading(width), Style::default().add_modifier(Modifier::BOLD | Modifier::UNDERLINED)));
    let room = room.saturating_sub(lines.len());
    let shown = view.shown();
    let at = cursor.and_then(|cursor| cursor.checked_sub(view.held.len()));
    let first = at.map_or(0, |at| (at + 1).saturating_sub(room));
    for (place, call) in shown.iter().enumerate().skip(first).take(room) {
        lines.push(row(view, call_text(call, width), at == Some(place), tone(call)));
    }
    if shown.is_empty() {
        let none = if view.filter.is_empty() { " Nothing has passed yet." } else { " No call matches the filter." };
        lines.push(Line::raw(fit(none, width)));
    }
    lines
}

fn row(view: &WatchView, text: String, selected: bool, tone: Option<Color>) -> Line<'static> {
    let mut style = Style::default();
    if let Some(tone) = tone.filter(|_| view.colour) {
        style = style.fg(tone);
    }
    let mark = if selected { ">" } else { " " };
    if selected {
        style = style.add_modifier(Modifier::BOLD);
    }
    Line::from(vec![Span::styled(mark, style), Span::styled(text, style)])
}

fn tone(call: &WatchedCall) -> Option<Color> {
    match call.outcome.as_deref() {
        None => Some(Color::Cyan),
        Some("success") if call.differs => Some(Color::Yellow),
        Some("success") => None,
        Some("cancelled") => Some(Color::DarkGray),
        Some(_) => Some(Color::Red),
    }
}

fn held_text(held: &HeldEntry, width: usize) -> String {
    let left = format!("{} s left", held.left_ms.div_ceil(1000));
    let what = format!("HELD {} {} {}  for {} ({})", held.id, held.phase, held.about(), held.who, held.reason);
    let room = width.saturating_sub(left.len() + 2);
    fit(&format!("{} {left}", fit(&what, room)), width.saturating_sub(1))
}

fn heading(width: usize) -> String {
    fit(&format!(" {}", columns(["TIME UTC", "WHO", "CALL", "BACKEND", "OUTCOME", "TOOK", ""], width)), width)
}

fn call_text(call: &WatchedCall, width: usize) -> String {
    let (time, took) = (clock(call.at_ms), if call.outcome.is_some() { took(call.took_us) } else { String::new() });
    let outcome = call.outcome.as_deref().unwrap_or("…");
    let mark = match (call.differs, call.decisions.is_empty()) {
        (true, _) => "≠",
        (false, true) => "",
        (false, false) => "*",
    };
    columns([&time, &call.who, call.about(), call.backend.as_deref().unwrap_or("-"), outcome, &took, mark], width)
}

/// Aligns the cells in columns, leaving one column for the cursor.
fn columns([time, who, about, backend, outcome, took, mark]: [&str; 7], width: usize) -> String {
    let width = width.saturating_sub(1);
    if width < NARROW {
        let about_width = width.saturating_sub(8 + OUTCOME + 5);
        return fit(&format!("{time} {} {} {mark}", fit(about, about_width), fit(outcome, OUTCOME)), width);
    }
    let about_width = width.saturating_sub(8 + WHO + BACKEND + OUTCOME + TOOK + 8);
    let cells = [fit(who, WHO), fit(about, about_width), fit(backend, BACKEND), fit(outcome, OUTCOME)];
    fit(&format!("{time} {} {} {mark}", cells.join(" "), fit(took, TOOK)), width)
}

fn read(view: &WatchView, from: usize, width: usize, room: usize) -> Vec<Line<'static>> {
    let line = |text: String| {
        let heading = !text.starts_with(' ');
        let style = if heading { Style::default().add_modifier(Modifier::BOLD) } else { Style::default() };
        Line::styled(fit(&text, width), style)
    };
    let wrapped = detail::lines(view).into_iter().flat_map(|text| wrap(&text, width));
    wrapped.skip(from).take(room).map(line).collect()
}

/// Wraps a long line, with the continuation indented a little.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let indent = text.chars().take_while(|char| *char == ' ').count().min(width / 2) + 2;
    let (mut lines, mut line, mut used) = (Vec::new(), String::new(), 0);
    for char in text.chars() {
        let wide = Span::raw(char.encode_utf8(&mut [0; 4]) as &str).width();
        if used + wide > width && used > indent {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
            used = indent;
        }
        line.push(char);
        used += wide;
    }
    lines.push(line);
    lines
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

#[cfg(test)]
mod title_tests {
    use super::*;
    use crate::watch::WatchEvent;
    use serde_json::json;

    #[test]
    fn one_call_is_counted_in_the_singular() {
        let mut view = WatchView::new("signalbox watch", false);
        for (exchange, wanted) in [(1, "  1 call"), (2, "  2 calls")] {
            let message = json!({"type": "message", "at_ms": 1, "exchange": exchange, "session": 1, "principal": "ann",
                "point": "client to gateway", "kind": "request", "method": "tools/call", "subject": "echo"});
            view.apply(WatchEvent::Fact(message));
            assert_eq!(title(&view, 80).to_string().trim_end(), format!(" signalbox watch{wanted}"));
        }
    }
}
