//! `signalbox watch`: live traffic, on a terminal or as lines of JSON.

use super::editor;
use super::processes::{self, Process};
use crate::cli::{Global, WatchArgs};
use crate::failure::Failure;
use crate::output;
use crate::watch::keyboard::Keyboard;
use crate::watch::screen::Screen;
use crate::watch::{WatchAction, WatchEvent, WatchView, draw};
use http::Method;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use signalbox_assembly::signals::Signals;
use signalbox_control::api::routes::{BREAKPOINTS, HOLDS, LIVE};
use signalbox_control::control_socket::LineStream;
use signalbox_control::terminal::OutputStyle;
use signalbox_tape::pretty;
use std::io::{IsTerminal as _, stdin, stdout};
use std::process::ExitCode;
use std::time::Duration;

/// Polling interval for held messages.
const LOOK: Duration = Duration::from_millis(500);
/// Minimum time between two frames. Changes within it are drawn together.
const FRAME: Duration = Duration::from_millis(50);

/// Watches until the user quits, a signal arrives or the process ends.
pub(super) async fn run(global: &Global, args: &WatchArgs) -> Result<ExitCode, Failure> {
    let process = processes::one(global, &args.which)?;
    let lines = LineStream::open(&process.address, LIVE).await.map_err(|error| process.failure(error))?;
    let mut signals = Signals::listen().map_err(Failure::Start)?;
    if global.json || !stdout().is_terminal() || !stdin().is_terminal() {
        return tokio::select! {
            done = copy(&process, lines) => done,
            _ = signals.next() => Ok(ExitCode::SUCCESS),
        };
    }
    let mut watch = Watch {
        view: WatchView::new(&format!("signalbox watch  pid {}", process.pid), OutputStyle::of_stdout().colour),
        screen: Screen::open().map_err(Failure::Output)?,
        keyboard: Keyboard::open().map_err(Failure::Start)?,
        process,
        draft: None,
    };
    tokio::select! {
        done = watch.until_left(lines) => done.map(|()| ExitCode::SUCCESS),
        _ = signals.next() => Ok(ExitCode::SUCCESS),
    }
}

/// Prints each line of the feed as it arrives.
async fn copy(process: &Process, mut lines: LineStream) -> Result<ExitCode, Failure> {
    while let Some(line) = lines.next().await.map_err(|error| process.failure(error))? {
        if !output::more(true, &format!("{}\n", String::from_utf8_lossy(&line)))? {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}

struct Watch {
    view: WatchView,
    screen: Screen,
    keyboard: Keyboard,
    process: Process,
    /// Edited text that was rejected, with the id of its message. The editor opens it again.
    draft: Option<(u64, String)>,
}

impl Watch {
    async fn until_left(&mut self, lines: LineStream) -> Result<(), Failure> {
        let mut lines = Some(lines);
        let mut looks = tokio::time::interval(LOOK);
        let mut frames = tokio::time::interval(FRAME);
        frames.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut changed = true;
        loop {
            let event = tokio::select! {
                key = self.keyboard.next() => match key {
                    Some(Some(key)) => Some(WatchEvent::Key(key)),
                    Some(None) => None,
                    // The terminal is gone, so there is nothing left to draw on.
                    None => return Ok(()),
                },
                line = next(&mut lines) => Some(line),
                _ = looks.tick(), if lines.is_some() => self.look().await,
                _ = frames.tick(), if changed => {
                    self.screen.draw(|frame| draw::draw(&self.view, frame)).map_err(Failure::Output)?;
                    changed = false;
                    continue;
                }
            };
            changed = true;
            if let Some(WatchEvent::Ended(_)) = event {
                lines = None;
                self.view.apply(WatchEvent::Holds(Vec::new()));
            }
            match event.and_then(|event| self.view.apply(event)) {
                Some(WatchAction::Quit) => return Ok(()),
                Some(action) => self.act(action).await?,
                None => {}
            }
        }
    }

    async fn look(&self) -> Option<WatchEvent> {
        match self.process.send(Method::GET, HOLDS, None).await {
            Ok(Value::Array(holds)) => Some(WatchEvent::Holds(holds)),
            _ => None,
        }
    }

    /// Performs the action, and reports the result in the view.
    async fn act(&mut self, action: WatchAction) -> Result<(), Failure> {
        let said = match action {
            WatchAction::Quit => return Ok(()),
            WatchAction::Release(id) => self.settle(id, "release", String::new()).await,
            WatchAction::Answer(id, text) => {
                let result = json!({"content": [{"type": "text", "text": text}]});
                self.settle(id, "answer", format!(r#","result":{result}"#)).await
            }
            WatchAction::Refuse(id, text) if text.is_empty() => self.settle(id, "refuse", String::new()).await,
            WatchAction::Refuse(id, text) => self.settle(id, "refuse", format!(r#","reason":{}"#, json!(text))).await,
            WatchAction::Edit(id) => self.edit(id).await?,
            WatchAction::HoldNext => {
                self.tell(
                    Method::POST,
                    BREAKPOINTS,
                    Some(r#"{"next":1}"#.to_owned()),
                    "the next tool call will be held",
                )
                .await
            }
            WatchAction::Clear => self.tell(Method::DELETE, BREAKPOINTS, None, "breakpoints cleared").await,
        };
        self.view.apply(WatchEvent::Say(said));
        if let Some(holds) = self.look().await {
            self.view.apply(holds);
        }
        Ok(())
    }

    async fn settle(&self, id: u64, what: &str, more: String) -> String {
        let body = format!(r#"{{"by":{}{more}}}"#, json!(processes::user()));
        self.tell(Method::POST, &format!("{HOLDS}/{id}/{what}"), Some(body), &format!("{what} {id}: done")).await
    }

    async fn tell(&self, method: Method, path: &str, body: Option<String>, done: &str) -> String {
        self.process.send(method, path, body).await.map_or_else(|error| error.to_string(), |_| done.to_owned())
    }

    async fn edit(&mut self, id: u64) -> Result<String, Failure> {
        let held = match self.process.send(Method::GET, &format!("{HOLDS}/{id}"), None).await {
            Ok(held) => held,
            Err(error) => return Ok(error.to_string()),
        };
        let opened = match self.draft.take() {
            Some((of, text)) if of == id => text,
            _ => pretty(held["text"].as_str().unwrap_or_default()),
        };
        let edited = {
            let _aside = self.keyboard.aside();
            self.screen.leave_for(|| tokio::task::block_in_place(|| editor::edit(&opened))).map_err(Failure::Output)?
        };
        let text = match edited {
            Err(error) => return Ok(error.to_string()),
            Ok(None) => return Ok(format!("nothing changed; {id} stays held")),
            Ok(Some(text)) => text,
        };
        let sent = match serde_json::from_str::<Box<RawValue>>(&text) {
            Ok(message) => {
                let body = format!(r#"{{"by":{},"message":{message}}}"#, json!(processes::user()));
                let sent = self.process.send(Method::POST, &format!("{HOLDS}/{id}/edit"), Some(body)).await;
                sent.map_err(|error| error.to_string())
            }
            Err(error) => Err(format!("the saved text is not valid JSON: {error}")),
        };
        Ok(match sent {
            Ok(_) => format!("edit {id}: done"),
            Err(why) => {
                self.draft = Some((id, text));
                format!("{why}; {id} stays held, and e opens your edit again")
            }
        })
    }
}

/// Returns the next fact, or the end of the feed. Never returns once the feed has ended.
async fn next(lines: &mut Option<LineStream>) -> WatchEvent {
    let Some(stream) = lines else { return std::future::pending().await };
    match stream.next().await {
        Ok(Some(line)) => WatchEvent::Fact(serde_json::from_slice(&line).unwrap_or_default()),
        Ok(None) => WatchEvent::Ended("the process has ended; q quits".to_owned()),
        Err(error) => WatchEvent::Ended(format!("the feed has stopped: {error}; q quits")),
    }
}
