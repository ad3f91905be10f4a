//! `plan VERB INPUTS`: what a job would do, before it is done.

use petal_lines::{Forecast, Mode, SetJob, Settings, Verb};
use serde_json::json;

use super::print;
use crate::args::{Memory, PlanArgs};
use crate::exit::{Failure, Outcome, Result};
use crate::progress::Teller;
use crate::text;

pub(super) fn run(verb: Verb, args: &PlanArgs) -> Result<Outcome> {
    let (first, others) = args.inputs();
    if verb != Verb::Dedup && others.is_empty() {
        return Err(Failure::Plain(
            "plan: something to compare with is missing; name B".to_owned(),
        ));
    }
    let mut settings = Settings::new(args.memory.unwrap_or(Memory::DEFAULT).bytes());
    settings.jobs = args.jobs.map_or(settings.jobs, usize::from);
    settings.delimiter = if args.null { 0 } else { b'\n' };
    settings.text = args.text;
    let teller = Teller::silent(false);
    settings.progress = &teller;
    let names: Vec<_> = first.iter().chain(&others).map(ToString::to_string).collect();
    let mode = Mode::Exact { strategy: args.strategy.map(Into::into) };
    let count = first.len();
    let forecast = SetJob { verb, first, others, mode }.forecast(&settings, !args.count)?;
    print(&if args.json {
        let mut value = json!(forecast);
        value["memory_cap_bytes"] = settings.memory.into();
        value["jobs"] = settings.jobs.into();
        format!("{value:#}\n")
    } else {
        table(&forecast, &names, count, &settings)
    })?;
    Ok(Outcome::Done)
}

/// The inputs, then a row for each fact. The first `first` names are one input.
fn table(forecast: &Forecast, names: &[String], first: usize, settings: &Settings<'_>) -> String {
    let mut text = String::new();
    let mut row = |name: &str, value: String| text.push_str(&format!("{name:<17} {value}\n"));
    let others = names[first..].iter().cloned();
    let names = [names[..first].join(" ")].into_iter().chain(others);
    for (name, input) in names.zip(&forecast.inputs) {
        row(
            &name,
            format!(
                "{}, about {} lines of {} bytes, {} of them distinct{}",
                text::size(input.bytes),
                text::count(input.lines),
                text::significant(input.bytes as f64 / input.lines.max(1) as f64),
                text::count(input.distinct.min(input.lines)),
                bounds(input.distinct_range),
            ),
        );
    }
    let [least, most] = forecast.seconds;
    row("memory", text::size(settings.memory));
    row("strategy", forecast.strategy.to_owned());
    row("passes", forecast.passes.to_string());
    row("reads", text::size(forecast.bytes_read));
    row("spills", text::size(forecast.spilled));
    row("candidates", text::count(forecast.candidates));
    row("false among them", text::count(forecast.false_candidates));
    let answer = text::count(forecast.kept);
    row("answer", format!("about {answer} lines{}", bounds(forecast.kept_range)));
    row("time", format!("{} to {} with {} threads", time(least), time(most), settings.jobs));
    text
}

/// The bounds of an estimate, unless it is exact.
fn bounds([least, most]: [u64; 2]) -> String {
    if least == most {
        return String::new();
    }
    format!(" (at least {}, at most {})", text::count(least), text::count(most))
}

/// Seconds as a person would say them.
fn time(seconds: f64) -> String {
    match seconds {
        0.0..120.0 => format!("{} s", text::significant((seconds * 10.0).ceil() / 10.0)),
        120.0..7200.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}
