use crate::diff::{Comparison, Masks};
use crate::offer::Offer;
use crate::recorded_call::RecordedCall;
use serde_json::Value;
use signalbox_engine::catalog::ListKind;
use signalbox_wire::glob::{Wildcards, fits};
use signalbox_wire::method;
use std::collections::HashSet;
use std::time::Duration;

/// How a tape is run.
#[derive(Clone, Debug)]
pub struct RunSettings {
    /// Keeps the recorded pauses, so many times as fast; none sends as fast as answers come.
    pub speed: Option<f64>,
    /// In which order calls are sent.
    pub order: Order,
    /// Patterns of methods that are sent; all if there are none.
    pub methods: Vec<String>,
    /// Patterns of tools, prompts and URIs that are sent; all if there are none.
    pub subjects: Vec<String>,
    /// Sends also what may change something.
    pub allow_writes: bool,
    /// Tools that the tape says are read-only, by the name clients know.
    pub read_only: HashSet<String>,
    /// Patterns of tools that the user says are read-only.
    pub also_read_only: Vec<String>,
    /// What counts as a difference.
    pub comparison: Comparison,
    /// How the tape hides secrets.
    pub masks: Masks,
    /// A call that takes longer than recorded by more than this is reported.
    pub timing: Option<Duration>,
    /// How long an answer may take.
    pub timeout: Duration,
    /// What follows a failure.
    pub on_error: OnError,
    /// How often a call is sent at most where failures are tried again.
    pub tries: u32,
    /// Keeps the new answers.
    pub keep_answers: bool,
}

/// In which order calls are sent (SO-12).
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Order {
    /// As recorded, one at a time.
    #[default]
    Sequential,
    /// As recorded; calls that overlapped then overlap now.
    Correlated,
    /// Lists first, then what only reads, then calls.
    Priority,
    /// Shuffled by this seed.
    Random(u64),
}

/// What follows a call that failed (SO-12).
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum OnError {
    /// The next call.
    #[default]
    Continue,
    /// The end.
    Stop,
    /// The same call again, a few times.
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

    /// True if a call certainly changes nothing, or may.
    pub(super) fn may_send(&self, call: &RecordedCall) -> bool {
        self.allow_writes || self.only_reads(call)
    }

    /// True if a call certainly changes nothing.
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

/// The tools that a tape's server calls read-only, by the name clients know.
#[must_use]
pub fn read_only_tools(offer: &Offer) -> HashSet<String> {
    let read_only = |item: &str| {
        let tool: Value = serde_json::from_str(item).ok()?;
        let hint = tool.pointer("/annotations/readOnlyHint").and_then(Value::as_bool);
        tool.get("name")?.as_str().filter(|_| hint == Some(true)).map(ToOwned::to_owned)
    };
    offer.list_at(ListKind::Tools, u64::MAX).iter().filter_map(|item| read_only(item.get())).collect()
}
