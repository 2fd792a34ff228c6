//! One schedule: a gateway with backends, clients, interceptors and a sink of facts, and events that dice choose. At
//! its end everything is let go, and nothing may be missing, doubled, out of order or left behind.

use crate::clients::Clients;
use crate::dice::Dice;
use crate::driven::{Driven, Manner, Reply, Shape};
use crate::notes::Notes;
use crate::whims::{Web, Whims};
use bytes::Bytes;
use serde_json::Value;
use signalbox_engine::back::Wish;
use signalbox_engine::chain::HoldAnswer;
use signalbox_engine::{Chain, FactSink};
use signalbox_runtime::{Backend, BackendSpec, FailureRules, Gateway, GatewayParts, Settings};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

const EVENTS: usize = 80;
/// How long everything may take to come to its end once nobody disturbs it any more, in rounds of [`ROUND`].
const ROUNDS: usize = 300;
const ROUND: Duration = Duration::from_millis(500);

/// What a schedule came to.
pub struct Ended {
    /// How often exchanges ended in which way, and how many messages went to and from backends.
    pub counts: BTreeMap<&'static str, usize>,
    /// What was wrong.
    pub faults: Vec<String>,
}

struct World {
    gateway: Arc<Gateway>,
    backends: Vec<(Arc<Backend>, Driven)>,
    /// Backends that were replaced, and may still work.
    retired: Vec<Driven>,
    clients: Clients,
    whims: Vec<Arc<Whims>>,
    notes: Arc<Notes>,
    dice: Dice,
}

/// Runs the schedule of this seed. `hire` is told the gateway whose worker this thread is.
pub async fn run(seed: u64, hire: impl FnOnce(&Arc<Gateway>)) -> Ended {
    let mut world = World::new(seed);
    if world.dice.chance(50) {
        hire(&world.gateway);
    }
    for _ in 0..EVENTS {
        world.event();
        world.pass().await;
    }
    world.end().await
}

fn settings(dice: &mut Dice) -> Settings {
    Settings {
        first_list_wait: Duration::from_secs(3),
        drain: Duration::from_secs(2),
        max_in_flight: dice.pick(&[4, 64]),
        session_timeout: Duration::from_secs(60),
        max_streams: 16,
        park_timeout: Duration::from_secs(20),
        ..Settings::default()
    }
}

fn backend(name: &str, dice: &mut Dice) -> (Arc<Backend>, Driven) {
    let (shape, modern) = (dice.pick(&[Shape::Pipe, Shape::Web]), dice.chance(40));
    let driven = Driven::new(shape, modern, Manner::Driven);
    let wish = match modern {
        _ if dice.chance(30) => Wish::Auto,
        true => Wish::Modern,
        false => Wish::Legacy,
    };
    let spec = BackendSpec {
        timeout: Duration::from_secs(20),
        start_timeout: Duration::from_secs(8),
        max_children: dice.pick(&[2, 8]),
        wish,
        strict: None,
        failing: FailureRules { max_queue: dice.pick(&[2, 64]), ..FailureRules::default() },
        lifetime: signalbox_runtime::Lifetime::default(),
        questions: signalbox_runtime::QuestionTime::default(),
        source: 0,
        allows: Box::new(|_| true),
    };
    (Backend::new(name, Arc::new(driven.clone()), spec), driven)
}

impl World {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let notes = Arc::new(Notes::new(dice.seed(), dice.chance(25)));
        let mood = dice.pick(&[0, 5, 25]);
        let whims: Vec<Arc<Whims>> =
            ["first", "second"].into_iter().map(|name| Arc::new(Whims::new(name, dice.seed(), mood))).collect();
        let backends: Vec<_> = (0..=dice.below(3)).map(|number| backend(&format!("b{number}"), &mut dice)).collect();
        let gateway = Gateway::new(GatewayParts {
            chain: Chain::new(whims.iter().map(|whim| Arc::clone(whim) as _).collect()),
            facts: vec![Arc::clone(&notes) as Arc<dyn FactSink>],
            post: Some(Arc::new(Web(Mutex::new(Dice::new(dice.seed()))))),
            ..GatewayParts::unguarded(
                settings(&mut dice),
                backends.iter().map(|(backend, _)| Arc::clone(backend)).collect(),
            )
            .unwrap()
        })
        .unwrap();
        gateway.start();
        let clients = Clients::new(&gateway);
        Self { gateway, backends, retired: Vec::new(), clients, whims, notes, dice }
    }

    /// Something happens.
    fn event(&mut self) {
        let dice = &mut self.dice;
        match dice.below(100) {
            0..8 => self.clients.arrive(dice),
            8..26 => self.clients.speak(dice),
            26..38 => self.clients.call(dice),
            38..43 => self.clients.cancel(dice),
            43..46 => self.clients.drop_stream(dice),
            46..48 => self.clients.leave(dice),
            48..54 => self.clients.answer(dice),
            54..60 => self.clients.read(),
            60..66 => self.settle_one(),
            66..70 => self.reload(),
            _ => self.backend_acts(),
        }
    }

    fn backend_acts(&mut self) {
        let all: Vec<&Driven> = self.backends.iter().map(|(_, driven)| driven).chain(&self.retired).collect();
        if all.is_empty() {
            return;
        }
        let driven = all[self.dice.below(all.len())].clone();
        let dice = &mut self.dice;
        match dice.below(60) {
            0..28 => {
                let reply = dice.pick(&[
                    Reply::Result,
                    Reply::Result,
                    Reply::Result,
                    Reply::ToolError,
                    Reply::Error,
                    Reply::Twice,
                    Reply::Garbage,
                    Reply::Questions,
                    Reply::Failure,
                    Reply::Expiry,
                ]);
                driven.answer(dice, reply);
            }
            28..31 => driven.answer_again(dice),
            31..35 => driven.progress(dice),
            35..37 => driven.log(dice),
            37..43 => driven.ask(dice),
            43..47 => driven.change(dice),
            47..50 => {
                let links = driven.open_links();
                if !links.is_empty() {
                    driven.kill(dice.pick(&links));
                }
            }
            50..53 => driven.set_silent(dice.chance(50)),
            53..55 => driven.set_shut(dice.chance(50)),
            55..57 => driven.set_full(dice.chance(40)),
            _ => self.notes.set_failing(dice.pick(&[0, 0, 30])),
        }
    }

    /// A person decides about a message that is held.
    fn settle_one(&mut self) {
        let held = self.gateway.holds.list();
        if held.is_empty() {
            return;
        }
        let held = &held[self.dice.below(held.len())];
        let by = Some("ada".to_owned());
        let answer = match self.dice.below(5) {
            0 => HoldAnswer::Refused { by, reason: "not today".to_owned() },
            1 => HoldAnswer::Result { by, result: Bytes::from_static(br#"{"content":[]}"#) },
            2 => {
                let message: Value = serde_json::from_slice(&held.held.message).unwrap();
                HoldAnswer::Edited { by, message: Bytes::from(format!(" {message}")) }
            }
            _ => HoldAnswer::GoOn { by },
        };
        // Its time may be over in this very moment.
        let _ = self.gateway.holds.settle(held.id, answer);
    }

    /// Another configuration: a backend more, one less, one in the place of another, other bounds or other rules.
    fn reload(&mut self) {
        let dice = &mut self.dice;
        match dice.below(6) {
            0 => {
                self.gateway.set_settings(settings(dice));
                let mood = dice.pick(&[0, 5, 25]);
                self.whims.iter().for_each(|whim| whim.set_mood(mood));
            }
            1 if self.backends.len() < 4 => {
                let taken = |name: &str| self.backends.iter().any(|(backend, _)| &*backend.name == name);
                let free = (0..4).map(|number| format!("b{number}")).find(|name| !taken(name));
                let fresh = backend(&free.unwrap_or_default(), dice);
                self.backends.push(fresh);
            }
            2 if !self.backends.is_empty() => {
                let gone = self.backends.remove(dice.below(self.backends.len()));
                self.retired.push(gone.1);
            }
            3 => self.backends.reverse(),
            _ if !self.backends.is_empty() => {
                let index = dice.below(self.backends.len());
                let successor = backend(&self.backends[index].0.name, dice);
                let before = std::mem::replace(&mut self.backends[index], successor);
                self.retired.push(before.1);
            }
            _ => {}
        }
        self.gateway.replace(self.backends.iter().map(|(backend, _)| Arc::clone(backend)).collect());
    }

    /// Some time passes: mostly next to none, seldom enough for every time-out.
    async fn pass(&mut self) {
        match self.dice.below(20) {
            0..9 => {
                for _ in 0..self.dice.below(6) {
                    tokio::task::yield_now().await;
                }
            }
            9..17 => tokio::time::sleep(self.dice.millis(0..40)).await,
            17 | 18 => tokio::time::sleep(self.dice.millis(100..2_000)).await,
            _ => tokio::time::sleep(self.dice.millis(2_000..30_000)).await,
        }
    }

    /// Everybody does what is still to be done, nobody disturbs it, and all is looked at.
    async fn end(mut self) -> Ended {
        let mut faults = Vec::new();
        self.whims.iter().for_each(|whim| whim.set_mood(0));
        self.notes.set_failing(0);
        let all: Vec<Driven> =
            self.backends.iter().map(|(_, driven)| driven.clone()).chain(self.retired.drain(..)).collect();
        for driven in &all {
            driven.set_silent(false);
            driven.set_shut(false);
            driven.set_full(false);
        }
        for _ in 0..ROUNDS {
            self.clear(&all);
            tokio::time::sleep(ROUND).await;
            self.clients.read();
            if self.clients.unanswered() == 0 && all.iter().all(|driven| driven.waiting() == 0) {
                break;
            }
        }
        for _ in 0..8 {
            self.clear(&all);
            tokio::time::sleep(ROUND).await;
        }
        self.clients.read();
        faults.extend(self.clients.verdict());
        let in_flight = self.clients.in_flight();
        if in_flight > 0 {
            faults.push(format!("{in_flight} requests are in flight though every one was answered or cancelled"));
        }
        self.clients.leave_all();
        self.rest(&all).await;
        self.gateway.settle();
        faults.extend(self.left_behind());
        self.gateway.shut_down(Duration::from_secs(5)).await;
        // What asks a backend again after a while sees then that there is none.
        tokio::time::sleep(ROUND).await;
        tokio::time::advance(Duration::from_secs(120)).await;
        tokio::time::sleep(ROUND).await;
        self.gateway.settle();
        let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
        if tasks != 1 {
            faults.push(format!("{tasks} tasks behind the end, where only the gateway's clock may run"));
        }
        for driven in &all {
            let links = driven.open_links();
            if !links.is_empty() {
                faults.push(format!("connections {links:?} are open behind the end"));
            }
        }
        faults.extend(self.notes.faults(true));
        let mut counts = self.notes.counts();
        counts.insert("questions to clients", self.clients.asked);
        counts.insert("rounds", self.clients.rounds_begun);
        Ended { counts, faults }
    }

    /// Whatever waits for a person, a backend or a client gets what it waits for.
    fn clear(&mut self, all: &[Driven]) {
        for held in self.gateway.holds.list() {
            let _ = self.gateway.holds.settle(held.id, HoldAnswer::GoOn { by: None });
        }
        for driven in all {
            while driven.waiting() > 0 {
                driven.answer(&mut self.dice, Reply::Result);
            }
        }
        self.clients.answer(&mut self.dice);
    }

    /// Nobody is there any more, for longer than anything is kept.
    async fn rest(&mut self, all: &[Driven]) {
        for _ in 0..16 {
            tokio::time::advance(Duration::from_secs(30)).await;
            self.clear(all);
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// What is still there though nobody is.
    fn left_behind(&self) -> Vec<String> {
        let mut faults: Vec<String> =
            self.gateway.leftovers().into_iter().map(|(what, count)| format!("left behind: {count} {what}")).collect();
        let alive = self.clients.sessions.iter().filter_map(Weak::upgrade);
        faults.extend(alive.map(|session| {
            format!("left behind: session {} ({:?}, {:?})", session.key, session.mode(), session.calls())
        }));
        faults
    }
}
