//! Whole calls, from an agent's relay by way of Redis to a page's relay and back, while connections,
//! relays and Redis fail.

use super::*;
use crate::call::{CallEnd, RelayCall};
use crate::relay::Relay;
use crate::settings::{RelayLimits, RelaySettings};
use crate::worker::Worker;
use serde_json::Value;
use tokio::task::JoinHandle;

/// A relay at this Redis, in which a page may take this long for a call.
fn relay(server: &RedisServer, within: Duration) -> Arc<Relay> {
    let limits = RelayLimits { request_timeout: within, ..RelayLimits::default() };
    let address = RedisAddress::read(&server.url()).unwrap().with_timeout(Duration::from_secs(1));
    Relay::new(RelaySettings { limits, ..RelaySettings::default() }, Arc::new(RedisStore::at(address)))
}

fn call(relay: &Arc<Relay>, code: &Code) -> JoinHandle<CallEnd> {
    let (relay, code) = (Arc::clone(relay), code.clone());
    let arguments = crate::json_text::JsonText::empty_object();
    let within = relay.settings.limits.request_timeout;
    let call = RelayCall { code, tool: "t".to_owned(), arguments, idempotent: false, within };
    tokio::spawn(async move { call.run(&relay, |_| {}).await })
}

async fn end(call: JoinHandle<CallEnd>) -> CallEnd {
    timeout(PATIENCE, call).await.expect("no call hangs").unwrap()
}

/// The id of the next request that a worker is given, and whether it was given to one before. It looks when
/// it is told to.
async fn given(relay: &Arc<Relay>, worker: &mut Worker) -> (String, bool) {
    let mut events = until(async || relay.store.subscribe(&worker.code).await.ok()).await;
    loop {
        if let Some(first) = worker.due(relay).await.unwrap_or_default().first() {
            let request: Value = serde_json::from_str(first).unwrap();
            return (request["id"].as_str().unwrap().to_owned(), request["redelivered"].as_bool().unwrap());
        }
        next(&mut events).await;
    }
}

fn worker(code: &Code, stream: &str) -> Worker {
    Worker::new(code.clone(), "page", "journal", stream)
}

/// What stands under a session's key and is no session is told by the name that clients know.
/// Proves CO-3.
#[tokio::test]
async fn a_session_that_cannot_be_verified_is_told_so() {
    let Some(server) = RedisServer::start() else { return };
    let relay = relay(&server, PATIENCE);
    let code = relay.create(None).await.unwrap().record.code;
    assert!(relay.find(&code, &["here"]).await.is_ok());
    server.command(&format!("SET signalbox:relay:session:{} nonsense KEEPTTL", code.expose()));
    let refusal = relay.find(&code, &["here"]).await.unwrap_err();
    assert_eq!((refusal.name().0, refusal.name().1.as_u16()), ("session_validation_failed", 404));
}

/// The relay that has the page is killed, and another one goes on. The call runs once.
#[tokio::test]
async fn a_call_outlives_the_relay_that_had_its_page() {
    let Some(server) = RedisServer::start() else { return };
    let (agents, first) = (relay(&server, PATIENCE), relay(&server, PATIENCE));
    let code = first.create(None).await.unwrap().record.code;
    let calling = call(&agents, &code);
    let (id, again) = given(&first, &mut worker(&code, "s1")).await;
    assert!(!again);
    drop(first);
    let second = relay(&server, PATIENCE);
    assert_eq!(given(&second, &mut worker(&code, "s2")).await, (id.clone(), true), "the journal knows it");
    let now = unix_millis();
    assert_eq!(second.store.answer(&code, &id, result("1"), now).await, Ok(AnswerOutcome::Taken));
    assert_eq!(agents.store.answer(&code, &id, result("2"), now).await, Ok(AnswerOutcome::Duplicate));
    let ended = end(calling).await;
    assert!(
        matches!(&ended, CallEnd::Answered(answer) if matches!(&**answer, ToolAnswer::Result(one) if one.get() == "1"))
    );
}

#[tokio::test]
async fn a_call_gets_its_answer_although_the_connection_for_events_broke_meanwhile() {
    let Some(server) = RedisServer::start() else { return };
    let (agents, pages) = (relay(&server, PATIENCE), relay(&server, PATIENCE));
    let code = pages.create(None).await.unwrap().record.code;
    let calling = call(&agents, &code);
    let (id, _) = given(&pages, &mut worker(&code, "s1")).await;
    server.command("CLIENT KILL TYPE pubsub");
    let answered = pages.store.answer(&code, &id, result("1"), unix_millis()).await;
    assert_eq!(answered, Ok(AnswerOutcome::Taken));
    assert!(matches!(end(calling).await, CallEnd::Answered(_)));
}

/// Redis restarted in mid-call.
#[tokio::test]
async fn a_call_ends_as_expired_when_redis_comes_back_empty() {
    let Some(mut server) = RedisServer::start() else { return };
    let (agents, pages) = (relay(&server, PATIENCE), relay(&server, PATIENCE));
    let code = pages.create(None).await.unwrap().record.code;
    let calling = call(&agents, &code);
    given(&pages, &mut worker(&code, "s1")).await;
    server.stop();
    server.start_again();
    assert!(matches!(end(calling).await, CallEnd::Expired));
    let ended = until(async || match end(call(&agents, &code)).await {
        CallEnd::Failed(_) => None,
        ended => Some(ended),
    });
    assert!(matches!(ended.await, CallEnd::Expired), "and so does the next, once Redis is used again");
    assert!(agents.create(None).await.is_ok(), "the relay goes on");
}

#[tokio::test]
async fn a_call_ends_in_time_when_redis_hangs() {
    let Some(server) = RedisServer::start() else { return };
    let agents = relay(&server, Duration::from_secs(2));
    let code = agents.create(None).await.unwrap().record.code;
    let calling = call(&agents, &code);
    given(&agents, &mut worker(&code, "s1")).await;
    server.freeze();
    let ended = end(calling).await;
    assert!(matches!(&ended, CallEnd::Failed(why) if &*why.kind == "timeout"), "{ended:?}");
    let refused = end(call(&agents, &code)).await;
    assert!(matches!(&refused, CallEnd::Failed(why) if &*why.kind == "internal_error"), "{refused:?}");
    assert!(!format!("{ended:?} {refused:?}").contains(code.expose()));
    server.thaw();
}
