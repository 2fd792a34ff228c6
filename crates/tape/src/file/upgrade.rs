//! Converts records of older files to the current format.

use super::frame::VERSION;
use super::proto;

/// Converts a record of one version to the next.
type Step = fn(proto::Entry) -> proto::Entry;

/// One step for each older version, oldest first. Raising [`VERSION`] without a step does not compile.
const STEPS: [Step; VERSION as usize - 1] = [to_version_2, to_version_3];

/// Version 2 only adds fields, so a record without them is already one of version 2.
fn to_version_2(record: proto::Entry) -> proto::Entry {
    record
}

/// Version 3 only extends the index and interprets the seal, which older versions stored unread.
fn to_version_3(record: proto::Entry) -> proto::Entry {
    record
}

/// Converts a record of a file of version `from` to the current version.
pub(crate) fn entry(record: proto::Entry, from: u32) -> proto::Entry {
    let older = (from as usize).saturating_sub(1);
    STEPS.iter().skip(older).fold(record, |record, step| step(record))
}
