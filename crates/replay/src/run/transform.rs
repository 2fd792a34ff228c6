//! Hooks that change messages during a replay. Users of the library can add their own.

use crate::recorded_call::RecordedCall;
use crate::value_patterns::moment_length;
use serde_json::Value;
use signalbox_engine::lock::LockResultExt as _;
use signalbox_wire::timestamp::{self, CivilDate, TimeOfDay};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Mutex;
use std::time::SystemTime;

/// Changes requests before they are sent, and answers before they are compared.
pub trait MessageTransformer {
    /// Changes a request in place.
    fn transform_request(&self, _request: &mut Value, _call: &RecordedCall) {}

    /// Changes an answer in place.
    fn transform_response(&self, _response: &mut Value, _call: &RecordedCall) {}
}

/// Distance in seconds up to which a timestamp counts as related to its call. It makes all timestamps of the request
/// shift.
const NEAR: u64 = 24 * 3600;
/// Distance in seconds up to which a number counts as a timestamp once another timestamp shifts. Beyond it, the number
/// may be an id.
const FAR: u64 = 366 * 24 * 3600;
/// Years 2 to 9998. Servers and clients use timestamps outside this range for "not set" and "never".
const MOVABLE: Range<i64> = -62_104_060_800..253_370_764_800;
/// Maximum number of shifted timestamps to track.
const MAX_TIMESTAMPS: usize = 100_000;
const NANOS: u64 = 1_000_000_000;

/// Shifts timestamps in arguments by the time passed since the recording, and those in answers back by as much
/// (`update_timestamps`). Timestamps are RFC 3339 texts and numbers of seconds or milliseconds.
///
/// If a timestamp of a request lies within a day of its call, or was shifted in an earlier request, all timestamps of
/// the request shift: every text, and every number within a year. All shift by the same whole number of seconds, which
/// preserves their order and distances. In an answer, a timestamp shifts back if it lies within a day of the call, or
/// if the recorded answer has the unshifted value.
#[derive(Debug)]
pub struct TimeShift {
    by: i64,
    /// Recorded timestamps shifted in a request.
    moved: Mutex<HashSet<i64>>,
}

/// Timestamp in a message, in seconds since 1970.
#[derive(Copy, Clone, PartialEq, Eq, Hash)]
struct Timestamp {
    at: i64,
    form: Form,
}

/// Notation of a timestamp.
#[derive(Copy, Clone, PartialEq, Eq, Hash)]
enum Form {
    Text,
    Seconds,
    Milliseconds,
}

impl Timestamp {
    fn is_within(self, seconds: u64, around: i64) -> bool {
        self.at.abs_diff(around) <= seconds
    }

    /// Returns `true` if this timestamp may shift along with another one.
    fn may_follow(self, around: i64) -> bool {
        match self.form {
            Form::Text => MOVABLE.contains(&self.at),
            Form::Seconds | Form::Milliseconds => self.is_within(FAR, around),
        }
    }
}

impl TimeShift {
    /// Creates a shift from `recorded`, the start of the recording in nanoseconds since 1970, to `now`.
    #[must_use]
    pub fn new(recorded: u64, now: SystemTime) -> Self {
        Self { by: timestamp::seconds_of(now) - seconds(recorded), moved: Mutex::default() }
    }
}

impl MessageTransformer for TimeShift {
    fn transform_request(&self, request: &mut Value, call: &RecordedCall) {
        let Some(arguments) = request.pointer_mut("/params/arguments") else { return };
        let around = seconds(call.began);
        let mut moved = self.moved.lock().unpoisoned();
        let mut moves = false;
        shift(arguments, 0, &mut |found| {
            moves |= found.is_within(NEAR, around) || moved.contains(&found.at);
            false
        });
        if moves {
            shift(arguments, self.by, &mut |found| {
                let follows = found.may_follow(around);
                if follows && moved.len() < MAX_TIMESTAMPS {
                    moved.insert(found.at);
                }
                follows
            });
        }
    }

    fn transform_response(&self, response: &mut Value, call: &RecordedCall) {
        let Some(result) = response.get_mut("result") else { return };
        let mut recorded = HashSet::new();
        shift(&mut call.result().unwrap_or_default(), 0, &mut |found| {
            recorded.insert(found);
            false
        });
        let around = seconds(call.began).saturating_add(self.by);
        shift(result, -self.by, &mut |found| {
            let before = Timestamp { at: found.at.saturating_sub(self.by), ..found };
            let was_moved = recorded.contains(&before) && !recorded.contains(&found) && found.may_follow(around);
            found.is_within(NEAR, around) || was_moved
        });
    }
}

/// Shifts each timestamp for which `moves` returns `true`.
fn shift(value: &mut Value, by: i64, moves: &mut impl FnMut(Timestamp) -> bool) {
    match value {
        Value::Object(members) => members.values_mut().for_each(|value| shift(value, by, moves)),
        Value::Array(items) => items.iter_mut().for_each(|value| shift(value, by, moves)),
        Value::String(text) => {
            if let Some(moved) = shift_text(text, by, moves) {
                *text = moved;
            }
        }
        Value::Number(number) => {
            let Some(whole) = number.as_i64() else { return };
            if moves(Timestamp { at: whole, form: Form::Seconds }) {
                *value = whole.saturating_add(by).into();
            } else if moves(Timestamp { at: whole / 1000, form: Form::Milliseconds }) {
                *value = whole.saturating_add(by.saturating_mul(1000)).into();
            }
        }
        _ => {}
    }
}

/// Returns the text with its timestamps shifted, or `None` if none was.
fn shift_text(text: &str, by: i64, moves: &mut impl FnMut(Timestamp) -> bool) -> Option<String> {
    let (mut new, mut rest, mut found) = (String::with_capacity(text.len()), text, false);
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, from) = rest.split_at(start);
        new.push_str(before);
        let digits = from.find(|c: char| !c.is_ascii_digit()).unwrap_or(from.len());
        let (whole, after) = from.split_at(moment_length(from).unwrap_or(digits));
        let moment = Moment::read(whole);
        match moment.filter(|moment| moves(Timestamp { at: moment.local - moment.offset, form: Form::Text })) {
            Some(moment) => {
                found = true;
                new.push_str(&moment.shift(by));
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

/// Timestamp in RFC 3339 notation.
struct Moment<'a> {
    /// Seconds of its date and time, read as UTC.
    local: i64,
    /// Offset from UTC in seconds.
    offset: i64,
    /// Separator between date and time.
    between: char,
    /// Fraction of the second and zone.
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
        let date = CivilDate { year, month: number(5..7)?, day: number(8..10)? };
        let time = TimeOfDay { hour: number(11..13)?, minute: number(14..16)?, second: number(17..19)? };
        Some(Self { local: timestamp::unix_seconds(date, time)?, offset: offset(rest)?, between, rest })
    }

    fn shift(&self, by: i64) -> String {
        let moved = timestamp::rfc3339(self.local.saturating_add(by));
        let (date, time) = moved.trim_end_matches('Z').split_once('T').unwrap_or((&moved, ""));
        format!("{date}{}{time}{}", self.between, self.rest)
    }
}

/// Parses the UTC offset in seconds at the end of a timestamp, after an optional fraction.
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

    /// Moments of later calls stay later, by as much.
    /// Proves S-39.
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

    /// A moment keeps the zone in which it is written.
    /// Proves S-39.
    #[test]
    fn offsets_are_known_and_kept() {
        let moments = json!(["2026-11-15T14:00:00+02:00", "2026-11-15T23:30:00.5-05:30", "2026-11-15 12:00:00Z"]);
        let moved = json!(["2026-11-18T14:00:00+02:00", "2026-11-18T23:30:00.5-05:30", "2026-11-18 12:00:00Z"]);
        assert_eq!(sent(&shift(3), THEN, &moments), moved);
        let others = json!(["2026-11-15T14:00:00", "2026-11-10T14:00:00Z", "2026-11-15T14:00:00+2", 17]);
        assert_eq!(sent(&shift(3), THEN, &others), others, "without a zone, far away, or no moment");
    }

    /// What the server echoes of the moved moments is compared with what was recorded.
    /// Proves S-40.
    #[test]
    fn moments_in_answers_move_back() {
        let call = recorded(1, "add_event", &json!({}), &json!({}), THEN * NANOS);
        let text = "event 17 from 2026-11-18T14:00:00+02:00 to 2026-11-18T12:30:00Z.";
        let mut answer = json!({"result": {"text": text, "s": THEN + 259_200}});
        shift(3).transform_response(&mut answer, &call);
        let text = "event 17 from 2026-11-15T14:00:00+02:00 to 2026-11-15T12:30:00Z.";
        assert_eq!(answer, json!({"result": {"text": text, "s": THEN}}));
    }

    /// Where one moment of a request moves, all of them do, so that none overtakes another.
    /// Proves S-39.
    #[test]
    fn moments_on_both_sides_of_a_day_keep_their_order() {
        let (from, to) = ("2026-11-16T08:00:00Z", "2026-11-16T18:00:00Z");
        let moved = sent(&shift(3), THEN, &json!({"from": from, "to": to}));
        assert_eq!(
            moved,
            json!({"from": "2026-11-19T08:00:00Z", "to": "2026-11-19T18:00:00Z"}),
            "20 and 30 hours away"
        );
        let arguments = json!({
            "at": "2026-11-15T12:00:00Z",
            "since": "2025-01-31T23:30:00.5-05:30",
            "text": "every week until 2027-02-27T00:00:00+02:00",
            "unset": "0001-01-01T00:00:00Z",
            "never": "9999-12-31T23:59:59Z",
        });
        let wanted = json!({
            "at": "2026-11-18T12:00:00Z",
            "since": "2025-02-03T23:30:00.5-05:30",
            "text": "every week until 2027-03-02T00:00:00+02:00",
            "unset": "0001-01-01T00:00:00Z",
            "never": "9999-12-31T23:59:59Z",
        });
        assert_eq!(sent(&shift(3), THEN, &arguments), wanted);
    }

    /// Numbers keep their order too, but a number far from its call is an id more often than a moment.
    /// Proves S-39.
    #[test]
    fn numbers_on_both_sides_of_a_day_keep_their_order() {
        let (from, to, by) = (THEN + 20 * 3600, THEN + 30 * 3600, 259_200);
        let moved =
            sent(&shift(3), THEN, &json!({"from": from, "to": to, "to_ms": to * 1000 + 7, "id": 1_234_567_890}));
        let wanted = json!({"from": from + by, "to": to + by, "to_ms": (to + by) * 1000 + 7, "id": 1_234_567_890});
        assert_eq!(moved, wanted);
        let far = json!({"to": to, "id": 17});
        assert_eq!(sent(&shift(3), THEN, &far), far, "no moment of the request is near");
    }

    /// A moment that moved once moves in each later request, however far from its call it is there.
    /// Proves S-39.
    #[test]
    fn a_moment_that_moved_once_always_moves() {
        let shift = shift(3);
        let to = json!({"to": "2026-11-16T18:00:00Z"});
        assert_eq!(sent(&shift, THEN, &to), to, "more than a day away, and alone");
        sent(&shift, THEN, &json!({"from": "2026-11-16T08:00:00Z", "to": "2026-11-16T18:00:00Z"}));
        assert_eq!(sent(&shift, THEN, &to), json!({"to": "2026-11-19T18:00:00Z"}));
        let elsewhere = json!({"to": "2026-11-16T20:00:00+02:00"});
        assert_eq!(sent(&shift, THEN, &elsewhere), json!({"to": "2026-11-19T20:00:00+02:00"}), "the same moment");
    }

    /// An answer has a moved moment where the recorded one has it as it was, near or far.
    /// Proves S-40.
    #[test]
    fn far_moments_in_answers_move_back_where_the_recorded_answer_has_them() {
        let recorded_result = json!({"from": "2026-11-16T08:00:00Z", "to": "2026-11-16T18:00:00Z", "s": THEN + 108_000,
            "created": "2020-02-02T20:20:20Z"});
        let call = recorded(1, "add_event", &json!({}), &recorded_result, THEN * NANOS);
        let mut answer = json!({"result": {"from": "2026-11-19T08:00:00Z", "to": "2026-11-19T18:00:00Z",
            "s": THEN + 367_200, "created": "2020-02-02T20:20:20Z"}});
        shift(3).transform_response(&mut answer, &call);
        assert_eq!(answer["result"], recorded_result);
    }
}
