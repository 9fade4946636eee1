"""What stands on the dashboard: rows of panels, and nothing of Grafana's JSON.

A panel asks by pipeline, summed over the pods that are chosen; by pod only where a pod's own number
helps. Every description says what it is and what to do when it moves.
"""

from rows import kafka, locks, output, overview, process, redis, safety

ROWS = {
    "Overview": overview.PANELS,
    "Locks": locks.PANELS,
    "Safety: fencing, dedupe, invariants": safety.PANELS,
    "Redis by node": redis.PANELS,
    "Kafka": kafka.PANELS,
    "Handler and output": output.PANELS,
    "Process": process.PANELS,
}
