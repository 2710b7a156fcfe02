//! The power table as a section of `docs/statistics.md`. Every figure in the sentences comes from the table too.

use std::fmt::Write;

use crate::campaigns::{CAMPAIGNS, CHANGES, CORRELATION, Counted, OTHERS, PowerTable, RATES, SEED, TRIGGER_RATES};

/// A share in percent. Small and large ones have a decimal, since 0.3 % of all lanes is not none of them.
fn percent(seen: Counted) -> String {
    let percent = seen.share() * 100.0;
    match percent {
        0.0 | 100.0 => format!("{percent:.0} %"),
        _ if percent < 0.1 => "< 0.1 %".into(),
        _ if percent > 99.9 => "> 99.9 %".into(),
        _ if !(1.0..=99.0).contains(&percent) => format!("{percent:.1} %"),
        _ => format!("{percent:.0} %"),
    }
}

/// A true rate in whole percent.
fn rate(rate: f64) -> String {
    format!("{:.0} %", rate * 100.0)
}

pub(crate) fn power(table: &PowerTable) -> String {
    let mut page = String::new();
    let [plain, correlated] = &table.decisions;
    let at = |rate: f64| RATES.iter().position(|r| (r - rate).abs() < 1e-9).unwrap();
    let _ = writeln!(
        page,
        "Simulated campaigns of known truth, {} for each line (seed {SEED}), go through the rules themselves: 3 days x 8\n\
         attempts x 4 windows, {} in the other three windows, nothing retried. \"Correlated\" means that two attempts of one\n\
         burst hang together with {CORRELATION}, as they do when they share a queue. A test computes the same figures as\n\
         exact sums (all but the column on hours), and both agree to a point or two.\n\
         Source: `crates/core/tests/power/`.\n",
        thousands(CAMPAIGNS),
        rate(OTHERS),
    );
    page.push_str("**A lane is out** (the bar is 90 %, so from 90 % upwards \"out\" is the wrong answer):\n\n");
    page.push_str(
        "| true rate of the busy window | attempts | peak declared: out | conclusive | worst picked: out | conclusive | hard constraint seen |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for (name, rows) in [("independent", plain), ("correlated", correlated)] {
        for (truth, row) in RATES.into_iter().zip(rows) {
            let cells =
                [row.declared_out, row.declared_out_sure, row.worst_out, row.worst_out_sure, row.hard_constraint]
                    .map(percent);
            let _ = writeln!(page, "| {} | {name} | {} |", rate(truth), cells.join(" | "));
        }
    }
    let [alike, alike_correlated] = table.alike;
    let _ = writeln!(
        page,
        "\n* A collapse is found: a lane of 50 % at its peak is out in {} of the campaigns, conclusively in {}.\n\
         * A good lane is not safe: with a true 95 % it is turned away in {} of the campaigns, with the worst window picked\n  \
         afterwards in {}, and with correlated attempts in {}.\n\
         * A lane a little below the bar slips through: with a true 85 % it is kept in {} of the campaigns.\n\
         * \"Holds\" is never conclusive after 24 attempts; \"out\" with a true 90 % or more is, wrongly, in {} at most.\n\
         * Hours: with 90 % in all four windows they are said to differ in {} of the campaigns, with correlated attempts in\n  \
         {}. Without regard to bursts that would be {} and {}.",
        percent(plain[at(0.5)].declared_out),
        percent(plain[at(0.5)].declared_out_sure),
        percent(plain[at(0.95)].declared_out),
        percent(plain[at(0.95)].worst_out),
        percent(correlated[at(0.95)].worst_out),
        rate(1.0 - plain[at(0.85)].declared_out.share()),
        percent(largest(
            plain
                .iter()
                .chain(correlated)
                .zip(RATES.iter().chain(&RATES))
                .filter(|(_, r)| **r >= 0.9)
                .flat_map(|(row, _)| [row.declared_out_sure, row.worst_out_sure])
        )),
        percent(alike.differ),
        percent(alike_correlated.differ),
        percent(alike.attempts_alone),
        percent(alike_correlated.attempts_alone),
    );

    page.push_str(
        "\n**The trigger fires** at least once (below 80 % on 2 of the last 3 working days, judged every day):\n\n",
    );
    page.push_str(
        "| true rate at the peak | within 3 days | within 20 days | correlated: within 3 days | within 20 days |\n\
         | --- | --- | --- | --- | --- |\n",
    );
    let [plain, correlated] = &table.triggers;
    for (truth, (a, b)) in TRIGGER_RATES.into_iter().zip(plain.iter().zip(correlated)) {
        let cells = [a.within_3_days, a.within_20_days, b.within_3_days, b.within_20_days].map(percent);
        let _ = writeln!(page, "| {} | {} |", rate(truth), cells.join(" | "));
    }
    let _ = writeln!(
        page,
        "\n* One burst of 8 a day is below 80 % with two misses. So a lane of a true 90 % fires in {} of all months, one of 85 %\n  \
         in {}; a collapse to 50 % is found within 3 days in {}.\n\
         * Take a single firing as a reason for a fresh campaign, or watch the peak with more than one burst a day.",
        percent(plain[1].within_20_days),
        percent(plain[2].within_20_days),
        percent(plain[4].within_3_days),
    );

    page.push_str("\n**A counter-test** of 3 bursts on each side, margin 25 points:\n\n");
    page.push_str(
        "| true rate | attempts | improved | worse | no change that matters | undecided |\n\
         | --- | --- | --- | --- | --- | --- |\n",
    );
    let [plain, correlated] = &table.changes;
    for (name, rows) in [("independent", plain), ("correlated", correlated)] {
        for ((before, after), row) in CHANGES.into_iter().zip(rows) {
            let _ =
                writeln!(page, "| {} -> {} | {name} | {} |", rate(before), rate(after), row.map(percent).join(" | "));
        }
    }
    let found = |from: f64, to: f64| CHANGES.iter().position(|c| *c == (from, to)).unwrap();
    let _ = writeln!(
        page,
        "\n* From 50 to 95 % is found in {}; from 50 to 75 % in {} only, the rest is most often undecided.\n\
         * Nothing changed at 95 %: \"no change that matters\" in {}. Nothing changed at 50 %: undecided in {}, since 24\n  \
         attempts a side leave an interval of some 26 points to each side.\n\
         * Correlated attempts show changes that are none: at 50 % twice, \"improved\" or \"worse\" in {} in place of {}.\n  \
         That is what the unchanged lane beside it is for.",
        percent(plain[found(0.5, 0.95)][0]),
        percent(plain[found(0.5, 0.75)][0]),
        percent(plain[found(0.95, 0.95)][2]),
        percent(plain[found(0.5, 0.5)][3]),
        rate(correlated[found(0.5, 0.5)][0].share() + correlated[found(0.5, 0.5)][1].share()),
        rate(plain[found(0.5, 0.5)][0].share() + plain[found(0.5, 0.5)][1].share()),
    );
    page
}

fn largest(all: impl Iterator<Item = Counted>) -> Counted {
    all.max_by(|a, b| a.share().total_cmp(&b.share())).unwrap_or_default()
}

fn thousands(count: u32) -> String {
    format!("{},{:03}", count / 1000, count % 1000)
}
