#![no_main]
//! Fuzz target `prompt`; what it does is in `entries.rs`.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| peaklane_fuzz::prompt(bytes));
