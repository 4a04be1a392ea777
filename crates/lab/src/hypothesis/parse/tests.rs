//! Tests of the file beside.

use super::*;
use crate::Metric;
use crate::design::tests::design;
use blis_core::Dice;
use blis_core::random::Purpose;

fn read(text: &str) -> Claim {
    parse(text, &design()).unwrap_or_else(|mistake| panic!("{text}: {mistake:?}"))
}

#[test]
fn a_claim_is_read_with_its_arms_and_workloads() {
    let claim = read("critical.ttft_p99(full @ bursty) <= 0.5 * critical.ttft_p99(base @ bursty)");
    let [part] = &claim.parts[..] else { panic!("one comparison") };
    assert_eq!(part.relation, Relation::AtMost);
    let Expr::Value(left) = &part.left else { panic!("a metric") };
    assert_eq!(
        (left.metric.name().as_str(), &left.levels[..]),
        ("critical.ttft_p99", &[Some(1), Some(1), None][..])
    );
    let (factor, rest) = part.right.factored();
    assert!((factor - 0.5).abs() < 1e-12 && matches!(rest, Expr::Value(_)));
}

#[test]
fn values_follow_the_usual_order_of_operations() {
    let of =
        |reference: &Reference| Some(if reference.metric.name() == "offered" { 10.0 } else { 4.0 });
    for (text, value) in [
        ("offered - completed - 1", 5.0),
        ("offered - (completed - 1)", 7.0),
        ("2 * offered + completed / 2", 22.0),
        ("offered / completed * 2", 5.0),
        ("50% * offered", 5.0),
        ("offered + 1e1", 20.0),
    ] {
        let expr = parse_value(text, &design()).expect("legal");
        assert_eq!(expr.value(&of), Some(value), "{text}");
    }
    let seconds = parse_value("ttft_p99 + 1.5s", &design()).expect("legal");
    assert_eq!(seconds.value(&|_| Some(10.0)), Some(1_510.0), "latencies are in ms");
    let nothing = parse_value("offered / (completed - completed)", &design()).expect("legal");
    assert_eq!(nothing.value(&of), None, "not a number is no number");
}

#[test]
fn a_number_on_the_left_changes_sides() {
    assert_eq!(read("200 >= ttft_p99(full)").text(&design()), "ttft_p99(full) <= 200");
    assert_eq!(read("1 < hit_rate(full)").text(&design()), "hit_rate(full) > 1");
}

#[test]
fn mistakes_are_pointed_at() {
    for (text, part, message) in [
        ("ttft_p98(full) < 1", "ttft_p98", "unknown number `ttft_p98`, did you mean"),
        ("critcal.ttft_p99 < 1", "critcal.ttft_p99", "unknown class `critcal`, did you mean"),
        ("ttft_p99(ful) < 1", "ful", "unknown arm `ful`, did you mean `full`?; known: `base`"),
        ("ttft_p99(full @ burst) < 1", "burst", "unknown workload `burst`"),
        ("ttft_p99(full, kv=9000) < 1", "kv", "unknown swept field `kv`"),
        ("ttft_p99(total_kv_blocks=9) < 1", "9", "unknown total_kv_blocks `9`; known: `9000`"),
        ("ttft_p99(full, base) < 1", "base", "names the arm twice"),
        ("ttft_p99(full) < hit_rate(full)", "ttft_p99(full) < hit_rate(full)", "compares milli"),
        ("ttft_p99 * ttft_p99 < 1", "ttft_p99 * ttft_p99", "milliseconds * milliseconds is not"),
        ("ttft_p99 - hit_rate < 1", "ttft_p99 - hit_rate", "milliseconds - a count or share"),
        ("ttft_p99(full) = 1", "=", "found `=`; legal: a comparison: `<`"),
        ("ttft_p99(full) ~ 10", "", "found the end; legal: `within` and a percentage"),
        ("ttft_p99(full) ~ 10 within 5", "5", "legal: a percentage"),
        ("10 ~ ttft_p99 within 5%", "10", "a number on the left"),
        ("ttft_p99 ~ 0 within 5%", "0", "nothing is within a percentage of 0"),
        ("1 < 2", "1 < 2", "`1 < 2` compares no metric"),
        ("ttft_p99(\"full) < 1", "\"full) < 1", "the quote is not closed"),
        ("ttft_p99(full < 1", "<", "found `<`; legal: `@ workload`, `,` or `)`"),
        (
            "ttft_p99(full",
            "",
            "found the end; legal: `)`; between `{` and `}` a comma ends a claim",
        ),
        ("ttft_p99(total_kv_blocks=9%) < 1", "9%", "`9%` needs quotes here; write `\"9%\"`"),
        ("ttft_p99(full) < 10min", "10min", "unknown unit `min`; known: `%`, `ms`, `s`"),
        ("ttft_p99(full) < 1 or 2", "1 or", "unknown unit `or`"),
        ("ttft_p99(full) < 1e999", "1e999", "`1e999` is no number"),
        ("ttft_p99 / 0 < 1", "0", "divides by zero"),
        ("ttft_p99 <", "", "found the end; legal: a number or a metric"),
        ("", "", "found the end; legal: a number or a metric"),
        ("ttft_p99 < 1 \u{1f600}", "\u{1f600}", "found `\u{1f600}`; legal: `and`"),
    ] {
        let mistake = parse(text, &design()).expect_err(text);
        assert_eq!(&text[mistake.at.clone()], part, "{text}: {mistake:?}");
        assert!(mistake.message.starts_with(message), "{text}: {}", mistake.message);
    }
    let deep = format!("{}1{} < ttft_p99", "(".repeat(40), ")".repeat(40));
    assert!(parse(&deep, &design()).is_err_and(|m| m.message.contains("nested deeper")));
    let long = format!("ttft_p99 < 1{}", " ".repeat(3_000));
    assert!(parse(&long, &design()).is_err_and(|m| m.message.contains("legal: at most")));
}

#[test]
fn an_arm_of_a_study_without_arms_is_a_mistake() {
    let mistake = parse("ttft_p99(full) < 1", &Design::default()).expect_err("no arms");
    assert_eq!(mistake.message, "the study has no arms; remove it, or add `arms:`");
    parse("ttft_p99 < 1", &Design::default()).expect("every cell");
}

/// A random expression, and how often each kind was made.
fn expression(dice: &mut Dice, depth: usize, made: &mut [usize; 6]) -> Expr {
    let kind = dice.below(if depth == 0 { 2 } else { 4 });
    if kind == 0 {
        made[0] += 1;
        return Expr::Number((dice.unit() * 1e6).round() / 1e3, Suffix::None);
    }
    if kind == 1 || depth == 0 {
        let design = design();
        let levels = design.factors.iter().map(|factor| {
            let level = dice.below(factor.levels.len() + 1);
            (level < factor.levels.len()).then_some(level)
        });
        let levels: Vec<Option<usize>> = levels.collect();
        made[1] += 1;
        made[2] += usize::from(levels.iter().any(Option::is_none));
        let metric = Metric::parse(["offered", "critical.completed"][dice.below(2)]);
        return Expr::Value(Reference { metric: metric.expect("known"), levels });
    }
    let op = [Op::Plus, Op::Minus, Op::Times, Op::Over][dice.below(4)];
    made[3] += 1;
    let left = expression(dice, depth - 1, made);
    let right = expression(dice, depth - 1, made);
    Expr::Binary(Box::new(left), op, Box::new(right))
}

#[test]
fn what_is_written_reads_back_as_the_same_claim() {
    let design = design();
    let mut made = [0; 6];
    for key in 0..3_000 {
        let mut dice = Dice::new(1, Purpose::Sampling, key);
        let parts = (0..=dice.below(3)).map(|_| {
            let metric = Metric::parse("rejected").expect("known");
            let one = Expr::Value(Reference { metric, levels: vec![None; 3] });
            // A reference on the left, so that no side is a number alone.
            let other = expression(&mut dice, 3, &mut made);
            let left = Expr::Binary(Box::new(one), Op::Plus, Box::new(other));
            let relation = match dice.below(3) {
                0 => Relation::Below,
                1 => Relation::AtLeast,
                _ => Relation::About(f64::from(1 + u32::try_from(key % 97).expect("few")) / 100.0),
            };
            made[4] += usize::from(matches!(relation, Relation::About(_)));
            Comparison { left, relation, right: expression(&mut dice, 3, &mut made) }
        });
        let claim = Claim { parts: parts.collect() };
        let text = claim.text(&design);
        match parse(&text, &design) {
            Ok(found) => assert_eq!(found, claim, "{text}"),
            Err(Mistake { message, .. }) => {
                made[5] += 1;
                let why = ["divides by zero", "nothing is within a percentage of 0"];
                assert!(why.iter().any(|why| message.starts_with(why)), "{text}: {message}");
            }
        }
    }
    let [numbers, values, free, operations, about, refused] = made;
    assert!(numbers.min(values).min(free).min(operations).min(about) > 1_000, "{made:?}");
    assert!(refused < 300, "{refused} claims were not read");
}

#[test]
fn no_text_makes_the_reader_panic() {
    let pieces = ["ttft_p99", "(", ")", "full", "@", "\"", ",", "=", "1", ".", "%", "~", "within"];
    let others = ["and", "<", "-", "*", "/", " ", "\u{e9}", "e9", "ms", "hit_rate"];
    let mut legal = 0;
    for key in 0..20_000 {
        let mut dice = Dice::new(2, Purpose::Sampling, key);
        let mut piece = |_| {
            let all = dice.below(pieces.len() + others.len());
            *pieces.iter().chain(&others).nth(all).expect("below their number")
        };
        let (start, more) = if key % 2 == 0 { ("", 9) } else { ("ttft_p99<", 3) };
        let text = start.to_owned() + &(0..more).map(&mut piece).collect::<String>();
        match parse(&text, &design()) {
            Ok(_) => legal += 1,
            Err(mistake) => assert!(text.get(mistake.at).is_some(), "{text}"),
        }
    }
    assert!(legal > 20, "only {legal} of them were claims");
}
