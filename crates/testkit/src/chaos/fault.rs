//! Faults: what strikes a backend, for how long, and how it is lifted.

use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::cast::{Cast, CastKind, CastMember, signal};
use super::dice::Dice;
use super::mode::ChaosMode;

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChaosFault {
    /// The server answers in some way that it should not.
    Mode(ChaosMode),
    /// One process of it is killed; where nobody else starts it again, that is done after a while.
    Kill,
    /// It is killed and started again at once, on the same port.
    Restart,
    /// Its processes are stopped for a while.
    Stop,
}

impl ChaosFault {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Mode(mode) => mode.word(),
            Self::Kill => "kill",
            Self::Restart => "restart",
            Self::Stop => "stop",
        }
    }

    /// Some fault that fits this backend.
    pub fn any(dice: &mut Dice, part: &CastMember) -> Self {
        // Processes fare worse than words, so that these come more often than their number would make them.
        match dice.below(10) {
            0 => Self::Kill,
            1 if part.kind != CastKind::Child => Self::Restart,
            1 => Self::Kill,
            2 => Self::Stop,
            _ => Self::Mode(dice.pick(&ChaosMode::FAULTS).copied().unwrap_or(ChaosMode::Hang)),
        }
    }

    /// Strikes, stays for this long, and lifts itself.
    ///
    /// # Errors
    /// When a process cannot be started again, or an order not be given.
    pub async fn strike(self, part: &CastMember, stays: Duration, dice: &mut Dice) -> anyhow::Result<()> {
        match self {
            Self::Mode(mode) => {
                part.order(mode)?;
                sleep(stays).await;
                part.order(ChaosMode::Fine)
            }
            Self::Kill if part.kind == CastKind::Child => {
                let pids = part.pids().await;
                if let Some(pid) = dice.pick(&pids) {
                    signal(*pid, Signal::KILL);
                }
                Ok(())
            }
            Self::Kill => {
                part.kill().await?;
                sleep(stays).await;
                part.start().await
            }
            Self::Restart => {
                part.kill().await?;
                part.start().await
            }
            Self::Stop => {
                let pids = part.pids().await;
                pids.iter().for_each(|pid| signal(*pid, Signal::STOP));
                sleep(stays).await;
                pids.iter().for_each(|pid| signal(*pid, Signal::CONT));
                Ok(())
            }
        }
    }
}

/// Faults under way, one more every second.
pub struct Storm {
    cast: Arc<Cast>,
    dice: Dice,
    struck: JoinSet<anyhow::Result<()>>,
}

impl Storm {
    /// A storm over these backends.
    pub fn new(cast: Arc<Cast>, dice: Dice) -> Self {
        Self { cast, dice, struck: JoinSet::new() }
    }

    /// One more fault, at a backend that none holds; which it was.
    pub fn strike(&mut self) -> Option<ChaosFault> {
        let parts = &self.cast.parts;
        let free = |at: &usize| !parts[*at].steady && !parts[*at].is_struck();
        let targets: Vec<usize> = (0..parts.len()).filter(free).collect();
        let at = *self.dice.pick(&targets)?;
        let part = &self.cast.parts[at];
        let fault = ChaosFault::any(&mut self.dice, part);
        let stays = Duration::from_millis(self.dice.between(300, 4000));
        let mut dice = self.dice.fork();
        part.set_struck(true);
        let cast = Arc::clone(&self.cast);
        self.struck.spawn(async move {
            let part = &cast.parts[at];
            let done = fault.strike(part, stays, &mut dice).await;
            part.set_struck(false);
            done
        });
        Some(fault)
    }

    /// Waits until every fault is lifted.
    ///
    /// # Errors
    /// When one could not be.
    pub async fn passes(mut self) -> anyhow::Result<()> {
        while let Some(done) = self.struck.join_next().await {
            done??;
        }
        for part in &self.cast.parts {
            part.order(ChaosMode::Fine)?;
            if part.kind == CastKind::Child {
                part.pids().await.iter().for_each(|pid| signal(*pid, Signal::CONT));
            }
        }
        Ok(())
    }
}
