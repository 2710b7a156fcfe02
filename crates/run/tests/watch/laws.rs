//! Whatever the clocks do and whoever watches: no burst runs twice, and none is lost.

use std::time::Duration;

use proptest::prelude::*;

use crate::world::{FakeClock, FakeGun, Fate, TOML, World};

fn fate() -> impl Strategy<Value = (u64, Fate)> {
    let what = prop_oneof![(-20_000_i64..20_000).prop_map(Fate::Step), (1_u64..20_000).prop_map(Fate::Sleep)];
    (0_u64..36_000, what)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn no_slot_runs_twice_and_none_is_lost(
        mut fates in prop::collection::vec(fate(), 0..6),
        takes_s in 1_u64..400,
        killed_after_s in prop::option::of(1_u64..36_000),
    ) {
        fates.sort_by_key(|(at, _)| *at);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let (world, gun) = (World::new(), FakeGun::new(Duration::from_secs(takes_s)));
            let clock = FakeClock::at("2026-12-01T07:00:00Z", &fates);
            if let Some(after) = killed_after_s {
                let first = world.watch(TOML, &clock, &gun, ("one", false));
                // whoever was faster: the end of the campaign or the end of the process
                let _ = tokio::time::timeout(Duration::from_secs(after), first).await;
            }
            world.watch(TOML, &clock, &gun, ("two", false)).await;
            gun.never_twice();
            let slots = world.slots();
            assert_eq!(slots.len(), 4 * world.ledger().campaigns().unwrap().len(), "{slots:?}");
            assert!(slots.iter().all(|slot| !slot.contains("running")), "{slots:?}");
            // what the store calls run or late is what ran to its end
            let whole = slots.iter().filter(|s| s.ends_with(" run") || s.ends_with(" late")).count();
            assert!(whole <= gun.ran().len(), "{slots:?} {:?}", gun.ran());
        });
    }
}
