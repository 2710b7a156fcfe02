//! What is allowed in a configuration and hardly ever meant.

use peaklane_core::config::{Config, Micros, RulesSettings};

/// Thresholds by which a lane that has just been chosen would be left again.
pub(super) fn rules_at_odds(rules: &RulesSettings) -> Vec<String> {
    let mut odd = Vec::new();
    let (trigger, pass) = (rules.trigger_pass_percent, rules.pass_percent);
    if trigger > pass {
        odd.push(format!(
            "`trigger_pass_percent` {trigger} is above `pass_percent` {pass}: a lane that holds would fire the trigger"
        ));
    }
    let (trigger, below) = (rules.trigger_retry_percent, rules.retry_below_percent);
    if trigger < below {
        odd.push(format!(
            "`trigger_retry_percent` {trigger} is below `retry_below_percent` {below}: a lane that holds would fire the trigger"
        ));
    }
    odd
}

/// Batch classes whose stretch would still run when a window is over.
pub(super) fn long_stretches(config: &Config) -> Vec<String> {
    let lengths = config.sites().into_iter().flat_map(|site| site.campaign.windows_in_order());
    let Some(shortest) = lengths.map(|window| window.length).min() else { return Vec::new() };
    let longer = |stretch: &Micros| *stretch > shortest;
    let tasks = config.tasks.iter().filter_map(|task| Some((task, task.sustained_stretch().filter(longer)?)));
    tasks
        .map(|(task, stretch)| {
            format!("the stretch of task `{}` lasts {stretch}, the shortest window {shortest}", task.name)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use peaklane_core::config::parse_checked;

    #[test]
    fn a_trigger_that_a_sound_lane_would_fire_is_told() {
        let usual = RulesSettings::default();
        assert_eq!(rules_at_odds(&usual), [""; 0]);
        // the same bar for both is odd to nobody: below it a lane does not hold either
        assert_eq!(rules_at_odds(&RulesSettings { pass_percent: 80, ..usual.clone() }), [""; 0]);
        let told = rules_at_odds(&RulesSettings { pass_percent: 79, ..usual.clone() });
        assert_eq!(
            told,
            ["`trigger_pass_percent` 80 is above `pass_percent` 79: a lane that holds would fire the trigger"]
        );
        assert_eq!(rules_at_odds(&RulesSettings { retry_below_percent: 10, ..usual.clone() }), [""; 0]);
        // 10.5 % is below 11 and above 10
        assert_eq!(rules_at_odds(&RulesSettings { retry_below_percent: 11, ..usual }).len(), 1);
    }

    #[test]
    fn a_stretch_beyond_its_window_is_told() {
        let told = |length: &str| {
            let text = format!(
                "time_zone = 'UTC'\n[campaign]\nwindows = ['09:00', {{ start = '16:00', length = '{length}' }}]\n\
                 [[lane]]\nname = 'a'\nkind = 'free-hosted'\nbase_url = 'http://h/v1'\nmodel = 'm'\n\
                 [[task]]\nname = 't'\nprompt = 'p'\ntasks_per_hour = 60\n"
            );
            long_stretches(&parse_checked(&text).unwrap())
        };
        // ten minutes where none are written
        assert_eq!(told("10m"), [""; 0]);
        assert_eq!(told("9m"), ["the stretch of task `t` lasts 10m, the shortest window 9m"]);
    }
}
