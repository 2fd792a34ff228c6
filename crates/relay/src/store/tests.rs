//! One suite for every store: [`check_store`] is run over each of them.

use super::memory::MemoryStore;
use super::*;
use crate::session::NewSession;
use crate::tool_request::WorkerError;
use signalbox_engine::Caller;
use std::time::{Duration, Instant};

pub(crate) fn session(now: u64, ttl: u64) -> SessionRecord {
    let NewSession { record, .. } = SessionRecord::make(None, now, ttl).unwrap();
    record
}

pub(crate) fn request(id: &str, deadline: u64) -> ToolRequest {
    let arguments = RawValue::from_string(r#"{"a":1}"#.to_owned()).unwrap().into();
    let (id, tool) = (id.into(), "t".into());
    ToolRequest { id, tool, arguments, at: 0, deadline, idempotent: false, sent_to: None }
}

pub(crate) fn result(text: &str) -> ToolAnswer {
    ToolAnswer::Result(RawValue::from_string(text.to_owned()).unwrap().into())
}

pub(crate) fn ids(requests: &[ToolRequest]) -> Vec<&str> {
    requests.iter().map(|request| &*request.id).collect()
}

/// What every store does. `now` is its time in milliseconds since 1970; a session of it may live for `ttl`.
pub async fn check_store(store: &dyn RelayStore, now: u64, ttl: u64) {
    mappings(store, now, ttl).await;
    forgetting(store, now, ttl).await;
    requests(store, now, ttl).await;
    results(store, now, ttl).await;
    lead(store, now, ttl).await;
}

/// CO-13: making both mappings takes under 25 ms, reading one under 10 ms and writing one under 15 ms, as medians.
pub(crate) async fn check_latencies(store: &dyn RelayStore, now: u64) {
    let (mut made, mut read, mut written) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..50 {
        let record = session(now, 60_000);
        let begun = Instant::now();
        store.create(record.clone(), 1_000, now).await.unwrap();
        made.push(begun.elapsed());
        let begun = Instant::now();
        assert!(store.by_mcp(&record.mcp_id, now).await.unwrap().is_some());
        read.push(begun.elapsed());
        let begun = Instant::now();
        assert!(store.touch(&record.code, now + 60_001, now).await.unwrap());
        written.push(begun.elapsed());
    }
    for (mut all, most, what) in [(made, 25, "made"), (read, 10, "read"), (written, 15, "written")] {
        all.sort_unstable();
        let median = all[all.len() / 2];
        assert!(median < Duration::from_millis(most), "a mapping is {what} in {median:?}");
    }
}

/// C-11: both mappings are made together or not at all, and end together.
async fn mappings(store: &dyn RelayStore, now: u64, ttl: u64) {
    let first = session(now, ttl);
    assert_eq!(store.create(first.clone(), 100, now).await, Ok(CreateOutcome::Both));
    assert_eq!(store.by_code(&first.code, now).await, Ok(Some(first.clone())));
    assert_eq!(store.by_mcp(&first.mcp_id, now).await, Ok(Some(first.clone())));
    let same_code = SessionRecord { code: first.code.clone(), ..session(now, ttl) };
    assert_eq!(store.create(same_code.clone(), 100, now).await, Ok(CreateOutcome::Taken));
    assert_eq!(store.by_mcp(&same_code.mcp_id, now).await, Ok(None), "neither was made");
    let same_id = SessionRecord { mcp_id: first.mcp_id.clone(), ..session(now, ttl) };
    assert_eq!(store.create(same_id.clone(), 100, now).await, Ok(CreateOutcome::Taken));
    assert_eq!(store.by_code(&same_id.code, now).await, Ok(None), "neither was made");
    let second = session(now, ttl);
    assert_eq!(store.create(second.clone(), 100, now).await, Ok(CreateOutcome::Both));
    assert_eq!(store.bind("not-minted-here", &second.code, now).await, Ok(false), "C-12 without fixation");
    assert_eq!(store.bind(&first.mcp_id, &second.code, now).await, Ok(true));
    assert_eq!(store.by_mcp(&first.mcp_id, now).await, Ok(Some(second.clone())));
    let later = now + ttl - 1;
    assert_eq!(store.touch(&second.code, now + 2 * ttl, later).await, Ok(true));
    assert_eq!(store.by_code(&second.code, later).await.unwrap().unwrap().until, now + 2 * ttl);
    assert_eq!(store.set_tokened(&second.code, now).await, Ok(true));
    assert_eq!(store.set_tools(&second.code, "[]", now).await, Ok(true));
    let read = store.by_code(&second.code, now).await.unwrap().unwrap();
    assert!(read.tokened && read.tools.as_deref() == Some("[]"));
    assert_eq!(store.remove(&second.code).await, Ok(true));
    assert_eq!(store.by_mcp(&first.mcp_id, now).await, Ok(None), "what is bound to it ends with it");
}

/// An MCP session that leaves takes the session that was made with it along, unless somebody else uses that.
async fn forgetting(store: &dyn RelayStore, now: u64, ttl: u64) {
    let [alone, shared, led, other] = std::array::from_fn(|_| session(now, ttl));
    for record in [&alone, &shared, &led, &other] {
        assert_eq!(store.create(record.clone(), 100, now).await, Ok(CreateOutcome::Both));
    }
    let there = async |record: &SessionRecord| store.by_code(&record.code, now).await.unwrap().is_some();
    let mut events = store.subscribe(&alone.code).await.unwrap();
    store.forget_mcp("not-minted-here").await.unwrap();
    store.forget_mcp(&alone.mcp_id).await.unwrap();
    assert!(!there(&alone).await && matches!(events.recv().await, Some(RelayEvent::Ended)));
    assert!(events.recv().await.is_none(), "nothing more is told of it");
    assert!(store.subscribe(&alone.code).await.unwrap().recv().await.is_none(), "nor is there anything to listen to");
    assert_eq!(store.bind(&other.mcp_id, &shared.code, now).await, Ok(true));
    store.forget_mcp(&shared.mcp_id).await.unwrap();
    assert!(there(&shared).await, "another one is bound to it");
    store.forget_mcp(&other.mcp_id).await.unwrap();
    assert!(there(&shared).await && there(&other).await, "neither was made with the one that left last");
    assert_eq!(store.by_mcp(&other.mcp_id, now).await, Ok(None));
    assert_eq!(store.take_lead(&led.code, "page", "s1", now + 500, now).await, Ok(true));
    store.forget_mcp(&led.mcp_id).await.unwrap();
    assert!(there(&led).await, "its page is there");
    assert_eq!(store.bind(&led.mcp_id, &led.code, now).await, Ok(false), "who has left is not known any more");
    assert_eq!(store.remove(&alone.code).await, Ok(false));
}

async fn requests(store: &dyn RelayStore, now: u64, ttl: u64) {
    let session = session(now, ttl);
    let code = &session.code;
    store.create(session.clone(), 100, now).await.unwrap();
    let mut events = store.subscribe(code).await.unwrap();
    for id in ["1", "2"] {
        assert_eq!(store.push(code, request(id, now + 1_000), 2, now).await, Ok(QueueOutcome::Queued));
        assert!(matches!(events.recv().await, Some(RelayEvent::Requested { id: told }) if *told == *id));
    }
    assert_eq!(store.push(code, request("3", now + 1_000), 2, now).await, Ok(QueueOutcome::Full));
    assert_eq!(store.mark_sent(code, "1", "journal", now).await, Ok(true));
    assert_eq!(store.mark_sent(code, "1", "other", now).await, Ok(true));
    let waiting = store.unanswered(code, now).await.unwrap();
    assert_eq!((ids(&waiting), waiting[0].sent_to.as_deref()), (vec!["1", "2"], Some("journal")));
    assert_eq!(store.answer(code, "2", result("null"), now).await, Ok(AnswerOutcome::Taken));
    let told = events.recv().await;
    let Some(RelayEvent::Answered { id, answer }) = told else { panic!("{told:?}") };
    assert!(*id == *"2" && matches!(&*answer, ToolAnswer::Result(result) if result.get() == "null"));
    let late = ToolAnswer::Error(WorkerError::outcome_unknown());
    assert_eq!(store.answer(code, "2", late.clone(), now).await, Ok(AnswerOutcome::Duplicate));
    assert_eq!(store.answer(code, "foreign", late.clone(), now).await, Ok(AnswerOutcome::Unknown));
    assert_eq!(store.withdraw(code, "1", "gone", now).await, Ok(true));
    assert!(matches!(events.recv().await, Some(RelayEvent::Cancelled { id, .. }) if *id == *"1"));
    assert_eq!(store.answer(code, "1", late.clone(), now).await, Ok(AnswerOutcome::Unknown));
    assert_eq!(store.push(code, request("4", now + 10), 2, now).await, Ok(QueueOutcome::Queued));
    assert!(store.unanswered(code, now + 10).await.unwrap().is_empty(), "nobody waits for it any more");
    assert_eq!(store.answer(code, "4", late, now + 10).await, Ok(AnswerOutcome::Unknown));
}

/// The owner of results of clients who say nothing about themselves.
pub fn anybody() -> ResultOwner {
    ResultOwner::of(&Caller::anonymous("relay"), None, 0)
}

async fn results(store: &dyn RelayStore, now: u64, ttl: u64) {
    let session = session(now, ttl);
    let code = &session.code;
    store.create(session.clone(), 100, now).await.unwrap();
    for text in ["a", "b", "c"] {
        assert_eq!(store.push_result(code, &anybody(), text.into(), 2, now).await, Ok(true));
    }
    let read = async |after| {
        let results = store.results(code, &anybody(), after, now).await.unwrap();
        results
            .iter()
            .map(|result| (result.number, String::from_utf8_lossy(&result.data).into_owned()))
            .collect::<Vec<_>>()
    };
    assert_eq!(read(None).await, [(2, "b".to_owned()), (3, "c".to_owned())], "the oldest gave way");
    store.delivered(code, &anybody(), 2, now).await.unwrap();
    assert_eq!(read(None).await, [(3, "c".to_owned())], "a stream that comes later has the rest");
    assert_eq!(read(Some(1)).await.len(), 2, "one that was there has them all");
    for number in 4..40 {
        store.push_result(code, &anybody(), number.to_string().into(), 100, now).await.unwrap();
    }
    store.delivered(code, &anybody(), 39, now).await.unwrap();
    store.delivered(code, &anybody(), 5, now).await.unwrap();
    assert!(read(None).await.is_empty(), "what was delivered stays so");
    let kept = read(Some(0)).await;
    assert_eq!((kept.len(), kept[0].clone(), kept[15].0), (16, (24, "24".to_owned()), 39), "the last few are kept");
    store.push_result(code, &anybody(), "last".into(), 100, now).await.unwrap();
    assert_eq!(read(None).await, [(40, "last".to_owned())]);
    let other = ResultOwner::of(&Caller::anonymous("relay"), Some("other"), 0);
    assert!(store.results(code, &other, Some(0), now).await.unwrap().is_empty(), "they are another's");
    store.push_result(code, &other, "theirs".into(), 100, now).await.unwrap();
    let theirs = store.results(code, &other, None, now).await.unwrap();
    assert_eq!((theirs.len(), theirs[0].number, &theirs[0].data[..]), (1, 41, &b"theirs"[..]));
    store.delivered(code, &other, 41, now).await.unwrap();
    assert_eq!(read(None).await, [(40, "last".to_owned())], "what another got says nothing about this one");
    assert!(store.results(code, &anybody(), None, now + ttl).await.unwrap().is_empty(), "the session is over by then");
}

async fn lead(store: &dyn RelayStore, now: u64, ttl: u64) {
    let session = session(now, ttl);
    let code = &session.code;
    store.create(session.clone(), 100, now).await.unwrap();
    let mut events = store.subscribe(code).await.unwrap();
    assert_eq!(store.take_lead(code, "page", "s1", now + 500, now).await, Ok(true));
    assert!(matches!(events.recv().await, Some(RelayEvent::LeadChanged)));
    assert_eq!(store.take_lead(code, "other", "s2", now + 500, now).await, Ok(false));
    assert_eq!(store.take_lead(code, "page", "s3", now + 500, now).await, Ok(true), "the same page is back");
    store.yield_lead(code, "s1", now).await.unwrap();
    assert_eq!(store.has_lead(code, now).await, Ok(true), "its lost stream gives up nothing");
    store.yield_lead(code, "s3", now).await.unwrap();
    assert_eq!(store.has_lead(code, now).await, Ok(false));
    assert_eq!(store.take_lead(code, "other", "s2", now + 500, now).await, Ok(true));
}

/// Proves C-11.
#[tokio::test]
async fn sessions_are_kept_in_memory() {
    check_store(&MemoryStore::default(), 1_000, 10_000).await;
}

/// Proves C-22.
#[tokio::test]
async fn a_session_ends_after_its_time_and_its_subscribers_hear_of_it() {
    let store = MemoryStore::default();
    let record = session(0, 100);
    store.create(record.clone(), 1, 0).await.unwrap();
    assert_eq!(store.create(session(0, 100), 1, 0).await, Ok(CreateOutcome::Full));
    let mut events = store.subscribe(&record.code).await.unwrap();
    store.touch(&record.code, 150, 99).await.unwrap();
    assert!(store.by_mcp(&record.mcp_id, 149).await.unwrap().is_some());
    assert_eq!(store.by_mcp(&record.mcp_id, 150).await, Ok(None));
    assert_eq!(store.touch(&record.code, 1_000, 150).await, Ok(false));
    store.sweep(150).await.unwrap();
    assert!(matches!(events.recv().await, Some(RelayEvent::Ended)));
    assert!(events.recv().await.is_none());
    assert_eq!(store.counts(), SessionCounts::default());
}

#[tokio::test]
async fn who_does_not_keep_up_is_let_go() {
    let store = MemoryStore::default();
    let record = session(0, 100);
    store.create(record.clone(), 1, 0).await.unwrap();
    let mut events = store.subscribe(&record.code).await.unwrap();
    for _ in 0..EVENT_QUEUE + 10 {
        store.publish(&record.code, RelayEvent::ToolsChanged).await.unwrap();
    }
    let mut came = 0;
    while events.recv().await.is_some() {
        came += 1;
    }
    assert_eq!(came, EVENT_QUEUE);
}
