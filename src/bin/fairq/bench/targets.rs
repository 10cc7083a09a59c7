//! The figures that have targets, beside them.

use serde::Serialize;

use super::floors::{self, Floors, Uncontended};
use super::handoff::{self, Handoff};
use super::idle::{self, Idle};
use super::load::{self, Load};
use super::{Bench, bytes, or_unknown, percent, us};
use crate::exit::Failure;
use crate::term::{Paint, Table};

#[derive(Serialize)]
pub struct Targets {
    #[serde(skip)]
    limit: u64,
    floors: Floors,
    uncontended: Uncontended,
    handoff: Handoff,
    load: Load,
    /// The same with so many slots that the server is what is saturated.
    wide: Load,
    idle: Idle,
    targets: Vec<Target>,
}

pub fn measure(bench: &mut Bench) -> Result<Targets, Failure> {
    let limit = bench.args.limit;
    let floors = bench.phase("floors: what this server does without fairq", floors::measure)?;
    let uncontended = bench.phase("one thread, nobody else", floors::uncontended)?;
    let handoff = bench.phase("hand-off between two processes", handoff::measure)?;
    let load = bench.phase("saturated limiter", load::measure)?;
    let wide = bench.phase("saturated server", load::measure_wide)?;
    let idle = bench.phase("idle waiters", idle::measure)?;
    let targets = targets(limit, &floors, &uncontended, &handoff, [&load, &wide], &idle);
    Ok(Targets { limit, floors, uncontended, handoff, load, wide, idle, targets })
}

/// A figure and the most (or least) that it should be.
#[derive(Serialize)]
struct Target {
    name: &'static str,
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_most: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_least: Option<f64>,
    met: bool,
}

impl Target {
    fn at_most(name: &'static str, value: f64, bound: f64) -> Target {
        Target { name, value, at_most: Some(bound), at_least: None, met: value <= bound }
    }

    fn at_least(name: &'static str, value: f64, bound: f64) -> Target {
        Target { name, value, at_most: None, at_least: Some(bound), met: value >= bound }
    }
}

impl Targets {
    /// Whether the limit held and nobody was overtaken. The rest are costs.
    pub fn promises_kept(&self) -> bool {
        self.load.promises_kept(self.limit) && self.wide.promises_kept(load::WIDE)
    }

    pub fn render(&self, paint: Paint) -> String {
        format!("{}\n{}", self.figures(), self.verdicts(paint))
    }

    fn figures(&self) -> String {
        let mut table = Table::new(&["measured", "", "beside"]);
        let mut row = |name: &str, value: String, beside: String| table.row(vec![name.into(), value, beside]);
        let (floors, load, idle) = (&self.floors, &self.load, &self.idle);
        row(
            "grants per second",
            format!("{:.0}", load.grants_per_s),
            format!("{:.0} pairs/s pipelined by the server alone", floors.ceiling_pairs_per_s),
        );
        row("server busy", percent(load.redis_cpu), "of one core".into());
        let each = &load.client_per_grant;
        row("client CPU per grant", us(each.cpu_us), format!("{:.2} context switches", each.switches));
        row("script calls per grant", format!("{:.2}", load.script_calls_per_grant), String::new());
        row(
            "server time per script call",
            us(load.redis_us_per_script_call),
            format!("{} with one client", us(floors.ceiling_us_per_script_call)),
        );
        row("most at once", load.most_at_once.to_string(), format!("limit {}", self.limit));
        row("overtakings", load.overtakings.to_string(), format!("of {} grants", load.grants_recorded));
        let wide = &self.wide;
        row(
            &format!("grants per second, limit {}", load::WIDE),
            format!("{:.0}", wide.grants_per_s),
            format!("server {}, {} for a grant", percent(wide.redis_cpu), us(1e6 * wide.redis_cpu / wide.grants_per_s)),
        );
        row(
            "release to next grant, other process",
            format!("p50 {}, p99 {}", us(self.handoff.p50_us), us(self.handoff.p99_us)),
            format!("bare publish to subscriber p50 {}, p99 {}", us(floors.publish_p50_us), us(floors.publish_p99_us)),
        );
        row(
            "acquire + release, one thread",
            format!("mean {}, p50 {}", us(self.uncontended.pair_mean_us), us(self.uncontended.pair_p50_us)),
            format!("two bare EVALSHA {}", us(2.0 * self.uncontended.evalsha_mean_us)),
        );
        row("idle waiters", idle.waiters.to_string(), format!("{} threads", or_unknown(idle.process_threads)));
        row("- script calls per second", format!("{:.1}", idle.script_calls_per_s), String::new());
        row("- their process", percent(idle.process_cpu), "of one core".into());
        row("- their process, memory each", bytes(idle.process_bytes_per_waiter), String::new());
        row("- server, memory each", bytes(Some(idle.redis_bytes_per_waiter)), String::new());
        table.render(2)
    }

    fn verdicts(&self, paint: Paint) -> String {
        let mut table = Table::new(&["target", "value", "wanted", ""]);
        for target in &self.targets {
            let wanted = match (target.at_most, target.at_least) {
                (Some(bound), _) => format!("<= {bound}"),
                (None, Some(bound)) => format!(">= {bound}"),
                (None, None) => String::new(),
            };
            let verdict = if target.met { paint.good("met") } else { paint.bad("MISSED") };
            table.row(vec![target.name.into(), format!("{:.3}", target.value), wanted, verdict]);
        }
        table.render(2)
    }
}

fn targets(
    limit: u64,
    floors: &Floors,
    uncontended: &Uncontended,
    handoff: &Handoff,
    [load, wide]: [&Load; 2],
    idle: &Idle,
) -> Vec<Target> {
    let mut targets = vec![
        Target::at_most("overtakings", load.overtakings as f64, 0.0),
        Target::at_most("most at once, above the limit", load.most_at_once.saturating_sub(limit) as f64, 0.0),
        Target::at_most("script calls per grant", load.script_calls_per_grant, 2.1),
        Target::at_most("server us per script call", floors.ceiling_us_per_script_call, 12.0),
        Target::at_most("hand-off p50 / bare publish p50", handoff.p50_us / floors.publish_p50_us, 2.0),
        Target::at_least("grants per second / pipelined pairs", load.grants_per_s / floors.ceiling_pairs_per_s, 0.7),
        Target::at_least("the same, server saturated", wide.grants_per_s / floors.ceiling_pairs_per_s, 0.8),
        Target::at_most("server us per grant, saturated", 1e6 * wide.redis_cpu / wide.grants_per_s, 18.0),
        Target::at_most(
            "acquire + release / two bare EVALSHA",
            uncontended.pair_mean_us / (2.0 * uncontended.evalsha_mean_us),
            1.3,
        ),
        Target::at_most("idle: script calls per second", idle.script_calls_per_s, 10.0),
        Target::at_most("idle: share of a core", idle.process_cpu, 0.01),
        Target::at_most("idle: server bytes per waiter", idle.redis_bytes_per_waiter, 250.0),
    ];
    if let Some(bytes) = idle.process_bytes_per_waiter {
        targets.push(Target::at_most("idle: process bytes per waiter", bytes, 1024.0));
    }
    targets
}
