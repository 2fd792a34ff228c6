//! Changes to messages on their way: what a caller of the library plugs in (S-40).

use crate::recorded_call::RecordedCall;
use crate::value_patterns::moment_length;
use serde_json::Value;
use signalbox_wire::timestamp;
use std::time::SystemTime;

/// Changes requests before they are sent, and answers before they are compared.
pub trait MessageTransformer {
    /// Changes a request.
    fn transform_request(&self, _request: &mut Value, _call: &RecordedCall) {}

    /// Changes an answer.
    fn transform_response(&self, _response: &mut Value, _call: &RecordedCall) {}
}

/// How far from its call a moment may lie to be taken for one of it, in seconds.
const NEAR: i64 = 24 * 3600;
const NANOS: u64 = 1_000_000_000;

/// Moves moments in arguments by the time that has passed since the recording, and moments in answers back by as
/// much (S-39, `update_timestamps`): texts as RFC 3339 has them, and numbers of seconds or milliseconds, within a
/// day of their call.
///
/// All moments move by the same whole number of seconds, so that their order and the times between them stay.
#[derive(Copy, Clone, Debug)]
pub struct TimeShift {
    by: i64,
}

impl TimeShift {
    /// Moves a recording that began at `recorded`, in nanoseconds since 1970, to `now`.
    #[must_use]
    pub fn new(recorded: u64, now: SystemTime) -> Self {
        Self { by: timestamp::seconds_of(now) - seconds(recorded) }
    }

    /// Moves each moment near `around` by so many seconds.
    fn shift(value: &mut Value, around: i64, by: i64) {
        let near = |moment: i64| moment.abs_diff(around) <= NEAR.unsigned_abs();
        match value {
            Value::Object(members) => members.values_mut().for_each(|value| Self::shift(value, around, by)),
            Value::Array(items) => items.iter_mut().for_each(|value| Self::shift(value, around, by)),
            Value::String(text) => {
                if let Some(moved) = moved(text, near, by) {
                    *text = moved;
                }
            }
            Value::Number(number) => {
                let Some(whole) = number.as_i64() else { return };
                if near(whole) {
                    *value = (whole + by).into();
                } else if near(whole / 1000) {
                    *value = (whole + by * 1000).into();
                }
            }
            _ => {}
        }
    }
}

impl MessageTransformer for TimeShift {
    fn transform_request(&self, request: &mut Value, call: &RecordedCall) {
        if let Some(arguments) = request.pointer_mut("/params/arguments") {
            Self::shift(arguments, seconds(call.began), self.by);
        }
    }

    fn transform_response(&self, response: &mut Value, call: &RecordedCall) {
        if let Some(result) = response.get_mut("result") {
            Self::shift(result, seconds(call.began).saturating_add(self.by), -self.by);
        }
    }
}

/// A text with all its moments that are near moved; none if there are none.
fn moved(text: &str, near: impl Fn(i64) -> bool, by: i64) -> Option<String> {
    let (mut new, mut rest, mut found) = (String::with_capacity(text.len()), text, false);
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, from) = rest.split_at(start);
        new.push_str(before);
        let digits = from.find(|c: char| !c.is_ascii_digit()).unwrap_or(from.len());
        let (whole, after) = from.split_at(moment_length(from).unwrap_or(digits));
        match Moment::read(whole).filter(|moment| near(moment.local - moment.offset)) {
            Some(moment) => {
                found = true;
                new.push_str(&moment.moved(by));
            }
            None => new.push_str(whole),
        }
        rest = after;
    }
    new.push_str(rest);
    found.then_some(new)
}

fn seconds(nanos: u64) -> i64 {
    i64::try_from(nanos / NANOS).unwrap_or(i64::MAX)
}

/// A moment as RFC 3339 writes it.
struct Moment<'a> {
    /// The seconds of its date and time, as if they were in UTC.
    local: i64,
    /// Seconds that its clock is ahead of UTC.
    offset: i64,
    /// The character between date and time.
    between: char,
    /// Its fraction and its zone.
    rest: &'a str,
}

impl<'a> Moment<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let (whole, rest) = text.split_at_checked(19)?;
        let separators = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
        if !separators.iter().all(|(place, byte)| whole.as_bytes().get(*place) == Some(byte)) {
            return None;
        }
        let between = char::from(*whole.as_bytes().get(10)?);
        if !matches!(between, 'T' | 't' | ' ') {
            return None;
        }
        let number = |range: std::ops::Range<usize>| whole.get(range)?.parse::<u8>().ok();
        let year = whole.get(..4)?.parse::<i32>().ok()?;
        let date = (year, number(5..7)?, number(8..10)?);
        let time = (number(11..13)?, number(14..16)?, number(17..19)?);
        Some(Self { local: timestamp::unix_seconds(date, time)?, offset: offset(rest)?, between, rest })
    }

    fn moved(&self, by: i64) -> String {
        let moved = timestamp::rfc3339(self.local.saturating_add(by));
        let (date, time) = moved.trim_end_matches('Z').split_once('T').unwrap_or((&moved, ""));
        format!("{date}{}{time}{}", self.between, self.rest)
    }
}

/// Seconds ahead of UTC that the end of a moment says, after a fraction.
fn offset(rest: &str) -> Option<i64> {
    let zone = match rest.strip_prefix('.') {
        Some(fraction) => fraction.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => rest,
    };
    if matches!(zone, "Z" | "z") {
        return Some(0);
    }
    let (sign, digits) = zone.split_at_checked(1)?;
    let (hours, minutes) = digits.split_once(':')?;
    let number = |text: &str| text.parse::<u8>().ok().filter(|_| text.len() == 2);
    let seconds = i64::from(number(hours)?) * 3600 + i64::from(number(minutes)?) * 60;
    match sign {
        "+" => Some(seconds),
        "-" => Some(-seconds),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tests::recorded;
    use serde_json::json;
    use std::time::{Duration, UNIX_EPOCH};

    /// 2026-11-15T12:00:00Z.
    const THEN: u64 = 1_794_744_000;

    fn shift(days: u64) -> TimeShift {
        TimeShift::new(THEN * NANOS, UNIX_EPOCH + Duration::from_secs(THEN + days * 86_400))
    }

    fn sent(shift: &TimeShift, began: u64, arguments: &Value) -> Value {
        let call = recorded(1, "add_event", arguments, &json!({}), began * NANOS);
        let mut request = json!({"params": {"arguments": arguments}});
        shift.transform_request(&mut request, &call);
        request["params"]["arguments"].take()
    }

    /// S-39: moments of later calls stay later, by as much.
    #[test]
    fn moments_keep_their_order_and_the_times_between_them() {
        let shift = shift(3);
        let first = sent(&shift, THEN, &json!({"at": "2026-11-15T12:00:00Z", "s": THEN, "ms": THEN * 1000 + 5}));
        assert_eq!(
            first,
            json!({"at": "2026-11-18T12:00:00Z", "s": THEN + 259_200, "ms": (THEN + 259_200) * 1000 + 5})
        );
        let later =
            sent(&shift, THEN + 600, &json!({"from": "2026-11-15T12:00:00Z", "to": "2026-11-15T12:10:00.250Z"}));
        assert_eq!(later, json!({"from": "2026-11-18T12:00:00Z", "to": "2026-11-18T12:10:00.250Z"}));
    }

    /// S-39: a moment keeps the zone in which it is written.
    #[test]
    fn offsets_are_known_and_kept() {
        let moments = json!(["2026-11-15T14:00:00+02:00", "2026-11-15T23:30:00.5-05:30", "2026-11-15 12:00:00Z"]);
        let moved = json!(["2026-11-18T14:00:00+02:00", "2026-11-18T23:30:00.5-05:30", "2026-11-18 12:00:00Z"]);
        assert_eq!(sent(&shift(3), THEN, &moments), moved);
        let others = json!(["2026-11-15T14:00:00", "2026-11-10T14:00:00Z", "2026-11-15T14:00:00+2", 17]);
        assert_eq!(sent(&shift(3), THEN, &others), others, "without a zone, far away, or no moment");
    }

    /// S-40: what the server echoes of the moved moments is compared with what was recorded.
    #[test]
    fn moments_in_answers_move_back() {
        let call = recorded(1, "add_event", &json!({}), &json!({}), THEN * NANOS);
        let text = "event 17 from 2026-11-18T14:00:00+02:00 to 2026-11-18T12:30:00Z.";
        let mut answer = json!({"result": {"text": text, "s": THEN + 259_200}});
        shift(3).transform_response(&mut answer, &call);
        let text = "event 17 from 2026-11-15T14:00:00+02:00 to 2026-11-15T12:30:00Z.";
        assert_eq!(answer, json!({"result": {"text": text, "s": THEN}}));
    }
}
