//! Details of one call or one held message.

use super::calls::{self, WatchedCall};
use super::held::HeldEntry;
use super::text::{clock, took};
use super::view::WatchView;
use signalbox_engine::fact::Point;

/// Returns the lines about the item under the cursor. Headings are not indented.
pub(super) fn lines(view: &WatchView) -> Vec<String> {
    match view.under_cursor() {
        (Some(held), _) => of_held(held),
        (None, Some(call)) => of_call(call),
        (None, None) => Vec::new(),
    }
}

fn of_held(held: &HeldEntry) -> Vec<String> {
    let mut lines = vec![
        format!("Held {} {}: {} {}", held.phase, held.id, held.method, held.subject.as_deref().unwrap_or_default()),
        format!("  for {}, reason: {}, {} s left", held.who, held.reason, held.left_ms.div_ceil(1000)),
        "Message".to_owned(),
    ];
    lines.extend(indented(held.lines()));
    lines
}

fn of_call(call: &WatchedCall) -> Vec<String> {
    let ended = match &call.outcome {
        Some(outcome) => format!("{outcome} after {}", took(call.took_us)),
        None => "not answered yet".to_owned(),
    };
    let mut lines = vec![
        format!("{} {}", call.method, call.subject.as_deref().unwrap_or_default()),
        format!(
            "  at {} UTC for {}, through {}: {ended}",
            clock(call.at_ms),
            call.who,
            call.backend.as_deref().unwrap_or("no backend")
        ),
        format!("  session {}, exchange {}", call.key.0, call.key.1),
        "Decisions".to_owned(),
    ];
    if call.decisions.is_empty() {
        lines.push("  none".to_owned());
    }
    lines.extend(call.decisions.iter().map(|decision| format!("  {decision}")));
    for (point, heading) in Point::ALL.iter().map(|one| one.words()).enumerate() {
        let first =
            (0..point).find(|&before| call.images[before].is_some() && call.images[before] == call.images[point]);
        let heading = format!("{}{}", heading[..1].to_uppercase(), &heading[1..]);
        match (&call.images[point], first) {
            (None, _) => lines.push(format!("{heading}: not seen")),
            (Some(_), Some(first)) => lines.push(format!("{heading}: the same as {}", Point::ALL[first].words())),
            (Some(_), None) => {
                lines.push(heading);
                lines.extend(indented(calls::image(call, point)));
            }
        }
    }
    lines
}

fn indented(lines: Vec<String>) -> impl Iterator<Item = String> {
    lines.into_iter().map(|line| format!("  {line}"))
}
