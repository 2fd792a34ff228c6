//! Finds the recorded answer to a request.
//!
//! A tape may be larger than memory, and clients mostly call in the order of the tape. The player therefore reads a
//! tape only as far as needed. It gathers calls until the wanted one turns up, stores their keys and positions
//! ([`CallIndex`]), and caches the latest calls ([`CACHE`]). Calls evicted from the cache are read again from their
//! position.
//!
//! Invariants:
//! - a tape is only read, never written;
//! - equal calls are found in the order of their requests, each once per [`TapeCursor`], regardless of the calls in
//!   between;
//! - a call that cannot be played (no body, no answer) is never found, and is counted in [`Holes`].

use crate::call_gatherer::CallGatherer;
use crate::call_index::CallIndex;
use crate::edited_answers::EditedAnswers;
use crate::holes::Holes;
use crate::match_key::MatchKey;
use crate::paths::Paths;
use crate::recorded_call::RecordedCall;
use crate::recorded_side::RecordedSide;
use crate::tape_offer::{Hello, Items, TapeOffer};
use bytes::Bytes;
use serde_json::Value;
use signalbox_engine::catalog::ListKind;
use signalbox_engine::lock::LockResultExt as _;
use signalbox_engine::record::StoreError;
use signalbox_tape::TapeSource;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

/// Maximum size of the call cache in bytes.
pub const CACHE: usize = 16 << 20;
/// Number of entries read in one batch.
const BATCH: usize = 2_000;
/// Maximum number of entries read before the server can introduce itself.
const INTRODUCTION: u64 = 20_000;

/// Response to a call that occurs more often than it was recorded.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Repeat {
    #[default]
    Refuse,
    Last,
    /// Recorded answers again, starting from the first.
    Cycle,
}

#[derive(Clone, PartialEq, Debug)]
pub struct PlayerSettings {
    /// Backend whose own answers are played. `None` plays the answers that clients received.
    pub backend: Option<Arc<str>>,
    /// Restricts playback to the calls of this session.
    pub session: Option<u64>,
    /// Paths left out of match keys.
    pub ignored: Paths,
    /// Number of the last call to play. Later calls are treated as not recorded.
    pub until: Option<u64>,
    /// Answers that replace recorded ones, by call number.
    pub answers: Arc<EditedAnswers>,
    /// Response once the recorded answers are used up.
    pub repeat: Repeat,
    /// Playback speed: 1 keeps the recorded pauses, 2 halves them. `None` plays without pauses.
    pub speed: Option<f64>,
}

impl Default for PlayerSettings {
    fn default() -> Self {
        Self {
            backend: None,
            session: None,
            ignored: Paths::default(),
            until: None,
            answers: Arc::default(),
            repeat: Repeat::Refuse,
            speed: None,
        }
    }
}

/// Progress of one conversation on the tape.
#[derive(Debug, Default)]
pub struct TapeCursor {
    /// Number of requests for each call.
    asked: HashMap<MatchKey, usize>,
    /// Furthest position played so far.
    place: u64,
}

impl TapeCursor {
    /// Returns the furthest position played.
    #[must_use]
    pub fn place(&self) -> u64 {
        self.place
    }

    fn advance(&mut self, key: MatchKey, call: &RecordedCall) {
        *self.asked.entry(key).or_default() += 1;
        self.place = self.place.max(call.last);
    }
}

/// Result of a lookup.
#[derive(Debug)]
pub enum Lookup {
    Call(Arc<RecordedCall>),
    /// The call was recorded this many times, and all of them have been played.
    Exhausted(usize),
    /// No call matches. Holds the nearest call of the same tool, if there is one.
    Nothing(Option<Arc<RecordedCall>>),
}

/// Plays the calls of a tape.
#[derive(Debug)]
pub struct TapePlayer {
    settings: PlayerSettings,
    reading: Mutex<PlayerState>,
}

struct PlayerState {
    source: TapeSource,
    side: RecordedSide,
    gatherer: CallGatherer,
    offer: TapeOffer,
    holes: Holes,
    read: u64,
    ended: bool,
    calls: CallIndex,
    kept: HashMap<u32, Arc<RecordedCall>>,
    kept_order: VecDeque<u32>,
    kept_bytes: usize,
}

impl std::fmt::Debug for PlayerState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reading").field("read", &self.read).field("calls", &self.calls.len()).finish_non_exhaustive()
    }
}

impl TapePlayer {
    /// Opens a tape and reads far enough to introduce the server.
    ///
    /// # Errors
    /// If the tape cannot be read.
    pub fn open(source: TapeSource, settings: PlayerSettings) -> Result<Self, StoreError> {
        let mut reading = PlayerState::new(source, &settings)?;
        while !reading.ended && reading.read < INTRODUCTION && !reading.can_begin() {
            reading.advance(&settings)?;
        }
        Ok(Self { settings, reading: Mutex::new(reading) })
    }

    #[must_use]
    pub fn settings(&self) -> &PlayerSettings {
        &self.settings
    }

    /// Returns the server's handshake reply.
    #[must_use]
    pub fn hello(&self) -> Hello {
        self.reading().offer.hello()
    }

    /// Returns a list as of a position on the tape.
    #[must_use]
    pub fn list(&self, place: u64, kind: ListKind) -> Items {
        self.reading().offer.list_at(kind, place)
    }

    /// Returns the announcements to listening clients after one position, up to and including another.
    #[must_use]
    pub fn announced(&self, after: u64, until: u64) -> Vec<Bytes> {
        self.reading().offer.announced(after, until)
    }

    /// Returns what cannot be played of the part read so far.
    #[must_use]
    pub fn holes(&self) -> Holes {
        self.reading().holes.clone()
    }

    /// Returns the number of calls read so far, and `true` if the whole tape has been read.
    #[must_use]
    pub fn calls(&self) -> (usize, bool) {
        let reading = self.reading();
        (reading.calls.len(), reading.ended)
    }

    /// Returns the lookup key of a request.
    #[must_use]
    pub fn key_of(&self, request: &Value) -> Option<MatchKey> {
        MatchKey::of(request, &self.settings.ignored)
    }

    /// Finds a call by its key in the cache, without reading the tape. A call rejected by `is_wanted` stays available
    /// to a later lookup.
    pub fn find_known(
        &self,
        cursor: &mut TapeCursor,
        key: MatchKey,
        is_wanted: impl Fn(&RecordedCall) -> bool,
    ) -> Option<Arc<RecordedCall>> {
        let asked = cursor.asked.get(&key).copied().unwrap_or_default();
        let reading = self.reading();
        let index = reading.nth(key, asked).or_else(|| self.beyond(&reading, key, asked));
        let kept = index.and_then(|index| reading.kept.get(&index).cloned());
        drop(reading);
        kept.filter(|call| is_wanted(call)).inspect(|call| cursor.advance(key, call))
    }

    /// Finds the answer to a request. Reads on in the tape if needed, which is slow if the call is far ahead or
    /// missing.
    ///
    /// # Errors
    /// If the tape cannot be read.
    pub fn find(&self, cursor: &mut TapeCursor, request: &Value) -> Result<Lookup, StoreError> {
        let Some(key) = self.key_of(request) else { return Ok(Lookup::Nothing(None)) };
        if let Some(call) = self.find_by_key(cursor, key)? {
            return Ok(Lookup::Call(call));
        }
        let mut reading = self.reading();
        match reading.calls.count(key) {
            0 => Ok(Lookup::Nothing(reading.nearest(request, &self.settings)?)),
            recorded => Ok(Lookup::Exhausted(recorded)),
        }
    }

    /// Like [`Self::find`], but without the search for a nearest call.
    ///
    /// # Errors
    /// If the tape cannot be read.
    pub fn find_equal(
        &self,
        cursor: &mut TapeCursor,
        request: &Value,
    ) -> Result<Option<Arc<RecordedCall>>, StoreError> {
        match self.key_of(request) {
            Some(key) => self.find_by_key(cursor, key),
            None => Ok(None),
        }
    }

    fn find_by_key(&self, cursor: &mut TapeCursor, key: MatchKey) -> Result<Option<Arc<RecordedCall>>, StoreError> {
        let asked = cursor.asked.get(&key).copied().unwrap_or_default();
        let call = loop {
            let mut reading = self.reading();
            if let Some(index) = reading.nth(key, asked).or_else(|| self.beyond(&reading, key, asked)) {
                break reading.whole(index, &self.settings)?;
            }
            if reading.ended {
                return Ok(None);
            }
            reading.advance(&self.settings)?;
            // Release the lock, so that lookups in the part already read need not wait for the rest.
            drop(reading);
            std::thread::yield_now();
        };
        cursor.advance(key, &call);
        Ok(Some(call))
    }

    /// Returns the call to repeat once all recorded answers have been played.
    fn beyond(&self, reading: &PlayerState, key: MatchKey, asked: usize) -> Option<u32> {
        let recorded = reading.calls.count(key);
        if !reading.ended || recorded == 0 {
            return None;
        }
        match self.settings.repeat {
            Repeat::Refuse => None,
            Repeat::Last => reading.calls.nth(key, recorded - 1),
            Repeat::Cycle => reading.calls.nth(key, asked % recorded),
        }
    }

    fn reading(&self) -> MutexGuard<'_, PlayerState> {
        self.reading.lock().unpoisoned()
    }
}

impl PlayerState {
    fn new(mut source: TapeSource, settings: &PlayerSettings) -> Result<Self, StoreError> {
        let side = match &settings.backend {
            Some(name) => RecordedSide::Backend(Arc::clone(name)),
            None => RecordedSide::of(&mut source)?,
        };
        let holes = Holes::of_tape(&source);
        Ok(Self {
            source,
            gatherer: CallGatherer::new(side.clone(), settings.ignored.clone()),
            side,
            offer: TapeOffer::default(),
            holes,
            read: 0,
            ended: false,
            calls: CallIndex::default(),
            kept: HashMap::new(),
            kept_order: VecDeque::new(),
            kept_bytes: 0,
        })
    }

    /// Returns `true` once the server can introduce itself and answer a call.
    fn can_begin(&self) -> bool {
        self.offer.is_known() && self.calls.len() > 0
    }

    /// Reads the next batch of entries.
    fn advance(&mut self, settings: &PlayerSettings) -> Result<(), StoreError> {
        let mut batch = self.source.kept_after(self.read);
        let mut count = 0;
        for entry in batch.by_ref().take(BATCH) {
            let entry = entry?;
            count += 1;
            self.read = entry.seq;
            self.holes.look(&entry);
            let entry = self.gatherer.take(entry);
            self.offer.learn(&self.side, &entry);
        }
        drop(batch);
        if count < BATCH {
            self.gatherer.finish();
            self.ended = true;
        }
        while let Some(call) = self.gatherer.next_call() {
            self.add(call, settings);
        }
        Ok(())
    }

    fn add(&mut self, mut call: RecordedCall, settings: &PlayerSettings) {
        let elsewhere = settings.session.is_some() && call.session != settings.session;
        let beyond = settings.until.is_some_and(|last| call.number > last);
        if elsewhere || beyond || is_answered_otherwise(&call.method) {
            return;
        }
        settings.answers.apply(&mut call);
        self.holes.count(&call);
        self.offer.spoke(call.era);
        if let Some(subject) = &call.subject {
            self.offer.called(&call.method, subject, || call.has_result());
        }
        let (Some(key), true) = (call.key, call.is_playable()) else { return };
        let subject = (Arc::clone(&call.method), call.subject.clone());
        if let Some(index) = self.calls.add(key, call.seq, subject) {
            self.keep(index, Arc::new(call));
        }
    }

    fn keep(&mut self, index: u32, call: Arc<RecordedCall>) {
        self.kept_bytes += call.weight();
        self.kept.insert(index, call);
        self.kept_order.push_back(index);
        while self.kept_bytes > CACHE && self.kept_order.len() > 1 {
            let oldest = self.kept_order.pop_front().and_then(|oldest| self.kept.remove(&oldest));
            self.kept_bytes -= oldest.map_or(0, |oldest| oldest.weight()).min(self.kept_bytes);
        }
    }

    /// Returns the nth recorded call with this key, unless an earlier one is still open.
    fn nth(&self, key: MatchKey, nth: usize) -> Option<u32> {
        let index = self.calls.nth(key, nth)?;
        let place = self.calls.place(index)?;
        (!self.gatherer.waits_for(key, place)).then_some(index)
    }

    fn whole(&mut self, index: u32, settings: &PlayerSettings) -> Result<Arc<RecordedCall>, StoreError> {
        if let Some(call) = self.kept.get(&index) {
            return Ok(Arc::clone(call));
        }
        let gone = || StoreError::Other("a call that was on the tape is gone".to_owned());
        let place = self.calls.place(index).ok_or_else(gone)?;
        let mut gatherer = CallGatherer::new(self.side.clone(), settings.ignored.clone());
        let mut entries = self.source.kept_after(place.saturating_sub(1));
        let mut ended = false;
        let call = loop {
            match entries.next() {
                Some(entry) => _ = gatherer.take(entry?),
                // The store may have pruned it since it was read.
                None if ended => return Err(gone()),
                None => {
                    gatherer.finish();
                    ended = true;
                }
            }
            let mut found = std::iter::from_fn(|| gatherer.next_call());
            if let Some(mut call) = found.find(|call| call.seq == place) {
                settings.answers.apply(&mut call);
                break Arc::new(call);
            }
        };
        drop(entries);
        self.keep(index, Arc::clone(&call));
        Ok(call)
    }

    /// Finds the recorded call of the same tool whose params differ least.
    fn nearest(&mut self, request: &Value, settings: &PlayerSettings) -> Result<Option<Arc<RecordedCall>>, StoreError> {
        let method = request.get("method").and_then(Value::as_str).unwrap_or_default();
        let subject = request.get("params").and_then(|params| params.get("name").or_else(|| params.get("uri")));
        let subject = subject.and_then(Value::as_str).map(Arc::from);
        let candidates = self.calls.alike(&(Arc::from(method), subject)).to_vec();
        let mut nearest: Option<(usize, Arc<RecordedCall>)> = None;
        for index in candidates {
            let call = self.whole(index, settings)?;
            let recorded = call.request.as_ref().and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok());
            let Some(recorded) = recorded else { continue };
            let distance = crate::nearest::differences(&recorded, request, &settings.ignored).len();
            if nearest.as_ref().is_none_or(|(least, _)| distance < *least) {
                nearest = Some((distance, call));
            }
        }
        Ok(nearest.map(|(_, call)| call))
    }
}

/// Returns `true` for methods that the player answers itself from the server description.
fn is_answered_otherwise(method: &str) -> bool {
    use signalbox_wire::method as m;
    let own = [m::INITIALIZE, m::SERVER_DISCOVER, m::PING, m::SUBSCRIPTIONS_LISTEN];
    own.contains(&method) || ListKind::of_method(method).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use signalbox_engine::fact::Point;
    use signalbox_engine::record::{BackendOffer, Body, Content, Entry, MessageEntry, MessageKind, TapeInfo, TapeKind};
    use signalbox_tape::TapeFileWriter;
    use std::fs::File;

    /// A tape of calls of the tool `t`: the argument of each, and its answer.
    struct Tape {
        folder: tempfile::TempDir,
        entries: Vec<Entry>,
    }

    impl Tape {
        fn new() -> Self {
            Self { folder: tempfile::tempdir().unwrap(), entries: Vec::new() }
        }

        fn push(&mut self, exchange: Option<u64>, content: Content) {
            let seq = self.entries.len() as u64 + 1;
            let entry = Entry::new(seq, seq * 1000, "me".into(), content);
            self.entries.push(Entry { exchange, session: Some(1), ..entry });
        }

        fn message(&mut self, number: u64, point: Point, kind: MessageKind, body: Body) {
            let mut message = MessageEntry::new(point, kind, 0, body);
            (message.method, message.subject) = (Some("tools/call".into()), Some("t".into()));
            self.push(Some(number), Content::Message(message));
        }

        fn call(&mut self, number: u64, argument: &str, answer: &str) {
            self.message(
                number,
                Point::ClientIn,
                MessageKind::Request,
                Body::Whole(request(argument).to_string().into()),
            );
            let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {"content": answer}});
            self.message(number, Point::ClientOut, MessageKind::Result, Body::Whole(answer.to_string().into()));
        }

        fn play(&self, settings: PlayerSettings) -> TapePlayer {
            let path = self.folder.path().join("x.tape");
            let info = TapeInfo::new("x".to_owned(), TapeKind::Serve, "x".to_owned(), 1);
            let mut writer = TapeFileWriter::new(File::create(&path).unwrap(), &info, &[]).unwrap();
            self.entries.iter().for_each(|entry| writer.push(entry).unwrap());
            writer.finish(Some(9)).unwrap();
            TapePlayer::open(TapeSource::open(&path).unwrap(), settings).unwrap()
        }
    }

    fn request(argument: &str) -> Value {
        json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "t", "arguments": {"a": argument}}})
    }

    fn said(player: &TapePlayer, cursor: &mut TapeCursor, argument: &str) -> String {
        match player.find(cursor, &request(argument)).unwrap() {
            Lookup::Call(call) => {
                let answer: Value = serde_json::from_slice(call.answer.unwrap_said()).unwrap();
                answer["result"]["content"].as_str().unwrap().to_owned()
            }
            Lookup::Exhausted(times) => format!("recorded {times} times"),
            Lookup::Nothing(near) => format!("nothing, near {:?}", near.map(|call| call.number)),
        }
    }

    trait UnwrapSaid {
        fn unwrap_said(&self) -> &[u8];
    }

    impl UnwrapSaid for Option<crate::recorded_call::RecordedMessage> {
        fn unwrap_said(&self) -> &[u8] {
            self.as_ref().unwrap().bytes.as_ref().unwrap()
        }
    }

    #[test]
    fn equal_calls_get_their_answers_in_order_each_conversation_for_itself() {
        let mut tape = Tape::new();
        tape.call(1, "x", "first");
        tape.call(2, "y", "other");
        tape.call(3, "x", "second");
        let player = tape.play(PlayerSettings::default());
        let (mut one, mut other) = (TapeCursor::default(), TapeCursor::default());
        assert_eq!(said(&player, &mut one, "x"), "first");
        assert_eq!(said(&player, &mut one, "x"), "second");
        assert_eq!(said(&player, &mut other, "x"), "first");
        assert_eq!(said(&player, &mut one, "x"), "recorded 2 times");
        assert_eq!(said(&player, &mut one, "y"), "other");
        assert_eq!(said(&player, &mut one, "z"), "nothing, near Some(1)");
    }

    #[test]
    fn beyond_the_last_answer_it_is_repeated_or_all_are() {
        let mut tape = Tape::new();
        tape.call(1, "x", "first");
        tape.call(2, "x", "second");
        for (repeat, expected) in [(Repeat::Last, "second second"), (Repeat::Cycle, "first second")] {
            let player = tape.play(PlayerSettings { repeat, ..PlayerSettings::default() });
            let mut cursor = TapeCursor::default();
            let mut next = || said(&player, &mut cursor, "x");
            assert_eq!((next(), next()), ("first".to_owned(), "second".to_owned()));
            assert_eq!(format!("{} {}", next(), next()), expected);
            // What is kept whole needs no reading, beyond the last answer as before it.
            let key = player.key_of(&request("x")).unwrap();
            assert!(player.find_known(&mut cursor, key, |_| false).is_none());
            assert!(player.find_known(&mut cursor, key, |_| true).is_some());
        }
    }

    #[test]
    fn calls_that_overlap_keep_the_order_of_their_requests() {
        let mut tape = Tape::new();
        let body = |text: &Value| Body::Whole(text.to_string().into());
        let answer = |text: &str| body(&json!({"jsonrpc": "2.0", "id": 1, "result": {"content": text}}));
        tape.message(1, Point::ClientIn, MessageKind::Request, body(&request("x")));
        tape.message(2, Point::ClientIn, MessageKind::Request, body(&request("x")));
        tape.message(2, Point::ClientOut, MessageKind::Result, answer("of the second"));
        for _ in 0..BATCH {
            tape.push(None, Content::SessionEnded);
        }
        tape.message(1, Point::ClientOut, MessageKind::Result, answer("of the first"));
        let player = tape.play(PlayerSettings::default());
        let mut cursor = TapeCursor::default();
        assert_eq!(said(&player, &mut cursor, "x"), "of the first");
        assert_eq!(said(&player, &mut cursor, "x"), "of the second");
    }

    #[test]
    fn what_was_called_with_success_is_listed_even_if_no_list_has_it() {
        let names = |listed: &[u8], error: bool| {
            let mut tape = Tape::new();
            let parts = vec![("tools".into(), Bytes::copy_from_slice(listed))];
            let seen = BackendOffer { backend: "b".into(), parts, ..BackendOffer::default() };
            tape.push(None, Content::Backend(Box::new(seen)));
            match error {
                false => tape.call(1, "x", "y"),
                true => {
                    let answer =
                        json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "Unknown tool"}});
                    tape.message(
                        1,
                        Point::ClientIn,
                        MessageKind::Request,
                        Body::Whole(request("x").to_string().into()),
                    );
                    tape.message(1, Point::ClientOut, MessageKind::Error, Body::Whole(answer.to_string().into()));
                }
            }
            let items = tape.play(PlayerSettings::default()).list(0, ListKind::Tools);
            items
                .iter()
                .map(|item| serde_json::from_str::<Value>(item.get()).unwrap()["name"].clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(br#"[{"name":"a"}]"#, false), ["a", "t"]);
        assert_eq!(names(br#"[{"name":"t"},{"name":"a"}]"#, false), ["t", "a"]);
        assert_eq!(names(b"[]", true), Vec::<Value>::new());
    }

    #[test]
    fn a_long_tape_is_read_as_far_as_needed_and_calls_that_are_not_kept_are_read_again() {
        let mut tape = Tape::new();
        let long = "y".repeat(20_000);
        let parts = vec![("tools".into(), Bytes::from_static(br#"[{"name":"t"}]"#))];
        let seen = BackendOffer { backend: "b".into(), parts, ..BackendOffer::default() };
        tape.push(None, Content::Backend(Box::new(seen)));
        for number in 1..=3_000 {
            tape.call(number, &number.to_string(), &format!("{number} {long}"));
        }
        let player = tape.play(PlayerSettings::default());
        let (read, all) = player.calls();
        assert!(read < 3_000 && !all, "{read}");
        let mut cursor = TapeCursor::default();
        let mut number = |argument: &str| said(&player, &mut cursor, argument).split(' ').next().unwrap().to_owned();
        assert_eq!(number("2999"), "2999");
        assert!(player.reading().kept_bytes <= CACHE && !player.reading().kept.contains_key(&0));
        assert_eq!(number("1"), "1", "it is read again from its place");
        let call = player.reading().kept.get(&0).cloned().unwrap();
        assert!(call.answer.as_ref().unwrap().bytes.as_ref().unwrap().is_unique(), "it does not hold its frame");
        assert_eq!(number("4000"), "nothing,");
    }

    #[test]
    fn what_cannot_be_played_is_counted_and_never_found() {
        let mut tape = Tape::new();
        tape.message(1, Point::ClientIn, MessageKind::Request, Body::Left);
        tape.message(1, Point::ClientOut, MessageKind::Result, Body::Whole("{}".into()));
        tape.message(2, Point::ClientIn, MessageKind::Request, Body::Whole(request("x").to_string().into()));
        tape.message(2, Point::ClientOut, MessageKind::Result, Body::Left);
        let player = tape.play(PlayerSettings::default());
        let holes = player.holes();
        assert_eq!((holes.left, holes.unanswered), (1, 1));
        assert_eq!(holes.to_string().lines().count(), 2, "{holes}");
        assert_eq!(said(&player, &mut TapeCursor::default(), "x"), "nothing, near None");
    }

    /// Proves S-47.
    #[test]
    fn until_and_edited_answers_make_a_branch() {
        let mut tape = Tape::new();
        tape.call(1, "x", "first");
        tape.call(2, "x", "second");
        let mut answers = EditedAnswers::default();
        answers.insert(1, &json!({"result": {"content": "another"}}));
        let settings = PlayerSettings { until: Some(1), answers: Arc::new(answers), ..PlayerSettings::default() };
        let player = tape.play(settings);
        let mut cursor = TapeCursor::default();
        assert_eq!(said(&player, &mut cursor, "x"), "another");
        assert_eq!(said(&player, &mut cursor, "x"), "recorded 1 times");
    }
}
