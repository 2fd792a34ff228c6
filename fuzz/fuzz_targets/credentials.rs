#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| signalbox_secret_scan::fuzzing::credentials(data));
