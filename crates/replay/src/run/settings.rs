use crate::diff::{Comparison, Masks};
use crate::recorded_call::RecordedCall;
use crate::tape_offer::TapeOffer;
use serde_json::Value;
use signalbox_engine::catalog::ListKind;
use signalbox_wire::glob::{Wildcards, fits};
use signalbox_wire::method;
use std::collections::HashSet;
use std::time::Duration;

/// Settings of a replay run.
#[derive(Clone, Debug)]
pub struct RunSettings {
    /// Speed relative to the recorded pauses. `None` sends each call as soon as the previous one is answered.
    pub speed: Option<f64>,
    /// Order of the calls.
    pub order: Order,
    /// Patterns of the methods to send. Empty for all.
    pub methods: Vec<String>,
    /// Patterns of the tools, prompts and URIs to send. Empty for all.
    pub subjects: Vec<String>,
    /// Also sends calls that may write.
    pub allow_writes: bool,
    /// Tools marked read-only on the tape, by the name shown to clients.
    pub read_only: HashSet<String>,
    /// Patterns of further tools that the user declares read-only.
    pub also_read_only: Vec<String>,
    pub comparison: Comparison,
    /// Masks of the tape's redaction.
    pub masks: Masks,
    /// Additional time over the recorded duration before a call is reported as slow.
    pub timing: Option<Duration>,
    /// Timeout for an answer.
    pub timeout: Duration,
    /// Reaction to a failed call.
    pub on_error: OnError,
    /// Maximum number of times that a call is sent with [`OnError::Retry`].
    pub tries: u32,
    /// Returns the new answers from [`Runner::finish`](super::Runner::finish).
    pub keep_answers: bool,
}

/// Order in which calls are sent.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Order {
    /// Recorded order, one call at a time.
    #[default]
    Sequential,
    /// Recorded order. Calls that overlapped in the recording overlap now.
    Correlated,
    /// Lists first, then reads, then tool calls.
    Priority,
    /// Shuffled with this seed.
    Random(u64),
}

/// Reaction to a failed call.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum OnError {
    #[default]
    Continue,
    Stop,
    /// Sends the call again, up to [`RunSettings::tries`] times in total.
    Retry,
}

impl Default for RunSettings {
    fn default() -> Self {
        Self {
            speed: None,
            order: Order::Sequential,
            methods: Vec::new(),
            subjects: Vec::new(),
            allow_writes: false,
            read_only: HashSet::new(),
            also_read_only: Vec::new(),
            comparison: Comparison { json_in_text: true, ..Comparison::default() },
            masks: Masks::default(),
            timing: None,
            timeout: Duration::from_secs(60),
            on_error: OnError::Continue,
            tries: 3,
            keep_answers: false,
        }
    }
}

impl RunSettings {
    pub(super) fn wants(&self, call: &RecordedCall) -> bool {
        let any = |patterns: &[String], name: &str| {
            patterns.iter().any(|pattern| fits(pattern, name, Wildcards::StarAndQuestion))
        };
        let subject = call.subject.as_deref().unwrap_or_default();
        (self.methods.is_empty() || any(&self.methods, &call.method))
            && (self.subjects.is_empty() || any(&self.subjects, subject))
    }

    /// Returns `true` if writes are allowed or the call is read-only.
    pub(super) fn may_send(&self, call: &RecordedCall) -> bool {
        self.allow_writes || self.only_reads(call)
    }

    /// Returns `true` if a call is known to be read-only.
    pub(super) fn only_reads(&self, call: &RecordedCall) -> bool {
        let subject = call.subject.as_deref().unwrap_or_default();
        match &*call.method {
            method::TOOLS_CALL => {
                self.read_only.contains(subject)
                    || self.also_read_only.iter().any(|pattern| fits(pattern, subject, Wildcards::StarAndQuestion))
            }
            method::PROMPTS_GET | method::RESOURCES_READ | method::COMPLETION_COMPLETE => true,
            name => name.ends_with("/list"),
        }
    }
}

/// Returns the tools that the recorded server marks as read-only, by the name shown to clients.
#[must_use]
pub fn read_only_tools(offer: &TapeOffer) -> HashSet<String> {
    let read_only = |item: &str| {
        let tool: Value = serde_json::from_str(item).ok()?;
        let hint = tool.pointer("/annotations/readOnlyHint").and_then(Value::as_bool);
        tool.get("name")?.as_str().filter(|_| hint == Some(true)).map(ToOwned::to_owned)
    };
    offer.list_at(ListKind::Tools, u64::MAX).iter().filter_map(|item| read_only(item.get())).collect()
}
