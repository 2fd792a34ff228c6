#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| signalbox_rules::fuzzing::rules(data));
