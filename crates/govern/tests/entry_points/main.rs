//! What can be used is listed, and without conditions on arguments what is listed can be used,
//! whatever the policies, the catalog and the caller are, and by whatever request an entry is reached. What is not
//! listed is answered like a name that nobody has.
//!
//! The core has no I/O, so each case is a whole gateway between a request and the command that would reach a backend:
//!
//! - `ways`: requests of both eras and of the governed dialect, resource templates and `subscriptions/listen`;
//! - `withdrawn`: what a caller began before it lost a permission: subscriptions, listen requests, tasks, rounds of
//!   input, sign-ins and held calls; and tasks of other callers;
//! - `interrupted`: what a backend and its caller say to each other after that: results of tasks, questions, answers
//!   and notifications;
//! - `foreign_methods`: requests and notifications that MCP does not have, at a sole backend;
//! - `running_tasks`: bounds on calls that run at once, and calls that became tasks;
//! - `labels`: tools that are labelled with permissions;
//! - `uris`: URIs that servers read in several ways;
//! - `behind_permissions`: rules that copy, mock, rename and change calls, in the crate that has them.
//!
//! Batches, resumed streams and tapes that answer lie outside of the core: `gateway_entry_points` of the test kit has
//! them, with random roles and a whole process.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed step is a failed test")]

mod behind_permissions;
mod foreign_methods;
mod interrupted;
mod labels;
mod policies;
mod running_tasks;
mod spellings;
mod uris;
mod ways;
mod withdrawn;
mod world;
