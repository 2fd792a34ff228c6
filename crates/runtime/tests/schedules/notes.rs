//! Writes down every fact it is told, may take its time over that or fail, and says afterwards what was out of order.

use crate::dice::Dice;
use signalbox_engine::fact::{Outcome, Point};
use signalbox_engine::{ExchangeId, Fact, FactSink, SessionKey};
use signalbox_wire::{Envelope, Kind, method};
use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What is written down of a fact.
#[derive(Clone, Debug)]
enum Word {
    /// A message at a point, by its number; true for an answer.
    Message(Point, u64, bool),
    Decided,
    Lost,
    Session,
    SessionEnded,
    /// The end of an exchange; true for a listen request.
    Finished(Outcome, bool),
    Refused,
}

#[derive(Clone, Debug)]
struct Note {
    session: SessionKey,
    exchange: Option<ExchangeId>,
    word: Word,
}

/// The notes.
pub struct Notes {
    all: Mutex<Vec<Note>>,
    dice: Mutex<Dice>,
    durable: bool,
    /// In how many of a hundred cases writing fails.
    failing: AtomicUsize,
}

impl Notes {
    /// Empty notes. Answers wait for durable ones.
    pub fn new(seed: u64, durable: bool) -> Self {
        let dice = Mutex::new(Dice::new(seed));
        Self { all: Mutex::default(), dice, durable, failing: AtomicUsize::new(0) }
    }

    /// From now on writing fails in this many of a hundred cases.
    pub fn set_failing(&self, percent: usize) {
        self.failing.store(percent, Ordering::Relaxed);
    }

    /// How often exchanges ended in which way, and how many messages of clients' exchanges passed between gateway and
    /// backends.
    pub fn counts(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for note in self.all.lock().unwrap().iter() {
            let word = match note.word {
                Word::Finished(outcome, _) => outcome.label(),
                Word::Message(Point::BackendOut, ..) if note.exchange.is_some() => "to backends",
                Word::Message(Point::BackendIn, ..) if note.exchange.is_some() => "from backends",
                _ => continue,
            };
            *counts.entry(word).or_default() += 1;
        }
        counts
    }

    fn by_exchange(&self) -> BTreeMap<(SessionKey, ExchangeId), Vec<Word>> {
        let mut all: BTreeMap<_, Vec<Word>> = BTreeMap::new();
        for note in self.all.lock().unwrap().iter() {
            if let Some(exchange) = note.exchange {
                all.entry((note.session, exchange)).or_default().push(note.word.clone());
            }
        }
        all
    }

    /// Finds faults in the order of the facts. On one thread the numbers of all messages rise; on several, those of one
    /// session toward its client.
    pub fn faults(&self, one_thread: bool) -> Vec<String> {
        let mut faults = Vec::new();
        for (key, words) in self.by_exchange() {
            if let Some(fault) = exchange_fault(&words) {
                faults.push(format!("{key:?} {fault}: {words:?}"));
            }
        }
        let all = self.all.lock().unwrap();
        let mut sessions: BTreeMap<SessionKey, Vec<&Word>> = BTreeMap::new();
        let (mut seen, mut newest) = (BTreeSet::new(), 0);
        for note in all.iter() {
            if note.session != SessionKey::GATEWAY {
                sessions.entry(note.session).or_default().push(&note.word);
            }
            if let Word::Message(_, number, _) = note.word {
                if !seen.insert(number) {
                    faults.push(format!("message {number} was told of twice: {note:?}"));
                }
                if one_thread && number < newest {
                    faults.push(format!("message {number} was told of after message {newest}: {note:?}"));
                }
                newest = newest.max(number);
            }
        }
        for (session, words) in sessions {
            if let Some(fault) = session_fault(&words) {
                faults.push(format!("{session}: {fault}: {words:?}"));
            }
        }
        faults
    }
}

/// Finds the fault in the facts of one exchange: its request comes first; one end; one answer, unless it was cancelled
/// or is a listen request that its client closed; behind its end comes nothing but what passes between gateway and
/// backend, and what was lost.
fn exchange_fault(words: &[Word]) -> Option<String> {
    if !matches!(words.first(), Some(Word::Message(Point::ClientIn, _, false))) {
        return Some("does not begin with its request".to_owned());
    }
    let ends: Vec<(usize, Outcome, bool)> = words
        .iter()
        .enumerate()
        .filter_map(|(at, word)| match word {
            Word::Finished(outcome, listens) => Some((at, *outcome, *listens)),
            _ => None,
        })
        .collect();
    let [(end, outcome, listens)] = ends[..] else { return Some(format!("has {} ends", ends.len())) };
    let late = |word: &&Word| !matches!(word, Word::Message(Point::BackendIn | Point::BackendOut, ..) | Word::Lost);
    if let Some(late) = words[end + 1..].iter().find(late) {
        return Some(format!("goes on behind its end with {late:?}"));
    }
    let answers = words.iter().filter(|word| matches!(word, Word::Message(Point::ClientOut, _, true))).count();
    let due = usize::from(outcome != Outcome::Cancelled);
    let closed = listens && outcome == Outcome::Ok && answers == 0;
    (answers != due && !closed).then(|| format!("has {answers} answers, and ended as {outcome:?}"))
}

/// What is wrong with the facts of one session.
fn session_fault(words: &[&Word]) -> Option<String> {
    let mut newest = 0;
    let mut ended = false;
    for (at, word) in words.iter().enumerate() {
        match word {
            Word::Message(Point::ClientIn | Point::ClientOut, number, _) => {
                if *number <= newest {
                    return Some(format!("message {number} was told of after message {newest}"));
                }
                newest = *number;
            }
            Word::SessionEnded if ended => return Some("it ended twice".to_owned()),
            Word::SessionEnded => ended = true,
            Word::Session if ended => return Some("it began after it ended".to_owned()),
            Word::Finished(..) if ended => return Some("an exchange ended after its session".to_owned()),
            _ => {}
        }
        let begins = matches!(word, Word::Session);
        if at > 0 && begins && !matches!(words[0], Word::Session) {
            return Some("it did not begin at its beginning".to_owned());
        }
    }
    let kept = matches!(words.first(), Some(Word::Session));
    (kept && !ended).then(|| "it did not end".to_owned())
}

impl FactSink for Notes {
    fn wants_messages(&self) -> bool {
        true
    }

    fn is_durable(&self) -> bool {
        self.durable
    }

    fn written(&self) -> Pin<Box<dyn Future<Output = bool> + Send>> {
        let (after, kept) = {
            let mut dice = self.dice.lock().unwrap();
            let quick = dice.chance(70);
            let after = dice.millis(0..if quick { 2 } else { 800 });
            (after, !dice.chance(self.failing.load(Ordering::Relaxed)))
        };
        Box::pin(async move {
            tokio::time::sleep(after).await;
            kept
        })
    }

    fn fact(&self, fact: &Fact) {
        let (session, exchange, word) = match fact {
            Fact::Message(one) => {
                let answer = Envelope::parse(one.bytes.clone())
                    .is_ok_and(|message| matches!(message.kind(), Kind::Response | Kind::Error));
                (one.session, one.exchange, Word::Message(one.point, one.number, answer))
            }
            Fact::Finished(one) => {
                let listens = one.method == method::SUBSCRIPTIONS_LISTEN;
                (one.session, Some(one.exchange), Word::Finished(one.outcome, listens))
            }
            Fact::Session(one) => (one.session, None, Word::Session),
            Fact::SessionEnded { session, .. } => (*session, None, Word::SessionEnded),
            Fact::Decision(one) => (one.session, one.exchange, Word::Decided),
            Fact::Lost(one) => (one.session, one.exchange, Word::Lost),
            Fact::Refused(one) => (one.session, None, Word::Refused),
        };
        self.all.lock().unwrap().push(Note { session, exchange, word });
    }
}
