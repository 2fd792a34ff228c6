//! Changes to messages on their way: what a caller of the library plugs in (S-40).

use crate::recorded_call::RecordedCall;
use serde_json::Value;
use signalbox_wire::timestamp;
use std::time::{SystemTime, UNIX_EPOCH};

/// Changes requests before they are sent, and answers before they are compared.
pub trait MessageTransformer {
    /// Changes a request.
    fn transform_request(&self, _request: &mut Value, _call: &RecordedCall) {}

    /// Changes an answer.
    fn transform_response(&self, _response: &mut Value, _call: &RecordedCall) {}
}

/// How far from its call a moment may lie to be taken for one of it, in seconds.
const NEAR: i64 = 24 * 3600;

/// Moves moments in arguments by the time that has passed since the recording (S-39, `update_timestamps`): texts as
/// RFC 3339 has them, and numbers of seconds or milliseconds, within a day of their call.
#[derive(Copy, Clone, Debug)]
pub struct TimeShift {
    now: i64,
}

impl TimeShift {
    /// Moves to now.
    #[must_use]
    pub fn to(now: SystemTime) -> Self {
        let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { now: i64::try_from(since.as_secs()).unwrap_or(i64::MAX) }
    }

    fn shift(&self, value: &mut Value, recorded: i64) {
        let near = |moment: i64| (moment - recorded).abs() <= NEAR;
        let by = self.now - recorded;
        match value {
            Value::Object(members) => members.values_mut().for_each(|value| self.shift(value, recorded)),
            Value::Array(items) => items.iter_mut().for_each(|value| self.shift(value, recorded)),
            Value::String(text) => {
                if let Some((moment, rest)) = rfc3339(text).filter(|(moment, _)| near(*moment)) {
                    let moved = timestamp::rfc3339(moment + by);
                    *text = format!("{}{rest}", moved.trim_end_matches('Z'));
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
        let recorded = i64::try_from(call.began / 1_000_000_000).unwrap_or(i64::MAX);
        if let Some(arguments) = request.pointer_mut("/params/arguments") {
            self.shift(arguments, recorded);
        }
    }
}

/// The seconds of a moment in UTC, and what follows them: a fraction and the `Z`.
fn rfc3339(text: &str) -> Option<(i64, &str)> {
    let (whole, rest) = text.split_at_checked(19)?;
    let number = |range: std::ops::Range<usize>| whole.get(range)?.parse::<u8>().ok();
    let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if !separators.iter().all(|(place, byte)| whole.as_bytes().get(*place) == Some(byte)) || !rest.ends_with('Z') {
        return None;
    }
    let year = whole.get(..4)?.parse::<i32>().ok()?;
    let date = (year, number(5..7)?, number(8..10)?);
    let time = (number(11..13)?, number(14..16)?, number(17..19)?);
    Some((timestamp::unix_seconds(date, time)?, rest))
}
