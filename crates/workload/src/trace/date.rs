//! Dates as the Azure traces write them: `2023-11-16 18:17:03.9799600`, with or without an offset.
//!
//! Only differences matter, so this is all of the calendar that is needed: no time zone database
//! and no leap seconds. A crate for it would be larger than everything else in this folder.

/// What is legal, in words.
pub(super) const LEGAL: &str = "a date such as 2023-11-16 18:17:03.9799600 (with up to 9 decimals \
                                and an offset such as +00:00), from 1970 to 2200";

const SECONDS_A_DAY: u64 = 24 * 3_600;
const NANOS_A_SECOND: u64 = 1_000_000_000;

/// Nanoseconds from the start of 1970 to the date in `text`, if it is one.
pub(super) fn parse(text: &str) -> Option<u64> {
    let (date, time) = text.split_once([' ', 'T'])?;
    let mut date = date.splitn(3, '-');
    let (year, month, day) = (digits(date.next()?, 4)?, digits(date.next()?, 2)?, date.next()?);
    let day = digits(day, 2)?;
    let legal = (1970..=2200).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days_in(year, month)).contains(&day);
    if !legal {
        return None;
    }
    let (clock, offset) = split_offset(time);
    let nanos =
        days_before(year, month, day) * SECONDS_A_DAY * NANOS_A_SECOND + time_of_day(clock)?;
    let minutes = offset.map_or(Some((true, 0)), offset_minutes)?;
    let shift = minutes.1 * 60 * NANOS_A_SECOND;
    if minutes.0 { nanos.checked_sub(shift) } else { nanos.checked_add(shift) }
}

/// The date that many nanoseconds after the start of 1970.
pub(super) fn show(nanos: u64) -> String {
    let (seconds, fraction) = (nanos / NANOS_A_SECOND, nanos % NANOS_A_SECOND);
    let (mut days, second) = (seconds / SECONDS_A_DAY, seconds % SECONDS_A_DAY);
    let (mut year, mut month) = (1970, 1);
    while days >= days_in_year(year) {
        days -= days_in_year(year);
        year += 1;
    }
    while days >= days_in(year, month) {
        days -= days_in(year, month);
        month += 1;
    }
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let day = days + 1;
    let whole = format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}");
    let decimals = format!("{fraction:09}");
    match decimals.trim_end_matches('0') {
        "" => whole,
        decimals => format!("{whole}.{decimals}"),
    }
}

/// The nanoseconds of `18:17:03.9799600`.
fn time_of_day(clock: &str) -> Option<u64> {
    let (clock, decimals) = match clock.split_once('.') {
        Some((clock, decimals)) if (1..=9).contains(&decimals.len()) => (clock, decimals),
        Some(_) => return None,
        None => (clock, "0"),
    };
    let mut parts = clock.splitn(3, ':');
    let (hour, minute, second) = (parts.next()?, parts.next()?, parts.next()?);
    let (hour, minute, second) = (digits(hour, 2)?, digits(minute, 2)?, digits(second, 2)?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let fraction = digits(decimals, decimals.len())?;
    let missing = u32::try_from(9 - decimals.len()).ok()?;
    let seconds = hour * 3_600 + minute * 60 + second;
    Some(seconds * NANOS_A_SECOND + fraction * 10_u64.pow(missing))
}

fn split_offset(time: &str) -> (&str, Option<&str>) {
    match time.find(['+', '-', 'Z']) {
        Some(place) => (&time[..place], Some(&time[place..])),
        None => (time, None),
    }
}

/// Whether the offset is ahead of UTC, and by how many minutes.
fn offset_minutes(offset: &str) -> Option<(bool, u64)> {
    if offset == "Z" {
        return Some((true, 0));
    }
    let (ahead, clock) = match offset.strip_prefix('+') {
        Some(clock) => (true, clock),
        None => (false, offset.strip_prefix('-')?),
    };
    let (hours, minutes) = clock.split_once(':')?;
    let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
    (hours <= 14 && minutes <= 59).then_some((ahead, hours * 60 + minutes))
}

/// Exactly `count` digits as a number.
fn digits(text: &str, count: usize) -> Option<u64> {
    let plain = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

fn days_before(year: u64, month: u64, day: u64) -> u64 {
    let leap_days = |year: u64| year / 4 - year / 100 + year / 400;
    let years = (year - 1970) * 365 + leap_days(year - 1) - leap_days(1969);
    let months: u64 = (1..month).map(|month| days_in(year, month)).sum();
    years + months + day - 1
}

fn days_in_year(year: u64) -> u64 {
    if is_leap(year) { 366 } else { 365 }
}

fn days_in(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_dates_are_read() {
        let second = NANOS_A_SECOND;
        for (text, nanos) in [
            ("1970-01-01 00:00:00", 0),
            ("1970-01-01 00:00:00.000000001", 1),
            ("2000-02-29 00:00:00", 951_782_400 * second),
            ("2023-11-16 18:17:03.9799600", 1_700_158_623 * second + 979_960_000),
            ("2024-05-10 00:00:00.009930+00:00", 1_715_299_200 * second + 9_930_000),
            ("2024-05-10T02:00:00+02:00", 1_715_299_200 * second),
            ("2024-05-09T22:30:00-01:30", 1_715_299_200 * second),
            ("2024-05-10T00:00:00Z", 1_715_299_200 * second),
        ] {
            assert_eq!(parse(text), Some(nanos), "{text}");
        }
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for text in [
            "",
            "2023-11-16",
            "18:17:03",
            "2023-11-16 18:17",
            "2023-11-16 18:17:60",
            "2023-11-16 24:00:00",
            "2023-11-31 00:00:00",
            "2023-02-29 00:00:00",
            "1900-02-28 00:00:00",
            "2201-01-01 00:00:00",
            "23-11-16 18:17:03",
            "2023-11-16 18:17:03.",
            "2023-11-16 18:17:03.1234567890",
            "2023-11-16 18:17:03 +00:00",
            "2023-11-16 18:17:03+0000",
            "2023-11-16 18:17:03+15:00",
            "2023/11/16 18:17:03",
            "1970-01-01 00:00:00+00:01",
            "16-11-2023 18:17:03",
            "2023-11-16 18:17:03Zulu",
            "１970-01-01 00:00:00",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_shown_reads_back_over_all_the_years() {
        let last = parse("2200-12-31 23:59:59.999999999").expect("legal");
        let mut nanos = 0;
        let mut days = 0;
        while nanos <= last {
            assert_eq!(parse(&show(nanos)), Some(nanos), "{nanos}");
            // Not a divisor of a day, so that all times of day occur.
            nanos += SECONDS_A_DAY * NANOS_A_SECOND + 61_234_567_891;
            days += 1;
        }
        assert!(days > 84_000, "{days} days");
    }
}
