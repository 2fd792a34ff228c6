//! Clients of every kind, calling tools all the time.

mod piped;
mod web;
mod wire;

use std::sync::Arc;

use tokio::task::JoinSet;

use super::dice::Dice;
use super::world::{StormCaller, World};
use piped::piped;
use web::web;
use wire::Means;

/// How many of each kind there are.
const EACH: &[(&str, Means, bool, usize)] = &[
    ("http-old", Means::Http, false, 4),
    ("http-new", Means::Http, true, 4),
    ("sse-old", Means::Sse, false, 2),
    ("ws-old", Means::WebSocket, false, 2),
    ("ws-new", Means::WebSocket, true, 2),
    ("tcp-old", Means::Tcp, false, 2),
    ("tcp-new", Means::Tcp, true, 1),
    ("stdio-old", Means::Stdio, false, 1),
];

/// Sets all of them off; they leave when the world says so.
pub fn set_off(world: &Arc<World>, dice: &mut Dice) -> JoinSet<()> {
    let mut clients = JoinSet::new();
    for (kind, means, modern, count) in EACH {
        for _ in 0..*count {
            let caller = StormCaller::new(world, kind, *modern, dice.fork());
            match means {
                Means::Http => drop(clients.spawn(web(caller))),
                means => drop(clients.spawn(piped(caller, *means))),
            }
        }
    }
    clients
}
