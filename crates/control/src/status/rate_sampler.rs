//! Requests per second between two reports of the same processes.

use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::Instant;

/// JSON member that a rate is written to.
const MEMBER: &str = "per_second_now";

/// Previous sample, from which rates are computed.
#[derive(Debug, Default)]
pub struct RateSampler {
    before: Option<(Instant, HashMap<String, u64>)>,
}

impl RateSampler {
    /// Adds to each status the number of requests per second since the previous call. A process without a previous
    /// sample has no rate yet.
    pub fn annotate(&mut self, now: Instant, statuses: &mut [Value]) {
        let mut counts = HashMap::new();
        for status in statuses {
            let pid = status["pid"].to_string();
            let Some(traffic) = status.get_mut("traffic").and_then(Value::as_object_mut) else { continue };
            for (part, figures) in traffic {
                match part.as_str() {
                    "total" => self.one(now, format!("{pid} {part}"), figures, &mut counts),
                    _ => {
                        for (name, figures) in figures.as_object_mut().into_iter().flatten() {
                            self.one(now, format!("{pid} {part} {name}"), figures, &mut counts);
                        }
                    }
                }
            }
        }
        self.before = Some((now, counts));
    }

    fn one(&self, now: Instant, key: String, figures: &mut Value, counts: &mut HashMap<String, u64>) {
        let Some(calls) = figures["calls"].as_u64() else { return };
        if let Some((then, before)) = &self.before
            && let Some(known) = before.get(&key)
        {
            let seconds = now.saturating_duration_since(*then).as_secs_f64();
            if seconds > 0.0 {
                figures[MEMBER] = json!(calls.saturating_sub(*known) as f64 / seconds);
            }
        }
        counts.insert(key, calls);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn rates_come_from_two_looks() {
        let look = |pid: u32, calls: u64| {
            let figures = json!({"calls": calls});
            json!({"pid": pid, "traffic": {"total": figures, "backends": {"a": figures}, "methods": {}}})
        };
        let (mut rates, start) = (RateSampler::default(), Instant::now());
        let mut first = [look(1, 10)];
        rates.annotate(start, &mut first);
        assert!(first[0]["traffic"]["total"].get(MEMBER).is_none());
        let mut second = [look(1, 20), look(2, 99)];
        rates.annotate(start + Duration::from_secs(4), &mut second);
        assert_eq!(second[0]["traffic"]["total"][MEMBER], 2.5);
        assert_eq!(second[0]["traffic"]["backends"]["a"][MEMBER], 2.5);
        assert!(second[1]["traffic"]["total"].get(MEMBER).is_none());
    }
}
