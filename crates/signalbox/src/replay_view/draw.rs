//! Draws a run: the title, the calls with their verdicts, the details of one call, the keys.

use super::view::ReplayView;
use crate::watch::draw::wrap;
use crate::watch::text::{clean, fit, lines, took};
use ratatui::Frame;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use serde_json::Value;
use signalbox_control::table::harmless;
use signalbox_replay::run::control::{ControlledCall, When};
use signalbox_replay::run::{CallReport, ReplayControl, ReplayVerdict};

/// Maximum length of a message shown, in bytes.
const MAX_SHOWN: usize = 64 * 1024;
const KEYS: &str = " space play/pause  n step  b break  [ ] select  g seek  e edit  i inject  +/- speed  q quit";

/// Draws the view into a frame of any size.
pub fn draw(view: &ReplayView, run: &ReplayControl, frame: &mut Frame<'_>) {
    let area = frame.area();
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    if width == 0 || height == 0 {
        return;
    }
    let body = height.saturating_sub(3);
    let list = (body / 2).min(run.calls().len());
    let mut drawn = vec![title(view, run, width)];
    drawn.extend(calls(view, run, width, list));
    drawn.resize(1 + list, Line::default());
    drawn.push(Line::raw("─".repeat(width)));
    let details = detail(view, run).into_iter().flat_map(|text| wrap(&text, width)).skip(view.from);
    drawn.extend(details.take(body - list).map(|text| Line::raw(fit(&text, width))));
    drawn.resize(height.saturating_sub(1), Line::default());
    drawn.push(match &view.said {
        Some(said) => Line::styled(fit(&format!(" {said}"), width), Style::default().add_modifier(Modifier::BOLD)),
        None => Line::raw(fit(KEYS, width)),
    });
    frame.render_widget(Paragraph::new(drawn), area);
}

fn title(view: &ReplayView, run: &ReplayControl, width: usize) -> Line<'static> {
    let (state, count) = (run.state().word().to_uppercase(), run.calls().len());
    let speed = run.speed().map_or_else(|| "max".to_owned(), |speed| format!("{speed}x"));
    let place = (run.position() + 1).min(count);
    let why = run.why().map_or_else(String::new, |why| format!("  {}", clean(why)));
    let text = format!(" {}  {state}  call {place} of {count}  speed {speed}{why}", view.title);
    Line::styled(fit(&text, width), Style::default().add_modifier(Modifier::REVERSED))
}

fn calls(view: &ReplayView, run: &ReplayControl, width: usize, room: usize) -> Vec<Line<'static>> {
    let cursor = view.cursor(run);
    let first = (cursor + 1 + room / 2).min(run.calls().len()).saturating_sub(room);
    let shown = run.calls().iter().enumerate().skip(first).take(room);
    shown.map(|(index, call)| row(view, run, index, call, index == cursor, width)).collect()
}

fn row(
    view: &ReplayView,
    run: &ReplayControl,
    index: usize,
    call: &ControlledCall,
    selected: bool,
    width: usize,
) -> Line<'static> {
    let next = if index == run.position() { '▶' } else { ' ' };
    let stops = run.breakpoints().iter().any(|set| set.when == When::Call(index + 1));
    let (cursor, stop) = (if selected { '>' } else { ' ' }, if stops { '●' } else { ' ' });
    let (verdict, tone) = verdict(run, index, call);
    let subject = call.recorded.subject.as_deref().unwrap_or_default();
    let about = clean(&format!("{} {subject}", call.recorded.method));
    let text = format!("{cursor}{next}{stop}{:>4} {} {verdict}", index + 1, fit(&about, width.saturating_sub(36)));
    let mut style = Style::default();
    if let Some(tone) = tone.filter(|_| view.colour) {
        style = style.fg(tone);
    }
    if selected {
        style = style.add_modifier(Modifier::BOLD);
    }
    Line::styled(fit(&text, width), style)
}

fn verdict(run: &ReplayControl, index: usize, call: &ControlledCall) -> (String, Option<Color>) {
    if run.in_flight() == Some(index) {
        return ("…".to_owned(), Some(Color::Cyan));
    }
    let Some(report) = &call.report else {
        let word = if run.was_skipped(index) { "skipped" } else { "" };
        return (word.to_owned(), Some(Color::DarkGray));
    };
    let edited = if report.edited { " edited" } else { "" };
    let tone = match &report.verdict {
        ReplayVerdict::Same => Color::Green,
        verdict if verdict.is_failure() => Color::Red,
        _ => Color::DarkGray,
    };
    (format!("{}{edited}", report.verdict.word()), Some(tone))
}

/// Returns the lines about the selected call, or about the last injected one. Headings are not indented.
pub(super) fn detail(view: &ReplayView, run: &ReplayControl) -> Vec<String> {
    if let Some(injected) = run.injected().next_back().filter(|_| view.injected) {
        let mut told = vec![format!("Injected request {}", injected.id)];
        told.extend(message(&injected.request));
        told.push("Answer".to_owned());
        match &injected.answer {
            Some(answer) => told.extend(message(answer)),
            None if injected.over => told.push("  none in time".to_owned()),
            None => told.push("  not yet".to_owned()),
        }
        return told;
    }
    let index = view.cursor(run);
    let Some(call) = run.calls().get(index) else { return vec!["There are no calls.".to_owned()] };
    let mut told = Vec::new();
    if let Some(report) = &call.report {
        told.extend(outcome(report));
    }
    let next = run.edit().filter(|_| index == run.position());
    if let Some(edited) = next {
        told.push("Edited request, sent next".to_owned());
        told.extend(message(edited));
        return told;
    }
    match run.heard(index) {
        Some(heard) => {
            told.push("Request as sent".to_owned());
            told.extend(message(&heard.request));
            told.push("Answer".to_owned());
            told.extend(heard.answer.as_ref().map_or_else(|| vec!["  none in time".to_owned()], message));
        }
        None => told.extend(unsent(run, index, call)),
    }
    told
}

fn outcome(report: &CallReport) -> Vec<String> {
    let time = report.took.map_or_else(String::new, |time| {
        format!(" after {}", took(u64::try_from(time.as_micros()).unwrap_or(u64::MAX)))
    });
    let mut told = vec![format!("Verdict: {}{time}", report.verdict.word())];
    told.extend(report.complaints().iter().map(|line| format!("  {}", harmless(line))));
    told
}

/// Describes a call without stored messages: its request as it would be sent now, or as it is on the tape.
fn unsent(run: &ReplayControl, index: usize, call: &ControlledCall) -> Vec<String> {
    let preview = run.preview().filter(|_| index == run.position());
    let mut told = Vec::new();
    if let Some(verdict) = preview.and_then(|preview| preview.not_sent.as_ref()) {
        told.push(format!("Is not sent: {}", verdict.word()));
    }
    match (preview.and_then(|preview| preview.request.as_ref()), &call.recorded.request) {
        (Some(request), _) => {
            told.push("Request, sent next".to_owned());
            told.extend(message(request));
        }
        (None, Some(recorded)) => {
            told.push("Request on the tape".to_owned());
            told.extend(
                lines(&String::from_utf8_lossy(recorded), MAX_SHOWN).into_iter().map(|line| format!("  {line}")),
            );
        }
        (None, None) => told.push("The tape has no request of this call.".to_owned()),
    }
    told
}

fn message(message: &Value) -> Vec<String> {
    lines(&message.to_string(), MAX_SHOWN).into_iter().map(|line| format!("  {line}")).collect()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
