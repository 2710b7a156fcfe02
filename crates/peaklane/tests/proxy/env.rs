//! `proxy env`.

use crate::support::sandbox;

#[test]
fn the_printed_lines_are_exports_that_a_shell_takes_and_hold_no_key() {
    let sandbox = sandbox().env("TEAM_KEY", "sk-hush-hush-4711");
    for harness in ["opencode", "codex", "pi", "qwen", "cline", "mini", "aider", "claude-code", "gemini", "generic"] {
        let ran = sandbox.run(["proxy", "env", "--harness", harness, "--session", "run-1", "--key-env", "TEAM_KEY"]);
        let ran = ran.expect_code(0);
        assert!(ran.stdout.contains("http://127.0.0.1:8787/s/run-1"), "{harness}: {}", ran.stdout);
        // A shell reads them without a word, and they name the address then.
        std::fs::write(sandbox.path().join("env.sh"), format!("{}\nenv\n", ran.stdout)).unwrap();
        let shell = std::process::Command::new("sh").arg("env.sh").current_dir(sandbox.path()).output().unwrap();
        assert!(shell.status.success() && shell.stderr.is_empty(), "{harness}: {shell:?}");
    }
    sandbox.assert_never_said("sk-hush-hush-4711", &[]);
}

#[test]
fn what_cannot_be_used_is_told_with_what_can() {
    let sandbox = sandbox();
    for (words, told) in [
        (vec!["--harness", "crush", "--session", "a"], "known are opencode, codex, pi"),
        (vec!["--session", "a/b"], "letters, digits and - _ . ~ only"),
        (vec!["--session", "a", "--key-env", "sk-abc.def"], "names a variable, not the key"),
    ] {
        let ran = sandbox.run([&["proxy", "env"][..], &words].concat()).expect_code(2);
        assert!(ran.stderr.contains(told) && ran.stdout.is_empty(), "{words:?}: {}", ran.stderr);
    }
}
