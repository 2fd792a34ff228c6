//! What a caller may do: roles, rules, limits, approvals, signatures, and the governed dialect.

mod approvals;
mod backtest;
mod baseline;
mod dialect;
mod entry_points;
mod guard;
mod guard_content;
mod guard_flows;
mod guard_positions;
mod holds;
mod limits;
mod permissions;
mod pins;
mod rules;
mod seal;
mod seed;
mod withheld;
