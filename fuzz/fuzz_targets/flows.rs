#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| signalbox_guard::fuzzing::flows(data, std::time::Instant::now()));
