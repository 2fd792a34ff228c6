//! The messages of package `signalbox.v1`, made from `proto/signalbox_v1.proto`.

#![allow(clippy::all, reason = "generated code")]
#![allow(missing_docs, reason = "prost writes functions of its own without a word about them")]

include!(concat!(env!("OUT_DIR"), "/signalbox.v1.rs"));

/// The definition of the package as a `google.protobuf.FileDescriptorSet`, for readers that know no Rust.
pub const DESCRIPTOR: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/signalbox_v1.bin"));
