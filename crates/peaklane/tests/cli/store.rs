//! Stores that are not there, not ours or too new.

use std::fs;

use crate::support::{collapsing_lane, refused, sandbox, write_store};

#[test]
fn a_store_that_is_not_there_is_not_made_and_the_next_step_is_a_burst() {
    let sandbox = sandbox();
    refused(sandbox.run(["summary"]), 2, &["there is no store at", "peaklane.db", "peaklane burst"]);
    assert!(!sandbox.path().join("peaklane.db").exists());
}

#[test]
fn what_is_no_store_is_told_and_left_as_it_is() {
    let sandbox = sandbox();
    refused(sandbox.run(["summary", "--store", "home"]), 2, &["no regular file"]);
    let text = "lane,pass\nlane-a,1\n".repeat(100);
    sandbox.file("text.db", &text);
    refused(sandbox.run(["summary", "--store", "sqlite:text.db"]), 2, &["is no store", "was left as it is"]);
    assert_eq!(sandbox.read("text.db"), text);
    sandbox.file("empty.db", "");
    refused(sandbox.run(["summary", "--store", "empty.db"]), 2, &["empty.db"]);
}

#[test]
fn a_store_of_a_newer_format_is_told_and_left_as_it_is() {
    let sandbox = sandbox();
    let path = sandbox.path().join("new.db");
    write_store(&path, &collapsing_lane()[..1]);
    // SQLite keeps the format number, big end first, at byte 60 of the file ("user version")
    let mut bytes = fs::read(&path).unwrap();
    let format = u32::try_from(peaklane_store::FORMAT).unwrap();
    assert_eq!(bytes[60..64], format.to_be_bytes(), "the number stands where the file format of SQLite says");
    bytes[60..64].copy_from_slice(&77_u32.to_be_bytes());
    fs::write(&path, &bytes).unwrap();
    refused(sandbox.run(["summary", "--store", "new.db"]), 2, &["has format 77", "or a newer one"]);
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn a_store_without_a_burst_is_too_little_data() {
    let sandbox = sandbox();
    write_store(&sandbox.path().join("peaklane.db"), &[]);
    refused(sandbox.run(["summary"]), 3, &["no burst", "peaklane burst"]);
}
