//! End-to-end tests, in `tests/`, grouped by subject. Their servers, clients and processes are those of
//! `signalbox-testkit`.
