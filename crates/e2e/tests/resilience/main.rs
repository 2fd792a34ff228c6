//! Bad input and bad days: hostile peers, dead backends, load, reloads and restarts.

mod asleep;
mod breaker;
mod chaos;
mod failures;
mod hostile;
mod many;
mod memory;
mod metrics;
mod places;
mod reload;
mod restarts;
mod retries;
mod starting;
