#![no_main]
//! Fuzz target `trace`; what it does is in `entries.rs`.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| peaklane_fuzz::trace(bytes));
