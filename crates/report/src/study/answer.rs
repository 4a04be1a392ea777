//! The answer of a study, on one screen: what is best where, what it costs, what is not known.

use super::{CAUTION, charts, deploy, tally, targets};
use crate::model::{Block, Table, blocks};
use crate::text::{
    NONE, between, counted, dash, effect, entry, heading, listed, percent, plain, ranged, sentence,
};
use blis_core::SloClass;
use blis_core::math::float;
use blis_lab::Metric;
use blis_lab::stats::Estimate;
use blis_lab::study::{Answer, Empty, Findings, Paired, Place, Regret, Study};
use blis_lab::verdict::{Outcome, number};
use blis_scenario::Row;

/// More places or claims do not fit on a screen.
const MOST_PLACES: usize = 10;
const MOST_CLAIMS: usize = 6;
const MOST_ARMS: usize = 8;
/// Of fewer places the next arm is told too, which takes a line more.
const FEW_PLACES: usize = 6;
/// So many arms are named beside the best, and so many costs.
const MOST_LEVEL: usize = 3;
const MOST_COSTS: usize = 1;
/// A change below this share is no cost.
const LEAST_COST: f64 = 0.02;

/// What a reader needs first.
pub(super) fn answer(study: &Study, findings: &Findings, file: Option<&str>) -> Vec<Block> {
    let found = study.answer(findings);
    let mut all: Vec<Block> = targets::lines(study, findings).into_iter().collect();
    if let Some(found) = &found {
        all.push(Block::prose(best(study, found)));
        all.extend(charts::distances(study, found).map(Block::from));
        let few = found.places.len() <= MOST_PLACES;
        let table = if few { Some(places(study, found)) } else { groups(study, found) };
        if !found.places.is_empty() {
            all.push(table.unwrap_or_else(|| arms(study, found, MOST_ARMS)).into());
        }
        all.extend(deploy::block(study, findings, found, file));
    }
    all.extend(claims(study, findings));
    if all.is_empty() {
        return all;
    }
    let costs = found.as_ref().and_then(|found| costs(study, findings, found));
    let unknown = unknown(study, findings, found.as_ref());
    let lacking = found.as_ref().map(|found| deploy::lacking(study, found));
    let costs = [costs, lacking].into_iter().flatten().filter(|it| !it.is_empty());
    let costs = costs.collect::<Vec<_>>().join(" ");
    all.push(Block::prose(format!("{costs}\n\n{unknown}")));
    all
}

/// What an arm is called.
pub(super) fn arm(study: &Study, level: usize) -> &str {
    let arms = study.design.factors.iter().find(|factor| factor.name == "arm");
    arms.map_or("", |arms| arms.levels[level].as_str())
}

/// A metric in words, and which way is better.
fn directed(metric: &Metric) -> String {
    let better = if metric.less_is_better() == Some(true) { "less" } else { "more" };
    format!("{} ({}; {better} is better)", metric.name(), metric.about())
}

/// Which arm to take, in two sentences.
fn best(study: &Study, found: &Answer) -> String {
    let metric = directed(&found.metric);
    if found.places.is_empty() {
        return sentence(&found.empty.first().map_or_else(String::new, no_data));
    }
    if found.places.iter().all(|place| place.ranked.is_empty()) {
        return format!("No arm has settled, so {metric} measures the length of the run.");
    }
    if let [place] = &found.places[..]
        && let Some(first) = place.ranked.first()
    {
        let value = entry(&found.metric, Some(first.mean));
        let at = if found.empty.is_empty() { String::new() } else { format!(" at {}", place.name) };
        let (name, unit) = (arm(study, first.arm), found.metric.unit());
        let told = format!("Best by {metric}{at}: {name}, {value} {unit}");
        return format!("{}.{}", told.trim_end(), also(study, place));
    }
    let Some(first) = found.regrets.first() else {
        return format!("No arm can be ranked by {metric}.");
    };
    let same = found.regrets[1..].iter().filter(|one| one.is_level(first));
    let same = some(same.map(|one| arm(study, one.arm)), MOST_LEVEL);
    let same = match &same[..] {
        "" => same,
        _ => format!(" As good at their worst, within the error: {same}."),
    };
    let name = arm(study, first.arm);
    if first.is_none() {
        return format!("Best everywhere by {metric}: {name}.");
    }
    let of = others(study);
    let (cases, worst) = (found.places.len(), loses(found, first));
    format!("Safest by {metric}: {name}. Of {cases} cases ({of}) it {worst}.{same}")
}

/// What an arm loses at its worst, as the rest of a sentence.
pub(super) fn loses(found: &Answer, one: &Regret) -> String {
    let less = found.metric.less_is_better() == Some(true);
    let place = |index: usize| &found.places[index].name;
    let times = one.times.map(|(times, at)| match times {
        _ if times.low >= times.high => "the best".to_owned(),
        _ if is_vague(&times) => {
            format!("at worst {}, times the best ({})", factor(&times), place(at))
        }
        _ if less => format!("at worst {} times the best ({})", factor(&times), place(at)),
        _ => format!("at worst {} of the best ({})", number(1.0 / times.mean), place(at)),
    });
    let lost = one.overloaded.first().map(|&first| match one.overloaded.len() {
        1 => format!("is overloaded in one where another is not ({}), else ", place(first)),
        many => format!("is overloaded in {many} where another is not, else "),
    });
    let open = one.unsettled.first().map(|&first| match one.unsettled.len() {
        1 => format!("; in one its runs are too short to be sure ({})", place(first)),
        many => format!("; in {many} its runs are too short to be sure"),
    });
    let times = format!("is {}", times.unwrap_or_else(|| "not compared".to_owned()));
    [lost, Some(times), open].into_iter().flatten().collect::<String>()
}

/// What cells differ in besides their arms: the last step of each path.
fn others(study: &Study) -> String {
    let others = study.factors.iter().filter(|factor| *factor != "arm");
    listed(others.map(|factor| factor.rsplit('.').next().map(str::to_owned)))
}

/// The arms that cannot be told from the best.
fn also(study: &Study, place: &Place) -> String {
    match level(study, place, MOST_LEVEL) {
        same if same.is_empty() => String::new(),
        same => format!(" The runs cannot tell {same} from it."),
    }
}

fn level(study: &Study, place: &Place, most: usize) -> String {
    let same = place.ranked.iter().filter(|one| one.is_level());
    some(same.map(|one| arm(study, one.arm)), most)
}

/// The first `most` of these names, and how many more there are.
fn some<'a>(names: impl Iterator<Item = &'a str>, most: usize) -> String {
    let names: Vec<&str> = names.collect();
    let more = names.len().saturating_sub(most);
    let more = (more > 0).then(|| format!("{more} more"));
    listed(names.iter().take(most).map(|name| Some((*name).to_owned())).chain([more]))
}

/// Why nothing is known of a case.
fn no_data(empty: &Empty) -> String {
    let (warmup, run) = (number(empty.warmup_s), number(empty.run_s));
    format!("no data: all requests of the run ({run} s) arrive within the warm-up ({warmup} s)")
}

/// Whether an interval of a ratio says nothing: one end is ten times the other.
fn is_vague(times: &Estimate) -> bool {
    times.low <= 0.0 || times.high / times.low >= 10.0
}

/// A ratio and its interval, with no more digits than that allows.
fn factor(times: &Estimate) -> String {
    if is_vague(times) {
        let [low, high] = [times.low.max(0.0), times.high].map(plain);
        return format!("not known ({low} to {high})");
    }
    let digits = match times.mean {
        mean if mean >= 9.995 => return ranged(times),
        _ if times.high - times.low < 0.02 => 3,
        _ => 2,
    };
    between(times, |value| format!("{value:.digits$}"))
}

/// A row for each place: the best arm, those as good, and the next.
fn places(study: &Study, found: &Answer) -> Table {
    let row = |place: &Place| {
        let best = place.ranked.first();
        let name = best.map_or("none settled", |best| arm(study, best.arm));
        let value = best.map_or_else(String::new, |best| entry(&found.metric, Some(best.mean)));
        let same = Some(level(study, place, 1)).filter(|same| !same.is_empty());
        let few = found.places.len() < FEW_PLACES || same.is_none();
        let next = place.ranked.iter().skip(1).find(|one| few && !one.is_level());
        let next = next.map(|next| {
            let times =
                next.times_best.map_or_else(String::new, |it| format!(" x {}", factor(&it)));
            format!("{}{times}", arm(study, next.arm))
        });
        let next = next.map(|next| format!("then {next}"));
        let next = [same, next].into_iter().flatten().collect::<Vec<_>>().join("; ");
        vec![place.name.clone(), name.to_owned(), value, next]
    };
    let header = [
        others(study),
        "best".to_owned(),
        heading(&found.metric),
        "as good; then the next, times the best".to_owned(),
    ];
    // If cells differ in nothing else, there is one place without a name.
    let from = usize::from(header[0].is_empty());
    let empty = |it: &Empty| [it.name.as_str(), "no data", "", ""].map(str::to_owned).to_vec();
    let rows = found.places.iter().map(row).chain(found.empty.iter().map(empty));
    let rows = rows.map(|mut row| row.split_off(from));
    Table::new("", header[from..].to_vec(), rows).without_empty()
}

/// The places of each level of the first thing that cells differ in besides their arms, where there
/// are too many places for a row each; else each place. Empty if that has too many levels as well,
/// or there is nothing beside it.
pub(super) fn cases(study: &Study, found: &Answer) -> Vec<(String, Vec<usize>)> {
    if found.places.len() <= MOST_PLACES {
        let places = found.places.iter().enumerate();
        return places.map(|(at, place)| (place.name.clone(), vec![at])).collect();
    }
    let factors = &study.design.factors;
    let Some(first) = factors.iter().position(|factor| factor.name != "arm") else {
        return Vec::new();
    };
    let levels = &factors[first].levels;
    if levels.len() < 2 || levels.len() > MOST_PLACES {
        return Vec::new();
    }
    let here = |(level, name): (usize, &String)| {
        let at = |place: &usize| study.design.levels(found.places[*place].cells[0])[first] == level;
        (name.clone(), (0..found.places.len()).filter(at).collect())
    };
    levels.iter().enumerate().map(here).collect()
}

/// A row for each of many cases: who is best there, and how far the safest arm and the first one
/// are from that. `None` if there are no such cases.
fn groups(study: &Study, found: &Answer) -> Option<Table> {
    let mut others = study.design.factors.iter().filter(|factor| factor.name != "arm");
    let short = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
    let first = short(&others.next()?.name);
    // What differs within a row.
    let within = match (others.next(), others.next()) {
        (Some(one), None) => short(&one.name),
        _ => "case".to_owned(),
    };
    let mut arms = vec![found.regrets.first()?.arm, 0];
    arms.dedup();
    let row = |(name, here): (String, Vec<usize>)| {
        let wins = found.regrets.iter().map(|one| (found.won(one.arm, &here), one.arm));
        let wins: Vec<(usize, usize)> = wins.collect();
        let most = wins.iter().map(|&(won, _)| won).max().unwrap_or(0);
        let mut same = wins.iter().filter(|&&(won, _)| won == most).map(|&(_, arm)| arm);
        let best = same.next().map_or("", |first| arm(study, first));
        let best = match (most, same.count()) {
            (0, _) => NONE.to_owned(),
            (_, 0) => best.to_owned(),
            (_, more) => format!("{best} +{more}"),
        };
        let lost = arms.iter().map(|&arm| match found.worst(arm, here.iter().copied()) {
            None => NONE.to_owned(),
            Some(lost) if !lost.overloaded.is_empty() => "overloaded".to_owned(),
            Some(lost) => dash(lost.times, |(times, _)| match times {
                times if times.low >= times.high => "the best".to_owned(),
                times if is_vague(&times) => "not known".to_owned(),
                // Two of these columns and two of names fit on 80 columns.
                times => factor(&times).replace(" to ", "-"),
            }),
        });
        [name, best].into_iter().chain(lost).collect::<Vec<_>>()
    };
    let rows: Vec<Vec<String>> = cases(study, found).into_iter().map(row).collect();
    let lost = arms.iter().map(|&it| arm(study, it).to_owned());
    let header = [first, "best (+N as good)".to_owned()].into_iter().chain(lost);
    let metric = found.metric.name();
    let title = format!(
        "Best at most {within}s, and {metric} at the worst {within} as a multiple of the best's"
    );
    (!rows.is_empty()).then(|| Table::new(title, header, rows))
}

/// Where cells differ in more than their arms: in how many places each arm is the best or as good,
/// and where it loses most.
pub(super) fn ranking(study: &Study, findings: &Findings) -> Option<Table> {
    let found = study.answer(findings).filter(|found| found.places.len() > 1)?;
    Some(arms(study, &found, usize::MAX))
}

/// The first `most` arms of that.
fn arms(study: &Study, found: &Answer, most: usize) -> Table {
    let row = |regret: &Regret| {
        let won = found.places.iter().filter(|place| place.is_won_by(regret.arm)).count();
        let place = |at: usize| found.places[at].name.clone();
        let lost = |places: &[usize]| match places {
            [] => "-".to_owned(),
            [only] => place(*only),
            many => format!("{} of {}", many.len(), found.places.len()),
        };
        [
            arm(study, regret.arm).to_owned(),
            format!("{won} of {}", found.places.len()),
            lost(&regret.overloaded),
            lost(&regret.unsettled),
            dash(regret.times, |(times, _)| factor(&times)),
            dash(regret.times, |(_, at)| place(at)),
        ]
    };
    let rows = found.regrets.iter().take(most).map(row);
    let more = found.regrets.len().saturating_sub(most);
    let title =
        if more > 0 { format!("The best arms, without {more} more") } else { String::new() };
    let worst = format!("{} at worst, times the best", found.metric.name());
    let header = ["arm", "best, or level with it", "overloaded", "not settled", &worst, "there"];
    Table::new(title, header, rows)
}

/// What surely gets worse with the safest arm, against the first arm of the file.
fn costs(study: &Study, findings: &Findings, found: &Answer) -> Option<String> {
    let winner = found.regrets.first()?.arm;
    if winner == 0 {
        return None;
    }
    let reports = findings.rows.iter().flatten().map(|row| &row.report);
    let classes = SloClass::ALL.into_iter().filter(|class| {
        reports.clone().any(|report| report.classes.iter().any(|(it, _)| it == class))
    });
    let of_class = |class: SloClass| {
        ["ttft_p99", "e2e_mean", "refused_share"]
            .map(|name| Metric::parse(&format!("{}.{name}", class.name())))
    };
    let metrics = study.metrics.iter().copied();
    let metrics: Vec<Metric> =
        metrics.chain(classes.flat_map(of_class).filter_map(Result::ok)).collect();
    let mut costs: Vec<(f64, (String, String), String)> = Vec::new();
    let mut compared = 0;
    for place in &found.places {
        let (cell, base) = (place.cells[winner], place.cells[0]);
        let unsettled = place.unsettled.iter().map(|one| one.arm);
        let grows =
            place.overloaded.iter().copied().chain(unsettled).any(|it| it == winner || it == 0);
        for metric in metrics.iter().filter(|metric| !(grows && metric.is_latency())) {
            let Some(paired) = findings.paired(cell, base, metric, 0.05) else { continue };
            compared += 1;
            let Some((size, told)) = worse(metric, &paired) else { continue };
            let at =
                if place.name.is_empty() { String::new() } else { format!(" ({})", place.name) };
            let name = metric.name();
            let bare = name.rsplit('.').next().unwrap_or_default().to_owned();
            costs.push((
                size,
                (place.name.clone(), bare),
                format!("{} is {told}{at}", named(metric)),
            ));
        }
    }
    costs.sort_by(|one, other| other.0.total_cmp(&one.0));
    let all = costs.len();
    // A class seldom says more than all requests do.
    let mut known = Vec::new();
    costs.retain(|(_, what, _)| {
        let new = !known.contains(what);
        known.extend(new.then(|| what.clone()));
        new
    });
    let (winner, base) = (arm(study, winner), arm(study, 0));
    if costs.is_empty() {
        return Some(format!(
            "Against {base}, with {winner} no metric or class is shown to be over 2 % worse."
        ));
    }
    let named = costs.into_iter().take(MOST_COSTS).map(|(.., told)| Some(told));
    let told = listed(named);
    let more = match all {
        all if all > MOST_COSTS => format!(
            " {all} of {compared} comparisons (metric, class, case) are worse by 2 % or more."
        ),
        _ => String::new(),
    };
    Some(format!("What {winner} costs against {base}: at worst, {told}.{more}"))
}

/// A metric, and whose requests it is of.
fn named(metric: &Metric) -> String {
    match metric.name().split_once('.') {
        Some((class, name)) if SloClass::from_name(class).is_some() => {
            format!("{name} of class {class}")
        }
        _ => metric.name(),
    }
}

/// How much worse it surely is, and that in words.
fn worse(metric: &Metric, paired: &Paired) -> Option<(f64, String)> {
    let less = metric.less_is_better()?;
    let (size, told) = if let Some(ratio) = paired.ratio {
        let size = if less { ratio.low - 1.0 } else { 1.0 / ratio.high - 1.0 };
        (size, format!("{} times as much", factor(&ratio)))
    } else {
        let found = paired.difference;
        let (low, high) = if less { (found.low, found.high) } else { (-found.high, -found.low) };
        let by = ranged(&Estimate { mean: found.mean.abs(), low, high, ..found });
        (low, format!("{} by {by}", if less { "higher" } else { "lower" }))
    };
    (size > LEAST_COST).then_some((size, told))
}

/// The verdicts, a line each.
fn claims(study: &Study, findings: &Findings) -> Vec<Block> {
    if study.hypotheses.is_empty() {
        return Vec::new();
    }
    let outcomes: Vec<Outcome> = findings.verdicts.iter().map(|verdict| verdict.outcome).collect();
    if outcomes.len() > MOST_CLAIMS {
        let asked = study.hypotheses.iter().zip(&outcomes);
        let other = asked.filter(|(_, outcome)| **outcome != Outcome::Confirmed);
        let other = some(other.map(|(asked, _)| asked.name.as_str()), MOST_LEVEL);
        let other = if other.is_empty() { other } else { format!(" Not confirmed: {other}.") };
        let told = sentence(&format!("claims: {}", tally(&outcomes)));
        return vec![Block::prose(format!("{told}{other}"))];
    }
    let rows = study.hypotheses.iter().zip(&findings.verdicts).map(|(asked, found)| {
        let of = found.effects.get(found.telling).and_then(|effect| effect.left.split('(').next());
        let metric = of.and_then(|name| Metric::parse(name).ok());
        let better = metric.as_ref().and_then(Metric::less_is_better);
        let arrow = better.map_or("", |less| if less { "↓" } else { "↑" });
        let told = metric.map_or_else(String::new, |it| format!("{}{arrow} ", it.name()));
        let told = match found.outcome {
            Outcome::Overloaded => "not measurable: latencies grow with the run".to_owned(),
            _ => told + &effect(found),
        };
        vec![asked.name.clone(), found.outcome.name().to_owned(), told]
    });
    let effect = "first over second (↓ less is better)";
    blocks([Table::new("", ["claim", "verdict", effect], rows).keyed(2)])
}

/// What the numbers do not say.
fn unknown(study: &Study, findings: &Findings, found: Option<&Answer>) -> String {
    let open = [Outcome::Inconclusive, Outcome::TooShort];
    let open = findings.verdicts.iter().filter(|verdict| open.contains(&verdict.outcome)).count();
    let open = (open > 0).then(|| format!("{} without a verdict.", counted(open as u64, "claim")));
    let places = || found.iter().flat_map(|found| &found.places);
    let overloaded = places().map(|it| it.overloaded.len()).sum::<usize>();
    let unsettled = places().map(|it| it.unsettled.len()).sum::<usize>();
    let lost = [(overloaded, "overloaded"), (unsettled, "not settled")]
        .map(|(many, what)| (many > 0).then(|| format!("{many} {what}")));
    let unsettled = (overloaded + unsettled > 0).then(|| {
        let (lost, all) = (listed(lost), study.cells.len());
        format!("{} of {all} combinations are not ranked: {lost}.", overloaded + unsettled)
    });
    let empty = found.map(|found| &found.empty[..]).unwrap_or_default();
    let empty =
        empty.first().filter(|_| found.is_some_and(|it| !it.places.is_empty())).map(|one| {
            let cases = counted(empty.len() as u64, "case");
            format!("{cases} left out, e.g. {}: {}.", one.name, no_data(one))
        });
    let (far, most) = extrapolated(findings);
    let far = (most > 0.01).then(|| {
        format!(
            "{} of all steps (at worst {}) are outside the range of measured step times.",
            percent(far),
            percent(most)
        )
    });
    // The first clause says what the times are.
    let first = |caveat: &String| caveat.split(';').next().map(sentence);
    let caveat = study.cells.iter().find_map(|cell| first(cell.plan.latency_caveat.as_ref()?));
    let caution = if findings.seeds() == 1 {
        "One seed does not tell an effect from chance; set `seeds`, for example to 5."
    } else if study.hypotheses.is_empty() {
        "Intervals are 95 % each and cover the choice of seeds, not errors of the model."
    } else {
        CAUTION
    };
    let parts = [open, unsettled, empty, caveat, far].into_iter().flatten();
    let parts = parts.chain([caution.to_owned()]).collect::<Vec<_>>().join(" ");
    format!("Not known: {parts}")
}

/// The share of steps outside the range of the latency model: of all cells, and the largest.
fn extrapolated(findings: &Findings) -> (f64, f64) {
    let steps = |rows: &Vec<Row>| {
        let far: u64 = rows.iter().filter_map(|row| row.run.extrapolated_steps).sum();
        let instances = rows.iter().flat_map(|row| &row.report.instances);
        (far, instances.map(|instance| instance.steps).sum::<u64>())
    };
    let share = |(far, all): (u64, u64)| float(far) / float(all.max(1));
    let cells: Vec<(u64, u64)> = findings.rows.iter().map(steps).collect();
    let all = cells.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    (share(all), cells.into_iter().map(share).fold(0.0, f64::max))
}
