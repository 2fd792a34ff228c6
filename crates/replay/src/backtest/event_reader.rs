//! Turns the entries of a tape into events.

use super::evaluator::Evaluator;
use super::event::{Event, EventKind};
use super::image::Image;
use super::open_exchange::OpenExchange;
use super::order::Order;
use super::report::BacktestReport;
use super::rule_pass::RulePass;
use signalbox_engine::chain::Phase;
use signalbox_engine::fact::Point;
use signalbox_engine::record::{Content, DecisionEntry, Entry, FinishedEntry, MessageEntry, MessageKind, TapeInfo};
use signalbox_rules::RuleSet;
use std::collections::VecDeque;
use std::sync::Arc;

/// First number for messages outside of any exchange. No process has this many exchanges.
const FIRST_LOOSE: u64 = 1 << 63;

/// Reader of one tape.
pub(super) struct EventReader<'a> {
    order: Order,
    evaluator: Evaluator<'a>,
    /// Latest client message outside of any exchange, with its session. Its decisions may follow.
    loose: Option<(u64, Option<u64>)>,
    next_loose: u64,
    last: u64,
}

impl<'a> EventReader<'a> {
    pub fn new(set: &RuleSet, info: &TapeInfo, report: &'a mut BacktestReport) -> Self {
        let evaluator = Evaluator::new(set, info, report);
        Self { order: Order::new(info.started), evaluator, loose: None, next_loose: FIRST_LOOSE, last: info.started }
    }

    /// Processes the next entry.
    pub fn entry(&mut self, entry: &Entry) {
        self.last = entry.at;
        match (&entry.content, entry.exchange) {
            (Content::Session(info), _) => {
                if let Some(number) = entry.session {
                    self.evaluator.context.session(number, entry.at, info.clone());
                }
            }
            (Content::Client(client), _) => self.evaluator.context.client(client.number, client.info.clone()),
            (Content::Backend(seen), _) => self.evaluator.context.backend(seen),
            (Content::Gap(gap), _) => self.evaluator.gap(gap.facts, self.order.since(entry.at)),
            (Content::Message(message), Some(number)) => self.message(number, entry, message),
            (Content::Message(message), None) => self.loose_message(entry, message),
            (Content::Decisions(decisions), Some(number)) => self.decisions(number, entry, decisions),
            (Content::Decisions(decisions), None) => self.loose_decisions(entry, decisions),
            (Content::Finished(finished), Some(number)) => self.finished(number, entry, finished),
            _ => {}
        }
        if let Some(oldest) = self.order.surplus() {
            self.give_up(oldest);
        }
        while self.order.is_full() && self.judge_next() {}
    }

    /// Evaluates all queued events and closes open exchanges.
    pub fn end(mut self) {
        self.end_loose();
        while self.judge_next() {}
        for number in self.order.unfinished() {
            self.give_up(number);
        }
        while self.judge_next() {}
    }

    fn judge_next(&mut self) -> bool {
        let Some((number, mut open, event, since)) = self.order.pop() else { return false };
        self.evaluator.judge(&mut open, event, since);
        self.order.give_back(number, open);
        true
    }

    fn give_up(&mut self, number: u64) {
        let at = self.last;
        self.ask(number, at, VecDeque::new());
        self.end_midway(number);
        self.order.open(number).finished = true;
        self.push(number, at, Phase::Request, EventKind::End, VecDeque::new());
    }

    fn push(&mut self, number: u64, at: u64, phase: Phase, kind: EventKind, walks: VecDeque<RulePass>) {
        self.order.push(number, Event::new(at, phase, kind, walks));
    }

    fn begin(&mut self, number: u64, entry: &Entry) -> &mut OpenExchange {
        let open = self.order.open(number);
        if open.principal.is_empty() {
            open.principal = Arc::clone(&entry.principal);
        }
        open.session = open.session.or(entry.session);
        open
    }

    fn message(&mut self, number: u64, entry: &Entry, message: &MessageEntry) {
        let (image, at) = (Image::of(message), entry.at);
        let open = self.begin(number, entry);
        open.exchange = Some(number);
        if message.kind == MessageKind::Request && message.point == Point::ClientIn {
            open.method.clone_from(&message.method);
            open.subject.clone_from(&message.subject);
            open.request = Some(image);
            return;
        }
        // Any further entry shows that the rules are done with the message before it.
        self.end_midway(number);
        match (message.point, message.kind) {
            (Point::BackendOut, MessageKind::Request) => {
                self.ask(number, at, VecDeque::new());
                self.order.open(number).goes_to(message.backend.as_ref(), image);
            }
            (Point::BackendIn, MessageKind::Result | MessageKind::Error) => {
                self.order.open(number).comes_from(message.backend.as_ref(), image);
            }
            (Point::ClientOut, MessageKind::Result | MessageKind::Error) => self.answered(number, at, message, image),
            (Point::ClientIn | Point::BackendIn, kind) => {
                let phase = match (message.point, kind) {
                    (Point::ClientIn, MessageKind::Notification) => Phase::FromClient,
                    (Point::ClientIn, MessageKind::Result | MessageKind::Error) => Phase::ClientAnswers,
                    (Point::BackendIn, MessageKind::Notification) => Phase::FromBackend,
                    (Point::BackendIn, MessageKind::Request) => Phase::ServerAsks,
                    _ => return,
                };
                self.order.open(number).midway = Some((phase, image, at));
            }
            _ => {}
        }
    }

    /// Records the answer to the client. The rules saw it, unless the gateway or a rule ended the request earlier.
    fn answered(&mut self, number: u64, at: u64, message: &MessageEntry, image: Image) {
        self.ask(number, at, VecDeque::new());
        let open = self.order.open(number);
        open.answer = Some(image);
        if open.backend.is_none() {
            open.backend.clone_from(&message.backend);
        }
        let judged = !message.own && !open.ended_early && !open.answered;
        if let (true, Some(phase)) = (judged, open.answering()) {
            open.answered = true;
            self.push(number, at, phase, EventKind::Whole, VecDeque::new());
        }
    }

    /// Queues the event of the request with its recorded decisions.
    fn ask(&mut self, number: u64, at: u64, walks: VecDeque<RulePass>) {
        let open = self.order.open(number);
        let Some(phase) = open.asking().filter(|_| !open.asked && open.exchange.is_some()) else { return };
        open.asked = true;
        open.ended_early = walks.back().is_some_and(|last| is_end(last.verdict()));
        self.push(number, at, phase, EventKind::Whole, walks);
    }

    /// Queues a message within an exchange that got no decisions.
    fn end_midway(&mut self, number: u64) {
        if let Some((phase, image, at)) = self.order.open(number).midway.take() {
            self.push(number, at, phase, EventKind::Midway(image), VecDeque::new());
        }
    }

    fn decisions(&mut self, number: u64, entry: &Entry, decisions: &[Arc<DecisionEntry>]) {
        let walks: VecDeque<RulePass> = RulePass::all(decisions).into();
        let (at, word) = (entry.at, decisions.first().map_or("", |first| &*first.phase));
        let open = self.begin(number, entry);
        open.exchange = Some(number);
        open.at_breakpoint |=
            decisions.iter().any(|one| one.by == "breakpoints" && one.verdict != "hold" && one.verdict != "released");
        if let Some(name) = decisions.iter().find(|one| one.by == "route").and_then(|one| routed(&one.detail)) {
            open.backend = Some(name.into());
        }
        let whole = [Phase::Request, Phase::ToGateway, Phase::Response, Phase::FromGateway];
        match Phase::ALL.into_iter().find(|phase| phase.word() == word) {
            Some(phase) if whole.contains(&phase) => self.whole(number, at, phase, walks),
            Some(phase) => {
                let open = self.order.open(number);
                match open.midway.take_if(|(of, ..)| *of == phase) {
                    Some((_, image, _)) => self.push(number, at, phase, EventKind::Midway(image), walks),
                    None if walks.is_empty() => {}
                    None => self.push(number, at, phase, EventKind::Beyond, walks),
                }
            }
            None if word == "task result" && !walks.is_empty() => {
                self.push(number, at, Phase::Response, EventKind::Beyond, walks);
            }
            None => {}
        }
    }

    /// Queues decisions about the whole request or answer.
    fn whole(&mut self, number: u64, at: u64, phase: Phase, walks: VecDeque<RulePass>) {
        let asks = matches!(phase, Phase::Request | Phase::ToGateway);
        if asks && !self.order.open(number).asked {
            return self.ask(number, at, walks);
        }
        let open = self.order.open(number);
        let Some(first) = walks.front() else { return };
        let kind = match first.after() {
            Some(_) => EventKind::Resumed,
            None if asks || open.answered => EventKind::Beyond,
            None => EventKind::Whole,
        };
        if asks {
            open.ended_early |= walks.back().is_some_and(|last| is_end(last.verdict()));
        } else {
            open.answered = true;
            // The request may be missing on the tape.
            self.ask(number, at, VecDeque::new());
        }
        self.push(number, at, phase, kind, walks);
    }

    fn finished(&mut self, number: u64, entry: &Entry, finished: &FinishedEntry) {
        let open = self.begin(number, entry);
        open.method = open.method.take().or_else(|| Some(Arc::clone(&finished.method)));
        open.subject = open.subject.take().or_else(|| finished.subject.clone());
        open.exchange = Some(number);
        open.client = finished.client;
        open.round = Some(finished.round);
        if finished.backend.is_some() {
            open.backend.clone_from(&finished.backend);
        }
        // A request without a route never reached the rules.
        let unrouted = finished.backend.is_none() && open.needs_backend() && !open.asked;
        open.asked |= unrouted;
        open.finished = true;
        if let (Some(subject), Some(backend)) = (&finished.subject, &finished.backend) {
            self.evaluator.context.route(subject, backend);
        }
        self.ask(number, entry.at, VecDeque::new());
        self.end_midway(number);
        self.push(number, entry.at, Phase::Request, EventKind::End, VecDeque::new());
    }

    fn loose_message(&mut self, entry: &Entry, message: &MessageEntry) {
        if message.own || message.point != Point::ClientIn || message.kind != MessageKind::Notification {
            return;
        }
        self.end_loose();
        self.next_loose += 1;
        let number = self.next_loose;
        let image = Image::of(message);
        let open = self.begin(number, entry);
        open.method.clone_from(&message.method);
        open.midway = Some((Phase::FromClient, image, entry.at));
        self.loose = Some((number, entry.session));
    }

    fn loose_decisions(&mut self, entry: &Entry, decisions: &[Arc<DecisionEntry>]) {
        let ours = decisions.first().is_some_and(|first| first.phase == Phase::FromClient.word());
        let Some((number, _)) = self.loose.take_if(|(_, session)| ours && *session == entry.session) else { return };
        if let Some((phase, image, _)) = self.order.open(number).midway.take() {
            self.push(number, entry.at, phase, EventKind::Midway(image), RulePass::all(decisions).into());
        }
        self.order.open(number).finished = true;
    }

    fn end_loose(&mut self) {
        if let Some((number, _)) = self.loose.take() {
            self.end_midway(number);
            self.order.open(number).finished = true;
        }
    }
}

fn is_end(verdict: &str) -> bool {
    matches!(verdict, "reply" | "error" | "refuse")
}

/// Parses the backend name out of a routing decision.
fn routed(detail: &str) -> Option<&str> {
    detail.rsplit_once("backend `")?.1.strip_suffix('`')
}
