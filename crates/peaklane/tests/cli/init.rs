//! `peaklane init`, and that what it writes is what `check` accepts.

use std::fs;

use peaklane_core::config::presets::PRESETS;

use crate::support::{refused, sandbox};

#[test]
fn every_preset_passes_the_check_as_it_was_written() {
    for preset in PRESETS {
        let sandbox = sandbox();
        let written = sandbox.run(["init", "--preset", preset.name]).expect_code(0);
        assert!(written.stdout.starts_with("wrote peaklane.toml: "), "{}", written.stdout);
        assert!(written.stderr.starts_with("next: "), "{}", written.stderr);
        assert_eq!(sandbox.read("peaklane.toml"), preset.text);
        let checked = sandbox.run(["check"]).expect_code(0);
        assert!(checked.stdout.starts_with("peaklane.toml can be used, but "), "{}", checked.stdout);
        assert!(checked.stderr.contains("is not set"), "{}", checked.stderr);
    }
}

#[test]
fn a_configuration_that_is_there_is_left_as_it_is() {
    let sandbox = sandbox();
    sandbox.file("peaklane.toml", "# mine\n");
    refused(sandbox.run(["init"]), 2, &["`peaklane.toml` is there already", "--force"]);
    assert_eq!(sandbox.read("peaklane.toml"), "# mine\n");
    sandbox.run(["init", "--force", "--preset", "single-lane"]).expect_code(0);
    assert!(sandbox.read("peaklane.toml").contains("[[lane]]"));
}

#[cfg(unix)]
#[test]
fn a_dangling_link_is_not_written_through() {
    let sandbox = sandbox();
    std::os::unix::fs::symlink("elsewhere.toml", sandbox.path().join("peaklane.toml")).unwrap();
    refused(sandbox.run(["init"]), 2, &["is there already"]);
    assert!(!sandbox.path().join("elsewhere.toml").exists());
}

#[test]
fn the_file_may_have_another_name_or_go_to_standard_output() {
    let sandbox = sandbox();
    let written = sandbox.run(["init", "--config", "team.toml", "-q"]).expect_code(0);
    assert_eq!(written.stderr, "", "quiet leaves the remark out");
    assert!(!sandbox.path().join("peaklane.toml").exists());
    sandbox.run(["check", "--config", "team.toml"]).expect_code(0);
    let shown = sandbox.run(["init", "--stdout", "--preset", "four-rungs"]).expect_code(0);
    assert_eq!(shown.stdout, PRESETS.iter().find(|p| p.name == "four-rungs").unwrap().text);
    assert_eq!(fs::read_dir(sandbox.path()).unwrap().count(), 3, "home, tmp and team.toml");
}

#[test]
fn presets_are_listed_in_every_form_and_an_unknown_one_is_told_their_names() {
    let sandbox = sandbox();
    let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
    for form in ["table", "csv", "md", "json"] {
        let list = sandbox.run(["init", "--list-presets", "--format", form]).expect_code(0).stdout;
        assert!(names.iter().all(|name| list.contains(name)), "{form}: {list}");
    }
    let list = sandbox.run(["init", "--list-presets", "--format", "json"]).json();
    assert_eq!(list.as_array().unwrap().len(), names.len());
    refused(sandbox.run(["init", "--preset", "two-lanes"]), 2, &names);
}

#[test]
fn what_was_written_can_be_read_by_programs() {
    let sandbox = sandbox();
    let written = sandbox.run(["init", "--format", "json"]).expect_code(0).json();
    assert_eq!(written["path"], "peaklane.toml");
    assert_eq!(written["key_variables"], serde_json::json!(["LANE_A_KEY", "LANE_B_KEY"]));
}

#[test]
fn a_folder_that_is_not_there_is_told() {
    refused(sandbox().run(["init", "--config", "no/such/folder.toml"]), 2, &["no/such/folder.toml", "--config"]);
    let sandbox = sandbox();
    refused(sandbox.run(["init", "--force", "--config", "home"]), 2, &["cannot write `home`"]);
}
