//! Lines of `tape show`: finished calls, unfinished calls, and notifications if requested.

use super::entry_json::entry_json;
use super::moment;
use super::unfinished::{OpenCall, OpenCalls, UNFINISHED};
use crate::cli::ShowArgs;
use serde_json::Value;
use signalbox_engine::fact::Point;
use signalbox_engine::record::{Content, Entry, FinishedEntry, MessageEntry, MessageKind};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// A line of the list.
pub(super) enum Line {
    /// A finished call, with the number of decisions about it.
    Call { entry: Entry, finished: FinishedEntry, decisions: usize },
    /// An unfinished call, with the number of decisions about it.
    Open { call: OpenCall, decisions: usize },
    /// A notification, recorded at the first point that saw it.
    Notification { entry: Entry, message: MessageEntry },
}

impl Line {
    /// Formats the line as JSON.
    pub fn json(&self) -> Value {
        match self {
            Self::Call { entry, .. } | Self::Notification { entry, .. } => entry_json(entry),
            Self::Open { call, .. } => call.json(),
        }
    }

    /// Returns `true` for an unfinished call.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open { .. })
    }

    /// Returns the cells of the line.
    pub fn row(&self) -> Vec<String> {
        let text = |text: &Option<Arc<str>>| text.as_deref().unwrap_or_default().to_owned();
        let (number, at, who) = match self {
            Self::Call { entry, .. } | Self::Notification { entry, .. } => (entry.exchange, entry.at, &entry.principal),
            Self::Open { call, .. } => (Some(call.number), call.at, &call.principal),
        };
        let number = number.map(|number| number.to_string()).unwrap_or_default();
        let (at, who) = (moment::time_of_day(at), who.to_string());
        match self {
            Self::Call { finished, decisions, .. } => vec![
                number,
                at,
                who,
                finished.method.to_string(),
                text(&finished.subject),
                text(&finished.backend),
                finished.outcome.to_string(),
                moment::length(finished.took),
                remarks(finished, *decisions),
            ],
            Self::Open { call, decisions } => {
                let mut remarks = call.remarks();
                remarks.extend(decided(*decisions));
                let (method, about, backend) = (text(&call.method), text(&call.subject), text(&call.backend));
                vec![number, at, who, method, about, backend, UNFINISHED.to_owned(), String::new(), remarks.join(", ")]
            }
            Self::Notification { message, .. } => {
                let (method, about, backend) = (text(&message.method), text(&message.subject), text(&message.backend));
                vec![
                    number,
                    at,
                    who,
                    method,
                    about,
                    backend,
                    "notification".to_owned(),
                    String::new(),
                    message.point.words().to_owned(),
                ]
            }
        }
    }
}

/// Describes the round, the caller and the decisions of a call.
fn remarks(finished: &FinishedEntry, decisions: usize) -> String {
    let mut remarks = Vec::new();
    if let Some(first) = finished.operation {
        remarks.push(format!("round {} of {first}", finished.round));
    }
    if let Some(client) = finished.client {
        remarks.push(format!("caller {client}"));
    }
    remarks.extend(decided(decisions));
    remarks.join(", ")
}

fn decided(decisions: usize) -> Option<String> {
    (decisions > 0).then(|| format!("{decisions} decided"))
}

/// Collects the lines that match the arguments, while the entries of a tape arrive.
pub(super) struct Lines<'a> {
    args: &'a ShowArgs,
    decisions: HashMap<u64, usize>,
    open: OpenCalls,
    kept: VecDeque<Line>,
    left_out: bool,
    /// Set while the tape is followed: lines are printed at once, so their number has no limit.
    following: bool,
    last: Option<u64>,
}

impl<'a> Lines<'a> {
    pub fn new(args: &'a ShowArgs) -> Self {
        let (decisions, open, kept) = Default::default();
        Self { args, decisions, open, kept, left_out: false, following: false, last: None }
    }

    /// Processes the next entry of the tape.
    pub fn add(&mut self, entry: Entry) {
        self.last = Some(entry.seq);
        self.open.add(&entry);
        match &entry.content {
            Content::Decisions(list) => {
                let told =
                    list.iter().filter(|one| one.verdict != "pass" && one.by != "route" && !one.is_note()).count();
                *self.decisions.entry(entry.exchange.unwrap_or(0)).or_default() += told;
            }
            Content::Finished(finished) => {
                let decisions = entry.exchange.and_then(|number| self.decisions.remove(&number)).unwrap_or(0);
                if self.wants_call(finished) {
                    let finished = finished.clone();
                    self.keep(Line::Call { entry, finished, decisions });
                }
            }
            Content::Message(message) if self.wants_notification(message) => {
                let message = message.clone();
                self.keep(Line::Notification { entry, message });
            }
            _ => {}
        }
    }

    fn keep(&mut self, line: Line) {
        match self.args.tail {
            _ if self.following => self.kept.push_back(line),
            Some(tail) => {
                self.kept.push_back(line);
                if self.kept.len() > tail {
                    self.kept.pop_front();
                }
            }
            None if self.kept.len() < self.args.limit => self.kept.push_back(line),
            None => self.left_out = true,
        }
    }

    fn wants_call(&self, finished: &FinishedEntry) -> bool {
        self.wants(Some(&finished.method), finished.subject.as_deref(), finished.backend.as_deref())
            && self.args.outcome.as_ref().is_none_or(|wanted| **wanted == *finished.outcome)
    }

    /// Appends a line for each unfinished call.
    pub fn add_open(&mut self) {
        let outcome = self.args.outcome.as_deref();
        if outcome.is_some_and(|wanted| wanted != UNFINISHED) {
            return;
        }
        let wanted =
            |call: &&OpenCall| self.wants(call.method.as_deref(), call.subject.as_deref(), call.backend.as_deref());
        let open: Vec<OpenCall> = self.open.all().filter(wanted).cloned().collect();
        for call in open {
            let decisions = self.decisions.get(&call.number).copied().unwrap_or(0);
            self.keep(Line::Open { call, decisions });
        }
    }

    fn wants_notification(&self, message: &MessageEntry) -> bool {
        self.args.notifications
            && message.kind == MessageKind::Notification
            && matches!(message.point, Point::ClientIn | Point::BackendIn)
            && self.args.outcome.is_none()
            && self.wants(message.method.as_deref(), message.subject.as_deref(), message.backend.as_deref())
    }

    fn wants(&self, method: Option<&str>, subject: Option<&str>, backend: Option<&str>) -> bool {
        let fits = |pattern: &String| {
            let method = method.unwrap_or_default();
            pattern.strip_suffix('*').map_or(method == pattern, |start| method.starts_with(start))
        };
        let args = self.args;
        (args.method.is_empty() || args.method.iter().any(fits))
            && args.tool.as_ref().is_none_or(|wanted| subject == Some(wanted))
            && args.backend.as_ref().is_none_or(|wanted| backend == Some(wanted))
    }

    /// Takes the lines collected so far.
    pub fn take(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.kept).into()
    }

    /// Returns `true` if the limit left lines out.
    pub fn left_out(&self) -> bool {
        self.left_out
    }

    /// Lifts the limit, to follow the tape.
    pub fn go_on(&mut self) {
        self.following = true;
    }

    /// Returns the sequence number of the last entry.
    pub fn last(&self) -> Option<u64> {
        self.last
    }
}
