//! What was called, what became of it, and what was wrong with that.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::cast::Cast;
use super::fault::ChaosFault;

/// Most wrongs that are kept in words; more are only counted.
const MAX_WRONGS: usize = 40;
/// How much of a message a wrong quotes.
const QUOTED: usize = 400;

/// One call of a tool.
#[derive(Debug, Clone)]
pub struct LoggedCall {
    /// Its id.
    pub id: u64,
    /// What no other call has as its argument.
    pub tag: String,
    /// The backend it is for.
    pub backend: &'static str,
    /// The tool.
    pub tool: String,
    /// Whether nothing strikes that backend.
    pub steady: bool,
    /// How long the tool works, in milliseconds.
    pub takes: u64,
    /// Whether it asks for progress.
    pub progress: bool,
    /// When it was sent.
    pub sent: Instant,
}

impl LoggedCall {
    /// Its message.
    pub fn message(&self, modern: bool) -> Value {
        let mut params = json!({"name": self.tool, "arguments": {"tag": self.tag, "ms": self.takes}});
        if self.progress {
            params["_meta"]["progressToken"] = json!(self.tag);
        }
        if modern {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        json!({"jsonrpc": "2.0", "id": self.id, "method": "tools/call", "params": params})
    }
}

/// What is counted.
#[derive(Debug, Default)]
pub struct CallLog {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    made: u64,
    vanished: u64,
    right: BTreeMap<&'static str, u64>,
    right_tags: BTreeSet<String>,
    errors: BTreeMap<String, u64>,
    samples: BTreeMap<String, String>,
    faults: BTreeMap<&'static str, u64>,
    clients: BTreeMap<&'static str, u64>,
    slowest: Duration,
    wrongs: Vec<String>,
    wrong_count: u64,
}

impl CallLog {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call is made by a client of this kind.
    pub fn made(&self, client: &'static str) {
        let mut inner = self.inner();
        inner.made += 1;
        *inner.clients.entry(client).or_default() += 1;
    }

    /// A call whose client went away.
    pub fn vanished(&self) {
        self.inner().vanished += 1;
    }

    /// A fault strikes.
    pub fn struck(&self, fault: ChaosFault) {
        *self.inner().faults.entry(fault.word()).or_default() += 1;
    }

    /// Something is not as it should be.
    pub fn wrong(&self, what: String) {
        let mut inner = self.inner();
        inner.wrong_count += 1;
        if inner.wrongs.len() < MAX_WRONGS {
            inner.wrongs.push(what);
        }
    }

    /// A call got this one answer.
    pub fn answered(&self, client: &'static str, call: &LoggedCall, answer: &Value) {
        let took = call.sent.elapsed();
        let text = answer["result"]["content"][0]["text"].as_str();
        let expected = format!("{}:{}", call.backend, call.tag);
        let error = &answer["error"];
        let clear = error["code"].is_i64() && error["message"].as_str().is_some_and(|text| !text.is_empty());
        let mut inner = self.inner();
        inner.slowest = inner.slowest.max(took);
        if text == Some(expected.as_str()) && error.is_null() {
            *inner.right.entry(call.backend).or_default() += 1;
            inner.right_tags.insert(call.tag.clone());
            return;
        }
        drop(inner);
        if !clear || !answer["result"].is_null() {
            return self.wrong(format!("{client}: {expected} was answered with {}", quote(answer)));
        }
        if call.steady {
            return self
                .wrong(format!("{client}: {expected} at a sound backend failed after {took:?}: {}", quote(answer)));
        }
        let reason = error["data"]["reason"].as_str().map(str::to_owned);
        let kind = reason.unwrap_or_else(|| format!("code {}", error["code"]));
        // A gateway that has only just begun does not know the tools of a backend that is away; one that knew them
        // does.
        if kind == "unknown_tool" && !client.starts_with("stdio") {
            self.wrong(format!("{client}: {expected} was forgotten: {}", quote(answer)));
        }
        let mut inner = self.inner();
        inner.samples.entry(kind.clone()).or_insert_with(|| format!("{expected}: {}", quote(error)));
        *inner.errors.entry(kind).or_default() += 1;
    }

    /// Holds what the backends ran against what was answered.
    ///
    /// # Errors
    /// When a journal cannot be read.
    pub fn compare(&self, cast: &Cast) -> anyhow::Result<()> {
        let runs = cast.runs()?;
        for (tag, times) in runs.iter().filter(|(_, times)| **times > 1) {
            self.wrong(format!("{tag} was run {times} times"));
        }
        let missing: Vec<String> =
            self.inner().right_tags.iter().filter(|tag| !runs.contains_key(*tag)).cloned().collect();
        for tag in missing {
            self.wrong(format!("{tag} was answered and never run"));
        }
        Ok(())
    }

    /// What was wrong.
    pub fn wrongs(&self) -> (u64, Vec<String>) {
        let inner = self.inner();
        (inner.wrong_count, inner.wrongs.clone())
    }

    /// How many calls were answered rightly.
    pub fn right(&self) -> u64 {
        self.inner().right.values().sum()
    }
}

/// A message, cut short.
pub fn quote(message: &Value) -> String {
    message.to_string().chars().take(QUOTED).collect()
}

impl fmt::Display for CallLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.inner();
        let (right, errors) = (inner.right.values().sum::<u64>(), inner.errors.values().sum::<u64>());
        writeln!(
            f,
            "chaos: {} calls: {right} right answers, {errors} errors, {} of clients that vanished; slowest answer {:?}",
            inner.made, inner.vanished, inner.slowest
        )?;
        row(f, "calls by client", &inner.clients)?;
        row(f, "right answers by backend", &inner.right)?;
        row(f, "errors by kind", &inner.errors)?;
        row(f, "faults by kind", &inner.faults)?;
        for (kind, sample) in &inner.samples {
            writeln!(f, "chaos: {kind}, for one: {sample}")?;
        }
        write!(f, "chaos: wrong: {}", inner.wrong_count)?;
        inner.wrongs.iter().try_for_each(|wrong| write!(f, "\nchaos: wrong: {wrong}"))
    }
}

fn row<K: fmt::Display>(f: &mut fmt::Formatter<'_>, name: &str, counts: &BTreeMap<K, u64>) -> fmt::Result {
    let cells: Vec<String> = counts.iter().map(|(key, count)| format!("{key} {count}")).collect();
    writeln!(f, "chaos: {name}: {}", cells.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(steady: bool) -> LoggedCall {
        let (tag, tool) = ("t-1".to_owned(), "b_work".to_owned());
        LoggedCall { id: 1, tag, backend: "b", tool, steady, takes: 0, progress: false, sent: Instant::now() }
    }

    fn judged(steady: bool, answer: &Value) -> (u64, u64) {
        let call_log = CallLog::default();
        call_log.answered("test", &call(steady), answer);
        (call_log.right(), call_log.wrongs().0)
    }

    #[test]
    fn only_the_right_answer_is_right_and_only_a_clear_error_is_forgiven_and_not_to_a_sound_backend() {
        let text = |text: &str| json!({"id": 1, "result": {"content": [{"type": "text", "text": text}]}});
        let error = json!({"id": 1, "error": {"code": -32000, "message": "it died"}});
        assert_eq!(judged(true, &text("b:t-1")), (1, 0));
        for wrong in ["b:t-2", "c:t-1", "WRONG b:t-1", ""] {
            assert_eq!(judged(false, &text(wrong)), (0, 1), "{wrong}");
        }
        assert_eq!(judged(false, &error), (0, 0));
        assert_eq!(judged(true, &error), (0, 1));
        for unclear in [json!({"id": 1}), json!({"id": 1, "error": {"code": 1, "message": ""}}), json!({"error": {}})] {
            assert_eq!(judged(false, &unclear), (0, 1), "{unclear}");
        }
    }
}
