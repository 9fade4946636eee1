//! Acquire + release of a fresh name with rslock, N in flight: one JSON line like that of
//! `fencepost bench locks --json`.
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rslock::LockManager;

const TTL: Duration = Duration::from_secs(10);

/// Locks and unlocks fresh names until `end`; what each cycle took, in ms, and how many failed.
async fn cycles(locks: LockManager, prefix: String, end: Instant) -> (Vec<f64>, u64) {
    let (mut took, mut errors, mut next) = (Vec::new(), 0, 0u64);
    loop {
        let begun = Instant::now();
        if begun >= end {
            return (took, errors);
        }
        let name = format!("{prefix}-{next}");
        next += 1;
        match locks.lock(name.as_bytes(), TTL).await {
            Ok(lock) => {
                locks.unlock(&lock).await;
                took.push(begun.elapsed().as_secs_f64() * 1e3);
            }
            Err(_) => errors += 1,
        }
    }
}

fn usage() -> ! {
    eprintln!("usage: rslock-bench --redis HOST:PORT,… [--in-flight N] [--seconds S]");
    std::process::exit(2)
}

fn main() {
    let (mut nodes, mut in_flight, mut seconds) = (String::new(), 256usize, 5.0f64);
    let mut arguments = std::env::args().skip(1);
    while let Some(option) = arguments.next() {
        let value = arguments.next().unwrap_or_else(|| usage());
        match option.as_str() {
            "--redis" => nodes = value,
            "--in-flight" => in_flight = value.parse().unwrap_or_else(|_| usage()),
            "--seconds" => seconds = value.parse().unwrap_or_else(|_| usage()),
            _ => usage(),
        }
    }
    if nodes.is_empty() {
        usage()
    }
    let runtime = tokio::runtime::Runtime::new().expect("tokio");
    runtime.block_on(async {
        let urls: Vec<String> = nodes.split(',').map(|n| format!("redis://{n}")).collect();
        let locks = LockManager::new(urls);
        let run = SystemTime::now().duration_since(UNIX_EPOCH).expect("clock").as_nanos() as u64;
        let start = Instant::now();
        let end = start + Duration::from_secs_f64(seconds);
        let tasks: Vec<_> = (0..in_flight)
            .map(|i| {
                let prefix = format!("fencepost:{{rslock}}:{run:016x}-{i}");
                tokio::spawn(cycles(locks.clone(), prefix, end))
            })
            .collect();
        let (mut took, mut errors) = (Vec::new(), 0);
        for task in tasks {
            let (more, failed) = task.await.expect("a task");
            took.extend(more);
            errors += failed;
        }
        let elapsed = start.elapsed().as_secs_f64();
        took.sort_by(|a, b| a.total_cmp(b));
        let at = |q: f64| took.get((q * (took.len().max(1) - 1) as f64) as usize).copied();
        println!(
            "{{\"cycles_per_s\":{:.0},\"p50_ms\":{:.3},\"p99_ms\":{:.3},\"errors\":{errors}}}",
            took.len() as f64 / elapsed,
            at(0.5).unwrap_or(0.0),
            at(0.99).unwrap_or(0.0)
        );
    });
}
