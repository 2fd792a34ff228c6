//! Terminal view of a controlled run: reads keys, draws frames.

use super::super::editor;
use crate::failure::Failure;
use crate::replay_view::{ReplayView, ReplayViewAction, draw};
use crate::watch::keyboard::Keyboard;
use crate::watch::screen::Screen;
use serde_json::{Value, json};
use signalbox_replay::run::control::{ControlError, State, When};
use signalbox_replay::run::{ReplayControl, ReplayHandle};
use signalbox_tape::pretty;
use std::sync::Arc;
use std::time::Duration;

/// Minimum time between two frames. Changes within it are drawn together.
const FRAME: Duration = Duration::from_millis(50);

/// Terminal session that controls a run.
pub(super) struct Interactive {
    view: ReplayView,
    screen: Screen,
    keyboard: Keyboard,
    run: Arc<ReplayHandle>,
    /// Edited text that was not valid JSON. The editor opens it again.
    draft: Option<String>,
}

impl Interactive {
    pub(super) fn new(title: &str, colour: bool, screen: Screen, keyboard: Keyboard, run: &Arc<ReplayHandle>) -> Self {
        Self { view: ReplayView::new(title, colour), screen, keyboard, run: Arc::clone(run), draft: None }
    }

    /// Runs until the user quits or the run is stopped.
    pub(super) async fn until_left(mut self) -> Result<(), Failure> {
        let mut news = self.run.news();
        let mut frames = tokio::time::interval(FRAME);
        frames.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut changed = true;
        while self.run.look(ReplayControl::state) != State::Stopped {
            tokio::select! {
                key = self.keyboard.next() => {
                    // The terminal is gone, so there is nothing left to draw on.
                    let Some(key) = key else { return Ok(()) };
                    changed = true;
                    let action = key.and_then(|key| self.run.look(|run| self.view.key(key, run)));
                    match action {
                        Some(ReplayViewAction::Quit) => return Ok(()),
                        Some(action) => self.act(action)?,
                        None => {}
                    }
                }
                _ = news.changed() => changed = true,
                _ = frames.tick(), if changed => {
                    let (view, screen) = (&self.view, &mut self.screen);
                    let drawn = self.run.look(|run| screen.draw(|frame| draw::draw(view, run, frame)));
                    drawn.map_err(Failure::Output)?;
                    changed = false;
                }
            }
        }
        Ok(())
    }

    /// Performs the action, and reports the result in the view.
    fn act(&mut self, action: ReplayViewAction) -> Result<(), Failure> {
        let done = match action {
            ReplayViewAction::Quit => Ok(None),
            ReplayViewAction::Play => self.run.act(ReplayControl::play).map(|()| None),
            ReplayViewAction::Pause => self.run.act(ReplayControl::pause).map(|()| None),
            ReplayViewAction::Step => self.run.act(ReplayControl::step).map(|()| None),
            ReplayViewAction::Seek(place) => {
                self.run.act(|run| run.seek(place)).map(|()| Some(format!("call {place} is next")))
            }
            ReplayViewAction::Break(place) => {
                let set = self.run.act(|run| run.set_breakpoint(When::Call(place)));
                set.map(|id| Some(format!("breakpoint {id}: call {place}")))
            }
            ReplayViewAction::Clear(id) => {
                self.run.act(|run| run.clear_breakpoint(id)).map(|()| Some(format!("breakpoint {id} cleared")))
            }
            ReplayViewAction::Speed(speed) => self.run.act(|run| run.set_speed(speed)).map(|()| None),
            ReplayViewAction::Edit => return self.edit(),
            ReplayViewAction::Inject => return self.inject(),
        };
        match done {
            Ok(said) => said.into_iter().for_each(|said| self.view.say(&said)),
            Err(error) => self.view.say(&error.to_string()),
        }
        Ok(())
    }

    /// Opens the next request in the editor. The saved text replaces it.
    fn edit(&mut self) -> Result<(), Failure> {
        let next = self.run.act(|run| {
            run.pause()?;
            Ok::<_, ControlError>(run.edit().cloned().or_else(|| run.preview()?.request.clone()))
        });
        let Ok(Some(next)) = next else {
            self.view.say("there is no request to edit");
            return Ok(());
        };
        let place = self.run.look(ReplayControl::position) + 1;
        let edited = self.written(&next)?;
        let done = edited.map(|edited| self.run.act(|run| run.modify_next(edited)));
        match done {
            Some(Ok(())) => self.view.say(&format!("the request of call {place} is edited; n sends it")),
            Some(Err(error)) => self.view.say(&error.to_string()),
            None => {}
        }
        Ok(())
    }

    /// Opens an empty call in the editor. The saved text is sent at once.
    fn inject(&mut self) -> Result<(), Failure> {
        let empty = json!({"method": "tools/call", "params": {"name": "", "arguments": {}}});
        let Some(request) = self.written(&empty)? else { return Ok(()) };
        match self.run.act(|run| run.inject(request)) {
            Ok(_) => self.view.show_injected(),
            Err(error) => self.view.say(&error.to_string()),
        }
        Ok(())
    }

    /// Opens a message in the editor and parses the saved text. If that text cannot be used, shows a note in the view
    /// and returns `None`.
    fn written(&mut self, message: &Value) -> Result<Option<Value>, Failure> {
        let opened = self.draft.take().unwrap_or_else(|| pretty(&message.to_string()));
        let edited = {
            let _aside = self.keyboard.aside();
            self.screen.leave_for(|| tokio::task::block_in_place(|| editor::edit(&opened))).map_err(Failure::Output)?
        };
        let text = match edited {
            Ok(Some(text)) => text,
            Ok(None) => {
                self.view.say("nothing changed");
                return Ok(None);
            }
            Err(error) => {
                self.view.say(&error.to_string());
                return Ok(None);
            }
        };
        match serde_json::from_str(&text) {
            Ok(request) => Ok(Some(request)),
            Err(error) => {
                self.view.say(&format!("the saved text is not valid JSON: {error}; the same key opens it again"));
                self.draft = Some(text);
                Ok(None)
            }
        }
    }
}
