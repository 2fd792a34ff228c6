//! Dialogues of a client, a browser and the server, with time and randomness in hand.

mod authorization_pages;
mod clients;
mod providers;
mod scene;
mod tokens;
mod users;

use crate::*;
use scene::*;
use serde_json::{Value, json};
use signalbox_oauth_client::form;
use std::net::IpAddr;
