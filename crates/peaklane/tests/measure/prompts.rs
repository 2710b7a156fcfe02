//! What a lane is sent: nonces that defeat its prefix cache, or the same bytes each time; the same ones for all lanes.

use std::collections::HashSet;

use peaklane_sim::fake::{FakeLane, Seen};
use peaklane_testkit::binary::Sandbox;
use serde_json::{Value, json};

use crate::support::{BINARY, burst, stored, with_fake};

fn prompt(seen: &Seen) -> String {
    let body: Value = serde_json::from_str(&seen.body).unwrap();
    body["messages"][0]["content"].as_str().unwrap().to_owned()
}

#[test]
fn identical_prompts_are_the_same_bytes_and_the_result_says_so() {
    let lane = FakeLane::start().unwrap();
    let sandbox = with_fake(&lane, "fake-ok");
    let one = burst(&sandbox, &["--prompt-mode", "identical"]);
    assert_eq!((&one["prompt_mode"], &one["passed"]), (&json!("identical"), &json!(8)));
    let bodies: HashSet<String> = lane.seen().into_iter().map(|seen| seen.body).collect();
    assert_eq!((lane.seen().len(), bodies.len()), (8, 1));
    assert_eq!(stored(sandbox.path())[0].0.header.prompt_mode.name(), "identical");
}

#[test]
fn nonce_prompts_differ_from_their_first_bytes_on_and_in_nothing_else() {
    let lane = FakeLane::start().unwrap();
    let one = burst(&with_fake(&lane, "fake-ok"), &["--prompt", "Say 42.", "--system", "Be brief."]);
    assert_eq!(one["prompt_mode"], "nonce");
    let prompts: HashSet<String> = lane.seen().iter().map(prompt).collect();
    assert_eq!(prompts.len(), 8);
    // The nonce stands in front of everything that the model sees: here the system text.
    let (nonces, rests): (HashSet<&str>, HashSet<&str>) =
        prompts.iter().map(|prompt| prompt.split_once("] ").unwrap()).unzip();
    assert_eq!((nonces.len(), rests), (8, HashSet::from(["Be brief."])));
    let bodies: HashSet<String> = (lane.seen().iter()).map(|seen| seen.body.replacen(&prompt(seen), "", 1)).collect();
    assert_eq!(bodies.len(), 1, "{bodies:?}");
}

#[test]
fn temperature_zero_and_a_seed_are_sent_unless_plain_sampling_is_asked_for() {
    let lane = FakeLane::start().unwrap();
    let sandbox = with_fake(&lane, "fake-ok");
    burst(&sandbox, &["-n", "1", "--seed", "7"]);
    burst(&sandbox, &["-n", "1", "--seed", "7", "--plain-sampling"]);
    let bodies: Vec<Value> = lane.seen().iter().map(|seen| serde_json::from_str(&seen.body).unwrap()).collect();
    assert_eq!((&bodies[0]["temperature"], &bodies[0]["seed"]), (&json!(0), &json!(7)));
    assert_eq!((bodies[1].get("temperature"), bodies[1].get("seed")), (None, None));
}

#[test]
fn all_lanes_of_a_burst_get_the_same_nonces_whichever_goes_first() {
    let lane = FakeLane::start().unwrap();
    let models = ["fake-ok", "fake-delay-45", "fake-reasoning"];
    let config: String = (models.iter())
        .map(|model| {
            format!(
                "[[lane]]\nname = \"{model}\"\nkind = \"free-hosted\"\nbase_url = \"{}\"\nmodel = \"{model}\"\n",
                lane.base_url()
            )
        })
        .collect();
    let sandbox = Sandbox::new(BINARY);
    sandbox.file("peaklane.toml", &config);
    for order in ["random", "interleaved"] {
        let before = lane.seen().len();
        let words = ["burst", "--format", "json", "--order", order, "-n", "4"];
        let object = sandbox.run(words).expect_code(0).json();
        assert_eq!(object["bursts"].as_array().unwrap().len(), 3);
        let seen = lane.seen().split_off(before);
        let of = |model: &str| -> HashSet<String> {
            seen.iter().filter(|one| one.body.contains(&format!("\"model\":\"{model}\""))).map(prompt).collect()
        };
        // four attempts and the warm-up of a configuration
        assert_eq!(of(models[0]).len(), 5);
        assert!(models.iter().all(|model| of(model) == of(models[0])), "{order}");
    }
}
