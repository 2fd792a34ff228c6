//! Holds entries back until it is decided whether their exchange is kept, and releases them in order.

mod tape_change;

use super::adaptive::Adaptive;
use super::counters::Counters;
use super::filter::Filter;
use super::introductions::Introductions;
use super::message_arena::uncharged;
use super::numbering::Numbering;
use super::priority::Priorities;
use super::sampling::{Pick, Plan};
use super::settings::{HoldLimits, RecorderSettings};
use signalbox_engine::keys::KeyMap;
use signalbox_engine::record::{Body, Content, Entry};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Properties of an exchange at its beginning.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Beginning<'a> {
    pub(crate) method: Option<&'a str>,
    pub(crate) tool: Option<&'a str>,
    pub(crate) principal: &'a str,
    pub(crate) backend: Option<&'a str>,
    pub(crate) at: u64,
}

/// Properties of an exchange at its end.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Ending<'a> {
    pub(crate) backend: Option<&'a str>,
    pub(crate) outcome: &'a str,
    pub(crate) took: u64,
    pub(crate) at: u64,
    /// True for calls; handshakes, lists and pings are kept with the calls around them and not counted.
    pub(crate) counts: bool,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Fate {
    Kept,
    Dropped,
    /// Undecided; `picked` tells whether it is kept if its backend is included.
    Open {
        since: u64,
        picked: bool,
        backend: bool,
    },
    /// Ended, and kept if the trigger fires soon.
    Candidate {
        since: u64,
    },
}

/// An exchange that has ended and is kept if the trigger fires soon.
#[derive(Copy, Clone, Debug)]
struct Candidate {
    number: u64,
    counts: bool,
}

#[derive(Debug)]
struct Case {
    fate: Fate,
    /// Number of waiting entries.
    waiting: usize,
    /// True if no further entries will come.
    over: bool,
    /// True if the tape has entries of it.
    written: bool,
    /// True if the tape has its end.
    ended: bool,
}

impl Case {
    fn new(fate: Fate) -> Self {
        Self { fate, waiting: 0, over: false, written: false, ended: false }
    }
}

#[derive(Debug)]
pub(crate) struct SamplingBuffer {
    plan: Plan,
    priorities: Priorities,
    adaptive: Option<Adaptive>,
    filter: Filter,
    hold: HoldLimits,
    /// True if no entry is ever held back or dropped.
    open_gate: bool,
    waiting: VecDeque<Entry>,
    /// Number of entries, from the back, that may hold messages charged to their senders.
    charged: usize,
    waiting_bytes: usize,
    cases: KeyMap<u64, Case>,
    candidates: VecDeque<Candidate>,
    /// Number of candidates that count as calls.
    counted: usize,
    /// Number of the next ending calls that are kept.
    after: usize,
    /// Exchange that began last. Entries outside any exchange share its fate.
    latest: u64,
    loose: u64,
    numbering: Numbering,
    counters: Arc<Counters>,
}

impl SamplingBuffer {
    /// Creates a buffer, with the descriptions that the tape needs before entries that refer to them.
    pub(crate) fn new(settings: &RecorderSettings, introductions: Introductions, counters: Arc<Counters>) -> Self {
        let mut plan = settings.sampling.plan();
        let priorities = settings.priorities.clone();
        let all = priorities.rules.is_empty();
        if !all && matches!(plan.pick, Pick::All) {
            plan.trigger = priorities.always.clone();
        }
        let open_gate = matches!(plan.pick, Pick::All) && all && settings.filter.is_all();
        let has_next = introductions.has_next();
        Self {
            adaptive: plan.target.map(Adaptive::new),
            priorities,
            plan,
            filter: settings.filter.clone(),
            hold: settings.hold,
            open_gate,
            waiting: VecDeque::new(),
            charged: 0,
            waiting_bytes: 0,
            cases: KeyMap::default(),
            candidates: VecDeque::new(),
            counted: 0,
            after: 0,
            latest: 0,
            loose: 0,
            numbering: Numbering::new(settings.seal.as_ref(), introductions, has_next && !open_gate),
            counters,
        }
    }

    /// Returns the descriptions that precede entries.
    pub(crate) fn introductions(&mut self) -> &mut Introductions {
        &mut self.numbering.introductions
    }

    /// Copies the bodies that are remembered as bases of others.
    pub(crate) fn own_bases(&mut self) {
        self.numbering.own_bases();
    }

    /// Returns true if no entry is ever held back or dropped.
    pub(crate) fn keeps_all(&self) -> bool {
        self.open_gate
    }

    /// Begins an exchange, and samples it.
    pub(crate) fn begin(&mut self, number: u64, beginning: Beginning<'_>) {
        self.latest = number;
        if self.open_gate {
            return;
        }
        let wanted = self.filter.wants_start(beginning.method, beginning.tool, beginning.principal);
        let picked = wanted && self.picks(number, &beginning);
        let hopeless = !picked && self.plan.trigger.is_never() && !self.plan.ring;
        let asks_backend = !self.filter.backends.is_all();
        let fate = match wanted && !hopeless {
            false => Fate::Dropped,
            true if picked && !asks_backend => Fate::Kept,
            true => Fate::Open { since: beginning.at, picked, backend: asks_backend },
        };
        self.cases.insert(number, Case::new(fate));
        self.backend(number, beginning.backend);
    }

    /// Returns true if an exchange is kept from its beginning.
    fn picks(&mut self, number: u64, beginning: &Beginning<'_>) -> bool {
        if let Some(share) = self.priorities.share(beginning.method, beginning.tool) {
            return Pick::Share { share, seed: self.priorities.seed }.picks(number);
        }
        match &mut self.adaptive {
            Some(adaptive) => self.plan.pick.with_share(adaptive.next(beginning.at)).picks(number),
            None => self.plan.pick.picks(number),
        }
    }

    /// Returns true if neither filters nor rules depend on the properties of an exchange.
    pub(crate) fn wants_all(&self) -> bool {
        self.filter.is_all() && self.priorities.rules.is_empty()
    }

    /// Evaluates the filter once the backend of an exchange is known.
    pub(crate) fn backend(&mut self, number: u64, backend: Option<&str>) {
        let (Some(name), Some(case)) = (backend, self.cases.get_mut(&number)) else { return };
        if let Fate::Open { since, picked, backend: true } = case.fate {
            case.fate = match self.filter.backends.wants(Some(name)) {
                false => Fate::Dropped,
                true if picked => Fate::Kept,
                true => Fate::Open { since, picked, backend: false },
            };
        }
    }

    /// Returns true if no entry of this exchange will be on the tape, so that the caller can skip the work for it.
    pub(crate) fn drops(&self, number: Option<u64>) -> bool {
        number.and_then(|number| self.cases.get(&number)).is_some_and(|case| case.fate == Fate::Dropped)
    }

    /// Returns true if a message outside any exchange is dropped.
    pub(crate) fn drops_loose(&mut self, beginning: Beginning<'_>) -> bool {
        if self.open_gate {
            return false;
        }
        self.loose += 1;
        let wanted = self.filter.wants_start(beginning.method, beginning.tool, beginning.principal)
            && self.filter.backends.wants(beginning.backend);
        // The message is sampled by a number of its own, which no exchange has.
        let number = u64::MAX - self.loose;
        if let Some(share) = self.priorities.share(beginning.method, beginning.tool).filter(|_| wanted) {
            return !Pick::Share { share, seed: self.priorities.seed }.picks(number);
        }
        let share = self.adaptive.as_ref().map(Adaptive::share);
        let pick = share.map_or(self.plan.pick, |share| self.plan.pick.with_share(share));
        !wanted
            || match pick {
                Pick::None => !self.cases.contains_key(&self.latest),
                pick => !pick.picks(number),
            }
    }

    /// Fires the trigger if it includes the verdict.
    pub(crate) fn decided(&mut self, number: Option<u64>, verdict: &str) {
        if let Some(number) = number
            && self.plan.trigger.verdicts.iter().any(|known| known == verdict)
        {
            self.fire(number);
        }
    }

    /// Ends an exchange, and fires the trigger if its outcome or duration does.
    pub(crate) fn end(&mut self, number: u64, ending: Ending<'_>) {
        let Some(case) = self.cases.get_mut(&number) else { return };
        if let Fate::Open { picked, backend: true, .. } = case.fate {
            case.fate = match self.filter.backends.wants(ending.backend) {
                false => Fate::Dropped,
                true if picked => Fate::Kept,
                true => Fate::Open { since: ending.at, picked, backend: false },
            };
        }
        let open = matches!(case.fate, Fate::Open { .. });
        if case.fate != Fate::Dropped && self.plan.trigger.fires_at_end(ending.outcome, ending.took) {
            self.fire(number);
        } else if open && self.after > 0 {
            self.after -= usize::from(ending.counts);
            case.fate = Fate::Kept;
        } else if open && self.plan.before > 0 {
            case.fate = Fate::Candidate { since: ending.at };
            self.candidates.push_back(Candidate { number, counts: ending.counts });
            self.counted += usize::from(ending.counts);
        } else if open {
            case.fate = Fate::Dropped;
        }
        while self.counted > self.plan.before {
            self.let_go_of_oldest();
        }
    }

    /// Keeps all waiting exchanges, and the next ones that end.
    pub(crate) fn fire_all(&mut self) {
        for case in self.cases.values_mut() {
            if case.fate != Fate::Dropped {
                case.fate = Fate::Kept;
            }
        }
        self.candidates.clear();
        self.counted = 0;
        self.after = self.plan.after;
    }

    /// Adds an entry. An entry outside any exchange that does not describe a session shares the fate of the latest
    /// exchange.
    pub(crate) fn put(&mut self, entry: Entry, out: &mut Vec<Entry>) {
        if self.open_gate {
            self.numbering.emit(entry, out);
            return;
        }
        if let Some(case) = self.case_of(&entry).and_then(|number| self.cases.get_mut(&number)) {
            case.waiting += 1;
        }
        self.waiting_bytes += weight(&entry);
        self.waiting.push_back(entry);
        self.charged += 1;
    }

    /// Notes that no further entries of this exchange come. `unended` tells whether its end was never reported.
    pub(crate) fn forget(&mut self, number: u64, unended: bool) {
        if self.open_gate {
            self.numbering.forget(number);
            return;
        }
        let ring = self.plan.ring;
        if let Some(case) = self.cases.get_mut(&number) {
            case.over = true;
            if unended && matches!(case.fate, Fate::Open { .. }) {
                case.fate = if ring { Fate::Dropped } else { Fate::Kept };
            }
        }
        self.clean(number);
    }

    /// Releases entries in order, up to the first undecided one. The rest may wait long after its calls have ended, so
    /// its messages are copied, within the bounds of [`HoldLimits`].
    pub(crate) fn release(&mut self, now: u64, out: &mut Vec<Entry>) {
        self.let_go(now, out);
        let charged = std::mem::take(&mut self.charged).min(self.waiting.len());
        self.waiting.iter_mut().rev().take(charged).for_each(own_body);
    }

    fn let_go(&mut self, now: u64, out: &mut Vec<Entry>) {
        while let Some(entry) = self.waiting.front() {
            let number = self.case_of(entry);
            let kept = match number.and_then(|number| self.cases.get(&number)).map(|case| case.fate) {
                None | Some(Fate::Kept) => true,
                Some(Fate::Dropped) => false,
                Some(Fate::Open { since, .. }) if self.overdue(since, now) => {
                    self.decide(number, !self.plan.ring);
                    continue;
                }
                Some(Fate::Candidate { since }) if self.too_old(since, now) => {
                    self.let_go_of_oldest();
                    continue;
                }
                Some(_) => return,
            };
            let Some(entry) = self.waiting.pop_front() else { return };
            self.waiting_bytes = self.waiting_bytes.saturating_sub(weight(&entry));
            if let Some(case) = number.and_then(|number| self.cases.get_mut(&number)) {
                case.waiting = case.waiting.saturating_sub(1);
                case.written |= kept;
                case.ended |= kept && matches!(entry.content, Content::Finished(_));
            }
            if kept {
                self.numbering.emit(entry, out);
            } else {
                self.counters.sampled_out.fetch_add(1, Relaxed);
            }
            if let Some(number) = number {
                self.clean(number);
            }
        }
    }

    /// Ends the tape: keeps undecided exchanges, or drops them together with the ring.
    pub(crate) fn close(&mut self, out: &mut Vec<Entry>) {
        let ring = self.plan.ring;
        for case in self.cases.values_mut() {
            case.fate = match case.fate {
                Fate::Open { .. } if !ring => Fate::Kept,
                Fate::Kept => Fate::Kept,
                _ => Fate::Dropped,
            };
        }
        self.candidates.clear();
        self.counted = 0;
        self.release(u64::MAX, out);
    }

    fn fire(&mut self, number: u64) {
        if let Some(case) = self.cases.get_mut(&number) {
            case.fate = Fate::Kept;
        }
        self.counted = 0;
        for before in std::mem::take(&mut self.candidates) {
            if let Some(case) = self.cases.get_mut(&before.number) {
                case.fate = Fate::Kept;
            }
        }
        self.after = self.plan.after;
    }

    fn let_go_of_oldest(&mut self) {
        if let Some(oldest) = self.candidates.pop_front() {
            self.counted -= usize::from(oldest.counts);
            self.decide(Some(oldest.number), false);
            self.clean(oldest.number);
        }
    }

    fn decide(&mut self, number: Option<u64>, kept: bool) {
        if let Some(case) = number.and_then(|number| self.cases.get_mut(&number)) {
            case.fate = if kept { Fate::Kept } else { Fate::Dropped };
        }
    }

    fn case_of(&self, entry: &Entry) -> Option<u64> {
        match (&entry.content, entry.exchange) {
            (_, Some(number)) => Some(number),
            (Content::Message(_) | Content::Decisions(_), None) if matches!(self.plan.pick, Pick::None) => {
                // The number was stored when the entry came, so that the answer does not change while it waits.
                Some(entry.seq)
            }
            _ => None,
        }
    }

    /// Returns the number of the exchange whose fate an entry outside any exchange shares while it waits.
    pub(crate) fn companion(&self) -> u64 {
        self.latest
    }

    fn over_full(&self) -> bool {
        self.waiting.len() > self.hold.entries || self.waiting_bytes > self.hold.bytes
    }

    fn overdue(&self, since: u64, now: u64) -> bool {
        self.over_full() || u128::from(now.saturating_sub(since)) >= self.hold.open_for.as_nanos()
    }

    fn too_old(&self, since: u64, now: u64) -> bool {
        let aged = |within: std::time::Duration| u128::from(now.saturating_sub(since)) >= within.as_nanos();
        self.over_full() || self.plan.within.is_some_and(aged)
    }

    fn clean(&mut self, number: u64) {
        let done = |case: &Case| case.over && case.waiting == 0 && matches!(case.fate, Fate::Kept | Fate::Dropped);
        if number != self.latest && self.cases.get(&number).is_some_and(done) {
            self.cases.remove(&number);
            self.numbering.forget(number);
        }
    }
}

/// Replaces the body of an entry by a copy that is not charged to its sender.
pub(crate) fn own_body(entry: &mut Entry) {
    if let Content::Message(message) = &mut entry.content {
        match &mut message.body {
            Body::Whole(bytes) | Body::Like { middle: bytes, .. } => *bytes = uncharged(bytes),
            Body::Left => {}
        }
    }
}

fn weight(entry: &Entry) -> usize {
    match &entry.content {
        Content::Message(message) => match &message.body {
            Body::Whole(bytes) => bytes.len(),
            Body::Like { middle, .. } => middle.len(),
            Body::Left => 0,
        },
        _ => 0,
    }
}
