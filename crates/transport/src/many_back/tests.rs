//! Several addresses: who gets what, and what becomes of messages that one of them does not take.

use super::{Address, ManyConnector, ManySpec};
use crate::http_back::tests::server::{call, initialize, message, result};
use bytes::Bytes;
use signalbox_engine::back::{Outbound, ToBackend};
use signalbox_engine::balance::Balance;
use signalbox_engine::{Fault, FaultKind};
use signalbox_runtime::{BoxFuture, Connector, Link, LinkEvents};
use signalbox_wire::Revision;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;

/// Most events that wait for a test to look at them.
const ROOM: usize = 1_000;

/// An address in memory, which answers or cannot be reached.
#[derive(Clone)]
struct Fake {
    web: bool,
    away: Arc<AtomicBool>,
    dies: Arc<AtomicBool>,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    fn new(web: bool) -> Self {
        Self { web, away: Arc::default(), dies: Arc::default(), heard: Arc::default() }
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    fn away(&self, away: bool) {
        self.away.store(away, Ordering::Relaxed);
    }
}

fn refused() -> Fault {
    Fault::new(FaultKind::BackendDown, "refused")
}

impl Connector for Fake {
    fn open(&self, events: Arc<dyn LinkEvents>) -> BoxFuture<Result<Arc<dyn Link>, Fault>> {
        let fake = self.clone();
        Box::pin(async move {
            if !fake.web && fake.away.load(Ordering::Relaxed) {
                return Err(refused());
            }
            Ok(Arc::new(FakeLink { fake, events }) as Arc<dyn Link>)
        })
    }

    fn carries_headers(&self) -> bool {
        self.web
    }

    fn is_process(&self) -> bool {
        false
    }

    fn kind(&self) -> &'static str {
        "fake"
    }
}

struct FakeLink {
    fake: Fake,
    events: Arc<dyn LinkEvents>,
}

impl Link for FakeLink {
    fn send(&self, message: ToBackend) -> Result<(), Fault> {
        let (fake, events) = (self.fake.clone(), Arc::clone(&self.events));
        tokio::spawn(async move {
            let Some(key) = message.key() else { return };
            if fake.away.load(Ordering::Relaxed) {
                return events.failed(key, refused());
            }
            fake.heard.lock().unwrap().push(message.method().to_string());
            if fake.dies.load(Ordering::Relaxed) {
                return events.failed(key, Fault::new(FaultKind::BackendDied, "cut"));
            }
            events.received(Bytes::from(result(key)), Some(key), Some(200));
        });
        Ok(())
    }

    fn close(&self) {}
}

#[derive(Debug, PartialEq, Eq)]
enum Event {
    Answer(u64),
    Failed(u64, FaultKind),
    Expired(u64),
    Asks,
    Told,
}

struct Recorder(mpsc::Sender<Event>);

impl LinkEvents for Recorder {
    fn user(&self) -> Option<signalbox_engine::BackendUser> {
        None
    }

    fn received(&self, _: Bytes, about: Option<u64>, _: Option<u16>) {
        let _ = self.0.try_send(Event::Answer(about.unwrap()));
    }

    fn failed(&self, key: u64, fault: Fault) {
        let _ = self.0.try_send(Event::Failed(key, fault.kind));
    }

    fn expired(&self, message: ToBackend) {
        let _ = self.0.try_send(Event::Expired(message.key().unwrap()));
    }

    fn asks(&self, message: Outbound) -> ToBackend {
        let _ = self.0.try_send(Event::Asks);
        message.leave_untold(0)
    }

    fn told(&self, _: &Bytes) {
        let _ = self.0.try_send(Event::Told);
    }

    fn lost(&self, _: String) {}
}

/// An address that is asked what it speaks before there is a link to it.
struct Probed(Fake);

impl Connector for Probed {
    fn open(&self, events: Arc<dyn LinkEvents>) -> BoxFuture<Result<Arc<dyn Link>, Fault>> {
        drop(events.asks(signalbox_engine::back::probe("{}")));
        events.told(&Bytes::from_static(b"{}"));
        self.0.open(events)
    }

    fn carries_headers(&self) -> bool {
        self.0.carries_headers()
    }

    fn is_process(&self) -> bool {
        self.0.is_process()
    }

    fn kind(&self) -> &'static str {
        self.0.kind()
    }
}

struct Scene {
    fakes: Vec<Fake>,
    connector: ManyConnector,
    link: Arc<dyn Link>,
    events: mpsc::Receiver<Event>,
}

impl Scene {
    async fn new(balance: Balance, count: usize) -> Self {
        let fakes: Vec<Fake> = (0..count).map(|_| Fake::new(true)).collect();
        let connector = connector(balance, &fakes);
        let (sender, events) = mpsc::channel(ROOM);
        let link = connector.open(Arc::new(Recorder(sender))).await.unwrap();
        Self { fakes, connector, link, events }
    }

    async fn ask(&mut self, message: ToBackend) -> Event {
        self.link.send(message).unwrap();
        self.events.recv().await.unwrap()
    }

    fn counts(&self) -> Vec<usize> {
        self.fakes.iter().map(|fake| fake.heard().len()).collect()
    }
}

fn spec(balance: Balance) -> ManySpec {
    ManySpec { name: "many".into(), balance, recovery: Duration::from_secs(30), retries: 2 }
}

fn connector(balance: Balance, fakes: &[Fake]) -> ManyConnector {
    let address = |(at, fake): (usize, &Fake)| Address {
        label: format!("host:{at}"),
        weight: u32::try_from(at).unwrap() + 1,
        connector: Arc::new(fake.clone()),
    };
    ManyConnector::new(spec(balance), fakes.iter().enumerate().map(address).collect())
}

/// A request of the new era.
fn modern(key: u64) -> ToBackend {
    message(key, "tools/call", Revision::LATEST)
}

/// Proves SO-15.
#[tokio::test(start_paused = true)]
async fn requests_of_the_new_era_are_spread() {
    for (balance, counts) in [
        (Balance::RoundRobin, [4, 4, 4]),
        (Balance::LeastConnections, [4, 4, 4]),
        (Balance::Weighted, [2, 4, 6]),
        (Balance::HealthyFirst, [12, 0, 0]),
    ] {
        let mut scene = Scene::new(balance, 3).await;
        for key in 1..=12 {
            assert_eq!(scene.ask(modern(key)).await, Event::Answer(key));
        }
        assert_eq!(scene.counts(), counts, "{balance:?}");
        assert!(scene.connector.addresses().iter().all(|one| one.busy == 0));
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_link_asks_before_it_is_there_is_passed_on() {
    let address = Address { label: "host:0".to_owned(), weight: 1, connector: Arc::new(Probed(Fake::new(true))) };
    let connector = ManyConnector::new(spec(Balance::RoundRobin), vec![address]);
    let (sender, mut events) = mpsc::channel(ROOM);
    let link = connector.open(Arc::new(Recorder(sender))).await.unwrap();
    link.send(modern(1)).unwrap();
    let mut seen = Vec::new();
    while seen.last() != Some(&Event::Answer(1)) {
        seen.push(events.recv().await.unwrap());
    }
    assert_eq!(seen, [Event::Asks, Event::Told, Event::Answer(1)]);
}

/// Sticky sessions.
/// Proves SO-15.
#[tokio::test(start_paused = true)]
async fn a_session_of_the_old_era_stays_at_its_address() {
    let mut scene = Scene::new(Balance::RoundRobin, 3).await;
    assert_eq!(scene.ask(initialize(1)).await, Event::Answer(1));
    for key in 2..=9 {
        assert_eq!(scene.ask(call(key)).await, Event::Answer(key));
    }
    assert_eq!(scene.counts(), [9, 0, 0]);
    scene.link.forget_session();
    assert_eq!(scene.ask(initialize(10)).await, Event::Answer(10));
    assert_eq!(scene.ask(call(11)).await, Event::Answer(11));
    assert_eq!(scene.counts(), [9, 2, 0]);
}

#[tokio::test(start_paused = true)]
async fn an_address_that_is_away_is_left_out_and_tried_again_later() {
    let mut scene = Scene::new(Balance::RoundRobin, 2).await;
    scene.fakes[0].away(true);
    for key in 1..=6 {
        assert_eq!(scene.ask(modern(key)).await, Event::Answer(key));
    }
    assert_eq!((scene.counts(), scene.connector.retries()), (vec![0, 6], 1), "it is asked once only");
    let told = scene.connector.addresses();
    assert_eq!((told[0].breaker, told[0].failed, told[1].breaker), ("open", 1, "closed"));
    scene.fakes[0].away(false);
    tokio::time::sleep(Duration::from_secs(31)).await;
    for key in 7..=10 {
        assert_eq!(scene.ask(modern(key)).await, Event::Answer(key));
    }
    assert!(scene.counts()[0] >= 2, "{:?}", scene.counts());
    assert_eq!(scene.connector.addresses()[0].breaker, "closed");
}

/// What an address may have processed goes nowhere else.
/// Proves NO-3.
#[tokio::test(start_paused = true)]
async fn a_request_that_an_address_took_is_not_given_to_another() {
    let mut scene = Scene::new(Balance::RoundRobin, 2).await;
    scene.fakes[0].dies.store(true, Ordering::Relaxed);
    assert_eq!(scene.ask(modern(1)).await, Event::Failed(1, FaultKind::BackendDied));
    assert_eq!(scene.counts(), [1, 0]);
    for key in 2..=5 {
        assert_eq!(scene.ask(modern(key)).await, Event::Answer(key));
    }
    assert_eq!(scene.counts(), [1, 4], "the address is left out");
}

#[tokio::test(start_paused = true)]
async fn when_all_are_away_all_are_tried_again_and_then_it_fails() {
    let mut scene = Scene::new(Balance::RoundRobin, 2).await;
    for fake in &scene.fakes {
        fake.away(true);
    }
    assert_eq!(scene.ask(modern(1)).await, Event::Failed(1, FaultKind::BackendDown));
    let failed: u64 = scene.connector.addresses().iter().map(|one| one.failed).sum();
    assert_eq!((failed, scene.connector.retries()), (6, 5), "three times each");
    scene.link.send(modern(2)).unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    for fake in &scene.fakes {
        fake.away(false);
    }
    assert_eq!(scene.events.recv().await, Some(Event::Answer(2)), "they came back in time");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_given_up_is_not_sent_again() {
    let mut scene = Scene::new(Balance::RoundRobin, 2).await;
    for fake in &scene.fakes {
        fake.away(true);
    }
    scene.link.send(modern(1)).unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    scene.link.abort(1);
    for fake in &scene.fakes {
        fake.away(false);
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(scene.counts(), [0, 0]);
    assert_eq!(scene.ask(modern(2)).await, Event::Answer(2));
}

/// The session of the old era is opened anew elsewhere: the runtime does that with what has expired.
#[tokio::test(start_paused = true)]
async fn a_session_whose_address_is_away_has_expired() {
    let mut scene = Scene::new(Balance::RoundRobin, 2).await;
    assert_eq!(scene.ask(initialize(1)).await, Event::Answer(1));
    scene.fakes[0].away(true);
    assert_eq!(scene.ask(call(2)).await, Event::Expired(2));
    scene.link.forget_session();
    assert_eq!(scene.ask(initialize(3)).await, Event::Answer(3));
    assert_eq!(scene.ask(call(2)).await, Event::Answer(2));
    assert_eq!(scene.fakes[1].heard(), ["initialize", "tools/call"]);
    scene.fakes[1].away(true);
    assert_eq!(scene.ask(call(4)).await, Event::Failed(4, FaultKind::BackendDown), "there is nowhere else");
}

/// Proves SO-15.
#[tokio::test(start_paused = true)]
async fn pipes_are_opened_in_turn_and_at_the_next_address_that_lets_us() {
    let fakes: Vec<Fake> = (0..3).map(|_| Fake::new(false)).collect();
    let connector = connector(Balance::RoundRobin, &fakes);
    fakes[1].away(true);
    let mut links = Vec::new();
    for _ in 0..4 {
        let (sender, _) = mpsc::channel(ROOM);
        links.push(connector.open(Arc::new(Recorder(sender))).await.unwrap());
    }
    let busy: Vec<usize> = connector.addresses().iter().map(|one| one.busy).collect();
    assert_eq!(busy, [2, 0, 2]);
    drop(links);
    assert!(connector.addresses().iter().all(|one| one.busy == 0));
    for fake in &fakes {
        fake.away(true);
    }
    let (sender, _) = mpsc::channel(ROOM);
    let none = connector.open(Arc::new(Recorder(sender))).await;
    assert_eq!(none.err().map(|fault| fault.kind), Some(FaultKind::BackendDown));
}
