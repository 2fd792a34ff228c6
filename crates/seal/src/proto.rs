//! Messages of package `signalbox.v1`, generated from `proto/signalbox_v1.proto`.

#![allow(clippy::all, reason = "generated code")]
#![allow(missing_docs, reason = "prost writes functions of its own without a word about them")]

include!(concat!(env!("OUT_DIR"), "/signalbox.v1.rs"));

/// Definition of the package as a `google.protobuf.FileDescriptorSet`, for readers in other languages.
pub const DESCRIPTOR: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/signalbox_v1.bin"));
