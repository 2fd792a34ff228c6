//! Writes of a tape against servers whose lists are others now: no write goes to an object that the tape did not mean.
//!
//! The servers of these tests know each object by a number that no message shows. They show an id, which is the same in
//! every run, new in every run, or the place in the list, and other properties, which several objects may share. The
//! oracle compares the hidden numbers; it knows nothing of how the runner pairs values.
//!
//! | module | the recorded client |
//! |---|---|
//! | `lists` | lists orders and cancels some |
//! | `lines` | lists orders, gets some, and cancels lines that the answers have |
//! | `pages` | lists orders page by page and cancels some |

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it wants")]

mod lines;
mod lists;
mod pages;
mod stage;
