#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| signalbox_engine::dialect::fuzzing::dialect(data));
