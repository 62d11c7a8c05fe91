//! The broker: reachable, of which version, its queues as this program declares them. Nothing is declared.

use anyhow::Result;
use broker::{Rabbit, Survey};
use host::config::Config;
use host::secret::Secret;
use worker::executor::Relayed;

use super::report::{Check, Report};
use crate::fleet::relayed_pools;

/// Names of queues, and texts about them, that are told at most.
const SHOWN_MAX: usize = 3;

/// `shards`: how many the fleet has, if that is known.
pub async fn look(config: &Config, url: &Secret, shards: Option<u16>, report: &mut Report) {
    match survey(config, url, shards.unwrap_or(0)).await {
        Ok(survey) => {
            report.push(server(survey.server.as_deref()));
            report.push(queues(&survey, shards));
            report.push(dead(survey.dead));
        }
        Err(error) => report.add("broker", false, format!("{error:#}")),
    }
}

async fn survey(config: &Config, url: &Secret, shards: u16) -> Result<Survey> {
    let pools: Vec<String> = relayed_pools(config)?.iter().map(Relayed::queue).collect();
    Ok(Rabbit::survey(url.expose(), shards, &pools).await?)
}

fn server(told: Option<&str>) -> Check {
    let Some(told) = told else {
        return Check::new("broker", true, "takes connections, and does not tell its version");
    };
    let detail = format!("{told} takes connections");
    match release(told) {
        Some(release) if release < (3, 10, 0) => {
            Check::new("broker", false, format!("{told} is too old; 3.10 or newer is needed"))
        }
        Some(release) if ((4, 3, 0)..=(4, 3, 5)).contains(&release) => Check::warning(
            "broker",
            format!("{detail}; this release can stop the only consumer of a quorum queue, use another one"),
        ),
        _ => Check::new("broker", true, detail),
    }
}

/// Of RabbitMQ; what else speaks its protocol counts otherwise.
fn release(told: &str) -> Option<(u32, u32, u32)> {
    let version = told.strip_prefix("RabbitMQ ")?;
    let mut parts = version.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u32>().ok());
    Some((parts.next()??, parts.next()??, parts.next().flatten().unwrap_or(0)))
}

fn queues(survey: &Survey, shards: Option<u16>) -> Check {
    let mut told = Vec::new();
    if !survey.missing.is_empty() {
        let names = some(&survey.missing, ", ");
        told.push(format!("not there: {names}; a dispatcher or worker makes them when it connects"));
    }
    if !survey.wrong.is_empty() {
        told.push(some(&survey.wrong, "; "));
    }
    match (told.is_empty(), shards) {
        (false, _) => Check::new("queues", false, told.join(". ")),
        (true, Some(shards)) => Check::new("queues", true, format!("as declared, those of {shards} shards, too")),
        (true, None) => Check::warning(
            "queues",
            "as declared, but for those of the shards: only the database says how many there are",
        ),
    }
}

/// The first few of many.
fn some(texts: &[String], separator: &str) -> String {
    let shown = texts[..texts.len().min(SHOWN_MAX)].join(separator);
    match texts.len().saturating_sub(SHOWN_MAX) {
        0 => shown,
        more => format!("{shown}{separator}and {more} more"),
    }
}

fn dead(count: Option<u32>) -> Check {
    match count {
        None => Check::new("dead letters", true, "not counted: they have no queue"),
        Some(0) => Check::new("dead letters", true, "none"),
        Some(count) => Check::new("dead letters", false, format!("{count}; `stepfleet dead list` shows them")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_told_by_what_is_known_of_them() {
        let told = |text| {
            let check = server(Some(text));
            (check.well, check.warning)
        };
        for good in ["RabbitMQ 3.10.8", "RabbitMQ 3.13.7", "RabbitMQ 4.1.0-rc.1", "RabbitMQ 4.3.6", "LavinMQ 2.0.0"] {
            assert_eq!(told(good), (true, false), "{good}");
        }
        for risky in ["RabbitMQ 4.3.0", "RabbitMQ 4.3.5", "RabbitMQ 4.3"] {
            assert_eq!(told(risky), (true, true), "{risky}");
        }
        assert_eq!(told("RabbitMQ 3.9.29"), (false, false));
        assert!(server(None).well);
    }

    #[test]
    fn queues_that_are_missing_or_otherwise_are_named() {
        let well = queues(&Survey::default(), Some(32));
        assert!(well.well && !well.warning && well.detail.contains("32 shards"), "{well:?}");
        assert!(queues(&Survey::default(), None).warning, "the queues of the shards were not looked at");
        let missing = (0..5).map(|n| format!("stepfleet.shard.{n}.work")).collect();
        let wrong = vec!["stepfleet.dead exists with other arguments; delete it".to_owned()];
        let unwell = queues(&Survey { missing, wrong, ..Survey::default() }, Some(5));
        assert!(!unwell.well);
        for part in ["stepfleet.shard.0.work", "and 2 more", "stepfleet.dead exists", "delete it"] {
            assert!(unwell.detail.contains(part), "{part}: {unwell:?}");
        }
        assert!(!unwell.detail.contains("stepfleet.shard.3.work"), "{unwell:?}");
    }

    #[test]
    fn dead_letters_are_unwell() {
        assert!(dead(Some(0)).well && dead(None).well);
        let some = dead(Some(2));
        assert!(!some.well && some.detail.contains("stepfleet dead list"), "{some:?}");
    }
}
