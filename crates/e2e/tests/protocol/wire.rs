//! Wire equals tape: every message that the strict client and server sent or received is on the tape, and nothing else
//! is.
//!
//! `MCP_TEST_WIRE=all` runs every cell of the matrix;
//! `MCP_TEST_WIRE="client=2026-07-28 server=2025-06-18 front=Http back=Stdio"` (any of them) runs only such cells.
//! Without it every pair of revisions meets once, over all transports in turn.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a failed step is a failed test, and says what was found"
)]

mod tape;
mod witnesses;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use signalbox_testkit::matrix::{BackTransport, FrontTransport, cells};
use signalbox_testkit::revision::Revision;
use signalbox_testkit::wire_tape::Point;
use signalbox_testkit::wire_tape::compare::compare;
use signalbox_testkit::wire_tape::decisions::{self, Judged, undecided};
use signalbox_testkit::wire_tape::finding::{Finding, summary};
use signalbox_testkit::wire_tape::order::order;
use signalbox_testkit::wire_tape::refusing::{self, Refused, passed};
use signalbox_testkit::wire_tape::scene::{MeetingCell, Met, meet};
use signalbox_testkit::wire_tape::witness::seen;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// How many cells run at the same time.
const AT_ONCE: usize = 4;

/// What the gateway answers itself, or asks on its own behalf, and no rule is asked about.
const OWN: &[&str] = &["initialize", "server/discover", "ping", "logging/setLevel"];
/// The same, with what the gateway asks for itself: lists, and to be told when they change.
const OWN_REQUESTS: &[&str] = &[
    "initialize",
    "server/discover",
    "ping",
    "logging/setLevel",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "subscriptions/listen",
];
/// What the gateway answers itself, about which rules are asked that name it.
const HERE: &[&str] = &["initialize", "server/discover", "ping", "logging/setLevel", "subscriptions/listen"];
/// Notifications that no rule is asked about, or that none can refuse.
const OWN_NOTIFICATIONS: &[&str] = &[
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/subscriptions/acknowledged",
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
];

/// What is judged, and in which phase.
const JUDGED: &[Judged] = &[
    Judged { phase: "request", word: "request", point: Point::ClientIn, kind: "request", spared: HERE },
    Judged { phase: "response", word: "response", point: Point::ClientOut, kind: "result", spared: OWN },
    here("request initialize"),
    here("request server/discover"),
    here("request logging/setLevel"),
    here("request subscriptions/listen"),
    given("result of initialize"),
    given("result of server/discover"),
    given("result of logging/setLevel"),
    Judged { phase: "question", word: "question", point: Point::ClientOut, kind: "request", spared: &[] },
    Judged {
        phase: "notification",
        word: "notification from client",
        point: Point::ClientIn,
        kind: "notification",
        spared: OWN_NOTIFICATIONS,
    },
    Judged {
        phase: "notification",
        word: "notification from backend",
        point: Point::ClientOut,
        kind: "notification",
        spared: OWN_NOTIFICATIONS,
    },
];

/// A request that the gateway answers itself.
const fn here(kind: &'static str) -> Judged {
    Judged { phase: "gateway_request", word: "gateway request", point: Point::ClientIn, kind, spared: &[] }
}

/// Its answer.
const fn given(kind: &'static str) -> Judged {
    Judged { phase: "gateway_response", word: "gateway response", point: Point::ClientOut, kind, spared: &[] }
}

/// What may be refused, by the phase of the rule that does.
const REFUSED: &[Refused] = &[
    Refused { phase: "request", point: Point::BackendOut, kind: "request", spared: OWN_REQUESTS },
    Refused { phase: "request", point: Point::ClientOut, kind: "result", spared: OWN },
    Refused {
        phase: "request",
        point: Point::ClientOut,
        kind: "notification notifications/subscriptions/acknowledged",
        spared: &[],
    },
    Refused { phase: "response", point: Point::ClientOut, kind: "result", spared: OWN },
    Refused { phase: "question", point: Point::ClientOut, kind: "request", spared: &[] },
    Refused { phase: "answer", point: Point::BackendOut, kind: "result", spared: &["ping"] },
    Refused { phase: "notification", point: Point::ClientOut, kind: "notification", spared: OWN_NOTIFICATIONS },
    Refused { phase: "notification", point: Point::BackendOut, kind: "notification", spared: OWN_NOTIFICATIONS },
];

/// All cells, or a part of them in which every pair of revisions meets and every transport is used.
fn chosen() -> Vec<MeetingCell> {
    let all: Vec<MeetingCell> =
        cells().into_iter().map(|(client, front, server, back)| MeetingCell { client, front, server, back }).collect();
    match std::env::var("MCP_TEST_WIRE") {
        Ok(word) if word == "all" => all,
        Ok(words) => named(all, &words),
        Err(_) => {
            let part = every_pair(&all);
            let fronts: HashSet<FrontTransport> = part.iter().map(|cell| cell.front).collect();
            let backs: HashSet<BackTransport> = part.iter().map(|cell| cell.back).collect();
            assert_eq!(
                (part.len(), fronts.len(), backs.len()),
                (25, FrontTransport::ALL.len(), BackTransport::ALL.len())
            );
            part
        }
    }
}

fn named(mut all: Vec<MeetingCell>, words: &str) -> Vec<MeetingCell> {
    let words: HashMap<&str, &str> = words.split_whitespace().filter_map(|word| word.split_once('=')).collect();
    let is = |key: &str, value: String| words.get(key).is_none_or(|wanted| *wanted == value);
    all.retain(|cell| {
        is("client", cell.client.to_string())
            && is("front", format!("{:?}", cell.front))
            && is("server", cell.server.to_string())
            && is("back", format!("{:?}", cell.back))
    });
    assert!(!all.is_empty(), "no cell fits {words:?}");
    all
}

/// One cell for each pair of revisions, the transports in turn.
fn every_pair(all: &[MeetingCell]) -> Vec<MeetingCell> {
    let pairs = Revision::ALL.into_iter().flat_map(|client| Revision::ALL.map(|server| (client, server)));
    let one = |(place, (client, server)): (usize, (Revision, Revision))| {
        let fits: Vec<&MeetingCell> =
            all.iter().filter(|cell| (cell.client, cell.server) == (client, server)).collect();
        *fits[place * 3 % fits.len()]
    };
    pairs.enumerate().map(one).collect()
}

/// Runs all, some at the same time, and says what was found in each.
async fn run<F>(all: Vec<(String, F)>) -> Vec<(String, Vec<Finding>)>
where
    F: Future<Output = anyhow::Result<Vec<Finding>>> + Send + 'static,
{
    let (places, mut running) = (Arc::new(Semaphore::new(AT_ONCE)), JoinSet::new());
    for (name, meeting) in all {
        let places = places.clone();
        running.spawn(async move {
            let _place = places.acquire().await.unwrap();
            let findings = meeting.await;
            (name, findings.unwrap_or_else(|error| vec![Finding::meeting("no meeting", format!("{error:#}"))]))
        });
    }
    let mut found = running.join_all().await;
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    found
}

/// What differs between the wire and the tape.
fn held_against(met: &Met) -> anyhow::Result<(Vec<Finding>, signalbox_testkit::wire_tape::ReadTape)> {
    let (wire, tape) = (seen(&met.client, &met.server), tape::read(&met.data_dir())?);
    let mut findings = compare(&wire, &tape, met.ended);
    findings.extend(order(&wire, &tape));
    Ok((findings, tape))
}

fn judge(found: &[(String, Vec<Finding>)]) {
    let summary = summary(found);
    if let Ok(file) = std::env::var("MCP_TEST_WIRE_REPORT") {
        std::fs::write(file, &summary).unwrap();
    }
    let wrong: Vec<&str> = found.iter().filter(|(_, all)| !all.is_empty()).map(|(name, _)| name.as_str()).collect();
    eprintln!("{} of {} cells have findings", wrong.len(), found.len());
    assert!(wrong.is_empty(), "\n{summary}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_on_the_wire_is_on_the_tape_and_nothing_else_is() {
    let cells = chosen().into_iter().map(|cell| {
        let meeting = async move {
            let met = meet(cell, &decisions::rules(JUDGED), false).await?;
            let (mut findings, tape) = held_against(&met)?;
            findings.extend(met.troubles.iter().map(|(step, why)| Finding::meeting(step, why)));
            findings.extend(undecided(&tape, JUDGED));
            Ok(findings)
        };
        (cell.name(), meeting)
    });
    judge(&run(cells.collect()).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_may_be_refused_passes_a_chain_that_refuses_it() {
    let mut meetings = Vec::new();
    for phase in REFUSED.iter().map(|refused| refused.phase).collect::<HashSet<_>>() {
        for (client, front) in [(Revision::R4, FrontTransport::Http), (Revision::R5, FrontTransport::Http)] {
            for (server, back) in [(Revision::R4, BackTransport::Stdio), (Revision::R5, BackTransport::Stdio)] {
                let cell = MeetingCell { client, front, server, back };
                let meeting = async move {
                    let met = meet(cell, &refusing::rule(phase), true).await?;
                    let (mut findings, _) = held_against(&met)?;
                    let wire = seen(&met.client, &met.server);
                    for refused in REFUSED.iter().filter(|refused| refused.phase == phase) {
                        findings.extend(passed(&wire, refused));
                    }
                    Ok(findings)
                };
                meetings.push((format!("{phase} {}", cell.name()), meeting));
            }
        }
    }
    judge(&run(meetings).await);
}
