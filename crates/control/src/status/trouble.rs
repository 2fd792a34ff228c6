//! Describes a failing backend for display: breaker, pings, queue, retries. A healthy backend gets no lines.

use super::view::BackendView;
use serde::Deserialize;

/// Circuit breaker of a backend.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct BreakerView {
    /// `closed`, `open` or `half open`.
    pub state: String,
    /// Time in milliseconds until calls pass again.
    pub retry_in_ms: Option<u64>,
    /// Number of refused calls.
    pub refused: u64,
    /// Number of callers that are refused because their own calls fail.
    pub callers: usize,
}

/// Health of a backend according to pings.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct HealthView {
    /// `not pinged yet`, `well`, `in doubt` or `unwell`.
    pub state: String,
    /// Number of unanswered pings.
    pub failed: u64,
}

/// State of one of several addresses.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct AddressView {
    pub address: String,
    /// State of the address's breaker.
    pub breaker: String,
    /// Number of requests or connections in progress.
    pub busy: u64,
    /// Number of requests or connections sent.
    pub sent: u64,
    /// Number of failed requests or connections.
    pub failed: u64,
}

/// Returns the labelled lines about a backend.
pub(super) fn lines(backend: &BackendView) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    lines.extend(backend.breaker.as_ref().and_then(breaker).map(|words| ("breaker", words)));
    if let Some(health) = backend.health.as_ref().filter(|health| matches!(&*health.state, "in doubt" | "unwell")) {
        lines.push(("health", format!("{}; pings without an answer so far: {}", health.state, health.failed)));
    }
    let waiting = backend.waiting.unwrap_or(0);
    if waiting > 0 || backend.queue_refused > 0 {
        let most = backend.max_queue.map_or_else(|| "-".to_owned(), |most| most.to_string());
        let words = format!("{waiting} of at most {most} calls wait for it; refused so far: {}", backend.queue_refused);
        lines.push(("queue", words));
    }
    if backend.retries > 0 {
        lines.push(("retries", format!("{} requests that certainly had not reached it", backend.retries)));
    }
    lines.extend(backend.addresses.iter().map(|one| ("address", address(one))));
    lines
}

fn breaker(breaker: &BreakerView) -> Option<String> {
    let again = match (&*breaker.state, breaker.retry_in_ms) {
        ("open", Some(millis)) => format!("tried again in {} s", millis.div_ceil(1000)),
        ("open" | "half open", _) => "tried by single calls".to_owned(),
        _ if breaker.callers > 0 => {
            let (callers, refused) = (breaker.callers, breaker.refused);
            return Some(format!(
                "open for {callers} callers whose calls keep failing, while others are answered; calls refused: {refused}"
            ));
        }
        _ => return None,
    };
    Some(format!("{}: the backend keeps failing, {again}; calls refused: {}", breaker.state, breaker.refused))
}

fn address(one: &AddressView) -> String {
    let how = if one.breaker == "closed" { "in use" } else { "skipped because it fails" };
    format!("{}: {how}, under way: {}, sent: {}, failed: {}", one.address, one.busy, one.sent, one.failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_backend_that_is_well_needs_no_words() {
        let well = json!({"name": "a", "breaker": {"state": "closed"}, "health": {"state": "well"}, "max_queue": 9});
        assert!(lines(&serde_json::from_value(well).unwrap()).is_empty());
    }

    /// Proves SO-15.
    #[test]
    fn what_fails_is_told() {
        let backend = json!({
            "name": "a", "waiting": 2, "max_queue": 9, "queue_refused": 1, "retries": 4,
            "breaker": {"state": "half open", "refused": 3}, "health": {"state": "unwell", "failed": 5},
            "addresses": [
                {"address": "h:1", "breaker": "closed", "busy": 1, "sent": 7, "failed": 0},
                {"address": "h:2", "breaker": "open", "sent": 2, "failed": 2},
            ],
        });
        let words: Vec<String> = lines(&serde_json::from_value(backend).unwrap())
            .into_iter()
            .map(|(label, words)| format!("{label}: {words}"))
            .collect();
        assert_eq!(
            words,
            [
                "breaker: half open: the backend keeps failing, tried by single calls; calls refused: 3",
                "health: unwell; pings without an answer so far: 5",
                "queue: 2 of at most 9 calls wait for it; refused so far: 1",
                "retries: 4 requests that certainly had not reached it",
                "address: h:1: in use, under way: 1, sent: 7, failed: 0",
                "address: h:2: skipped because it fails, under way: 0, sent: 2, failed: 2",
            ]
        );
    }
}
