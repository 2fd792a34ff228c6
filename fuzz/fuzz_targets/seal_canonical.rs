#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| signalbox_seal::fuzzing::canonical_json(data));
