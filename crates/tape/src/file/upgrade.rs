//! Converts what older files say to the current format.

use super::frame::VERSION;
use super::proto;

/// Turns a record of one version into one of the next.
type Step = fn(proto::Entry) -> proto::Entry;

/// One step for each older version, the oldest first. Raising [`VERSION`] without a step does not compile.
const STEPS: [Step; VERSION as usize - 1] = [to_version_2, to_version_3];

/// Version 2 only adds: a record that says nothing of what is new is one of version 2.
fn to_version_2(record: proto::Entry) -> proto::Entry {
    record
}

/// Version 3 adds to the index, and reads what was kept as a seal before.
fn to_version_3(record: proto::Entry) -> proto::Entry {
    record
}

/// A record of a file of version `from`, as one of today.
pub(crate) fn entry(record: proto::Entry, from: u32) -> proto::Entry {
    let older = (from as usize).saturating_sub(1);
    STEPS.iter().skip(older).fold(record, |record, step| step(record))
}
