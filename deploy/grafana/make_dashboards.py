#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the dashboards: overview.json, pools.json, kv_transfer.json, capacity.json.

make_dashboards.py [FOLDER]: FOLDER is this file's by default. A panel is its title, unit, description and queries;
promql.py has the forms of the queries, dashboard_json.py the form of the JSON.
"""

import json
import pathlib
import sys

from dashboard_json import ORANGE, RED, Panel, dashboard_json
from promql import level, mean, of_baton, or_zero, quantile, quantiles, rate, ratio, series, share

TOKENS = "suffix: tokens/s"
PER_SECOND = "suffix:/s"
PREFILL, DECODE = 'role=~"prefill|both"', 'role=~"decode|both"'
NEEDS_RULES = "needs deploy/prometheus/baton.rules.yaml"
MISSED = 'baton:slo_missed:ratio_rate'
TTFT_AND_TPOT = 'slo=~"ttft|tpot"'
ANSWERED = 'outcome=~"stop|length"'
FAILED = 'outcome!~"stop|length|CANCELLED"'
LOCAL = 'prefill="local"'
ROOM = 'state=~"free|cached"'


def now(title, unit, description, query, colors=(), no_value=""):
    return Panel(title, unit, description, {title: query}, width=4, height=4, kind="stat", colors=colors, no_value=no_value)


def within_objectives(bound):
    """Requests per second that meet both objectives, from the shares that meet each of them."""
    of = "namespace, model"
    return f"{rate('baton_requests_total', of, ANSWERED)} * on ({of}) {bound}"


MET = f"(1 - {series(f'{MISSED}5m', TTFT_AND_TPOT)})"
AT_MOST = f"min by (namespace, model) {MET}"
AT_LEAST = f"clamp_min(sum by (namespace, model) {MET} - count by (namespace, model) {MET} + 1, 0)"

OVERVIEW = {
    "Now": [
        now("Requests", "reqps", "Requests that end per second.", rate("baton_requests_total")),
        now("TTFT p95", "s", "95 % of first tokens come sooner.", quantile(0.95, "baton_time_to_first_token_seconds")),
        now("TPOT p95", "s", "95 % of requests have a smaller mean time per output token.",
            quantile(0.95, "baton_time_per_output_token_seconds")),
        now("Failed", "percentunit", "Share of requests that end with an error. Requests that clients cancel do not count.",
            share(rate("baton_requests_total", where=FAILED), rate("baton_requests_total")),
            colors=((0.001, ORANGE), (0.01, RED))),
        now("Ready pairs", "none", "Ready pairs of the router that has the fewest.",
            level("baton_ready_pairs", function="min"), colors=((0, RED), (1, "green"))),
        now("Workers lost", "none", "Workers that a router no longer hears.",
            level("baton_workers", where='state="lost"', function="max"), colors=((1, RED),)),
    ],
    "Latency": [
        Panel("TTFT", "s", "A request's arrival to its first token.", quantiles("baton_time_to_first_token_seconds", "model")),
        Panel("TPOT", "s", "Mean time per output token after the first, one value per request that finished.",
              quantiles("baton_time_per_output_token_seconds", "model")),
        Panel("ITL", "s", "Gap between consecutive output tokens. Resolved up to 100 ms.",
              quantiles("baton_inter_token_latency_seconds", "model")),
        Panel("End to end", "s", "A request's arrival to its end.", quantiles("baton_request_duration_seconds", "model")),
        Panel("Queue", "s", "A request's arrival to the start of its last attempt before the first token.",
              quantiles("baton_request_queue_seconds", "model")),
        Panel("Requests in progress", "percentunit", "Requests that run or wait over the most that may, by router.",
              {"{{instance}}": ratio(level("baton_running_requests", "instance"),
                                     level("baton_max_running_requests", "instance"))}, most=1),
    ],
    "Requests": [
        Panel("Requests by outcome", "reqps", "Requests that end per second.",
              {"{{outcome}}": rate("baton_requests_total", "outcome")}, width=8, stack=True),
        Panel("Errors by cause", "reqps", "Requests that end with an error per second, by the name of the gRPC status.",
              {"{{outcome}}": or_zero(rate("baton_requests_total", "outcome", 'outcome!~"stop|length"'), "outcome")}, width=8,
              stack=True),
        Panel("Tokens", TOKENS, "Tokens of requests that finished.",
              {"prompt {{model}}": rate("baton_prompt_tokens_total", "model"),
               "output {{model}}": rate("baton_generated_tokens_total", "model")}, width=8),
    ],
    "Objectives": [
        Panel("Attainment", "percentunit", "Share of requests that meet an objective, in the last 5 minutes. "
              "The rules have the objectives.",
              {"{{slo}} {{model}}": f"1 - {series(MISSED + '5m')}"}, width=8, most=1, no_value=NEEDS_RULES),
        Panel("Burn rate", "none", "Share of requests that miss an objective, over the share that may miss the objective. "
              "At 1, the budget of 30 days lasts 30 days.",
              {f"{{{{slo}}}} {{{{model}}}} {window}":
               f"{series(MISSED + window)} / on (slo) group_left () baton:slo_budget:ratio" for window in ("1h", "6h", "3d")},
              width=8, no_value=NEEDS_RULES),
        Panel("Goodput", "reqps", "Requests per second that meet both the TTFT and the TPOT objective. Two histograms cannot say "
              "which request meets both: the number lies between these bounds.",
              {"at most {{model}}": within_objectives(AT_MOST), "at least {{model}}": within_objectives(AT_LEAST)}, width=8,
              no_value=NEEDS_RULES),
        Panel("Requests within objectives of their own", "percentunit", "Share of the requests with objectives "
              "(ttft_slo_seconds, tpot_slo_seconds, or the router's --ttft-slo and --tpot-slo) that met them.",
              {"{{slo}} {{model}}": or_zero(
                  f"{rate('baton_slo_attained_total', 'model, slo')} / on (model) group_left () "
                  f"({rate('baton_slo_requests_total', 'model')} > 0)", "slo")}, height=6),
        Panel("Late requests", "reqps", "Requests whose first token would come too late because of the load, by what was done: "
              "refused, or served with priority batch (--when-late).",
              {"{{treatment}} {{model}}": rate("baton_late_requests_total", "treatment, model")}, height=6, stack=True),
    ],
    "Workers": [
        Panel("Running sequences", "none", "Sequences that hold a place in the batch, by role.",
              {"{{role}}": level("baton_worker_running_sequences", "role")}, width=8),
        Panel("Waiting sequences", "none", "Attempts that wait for pages or a place in the batch, by role.",
              {"{{role}}": level("baton_worker_waiting_sequences", "role")}, width=8),
        Panel("Pages in use", "percentunit", "Share of pages that are neither free nor cached, by role.",
              {"{{role}}": ratio(level("baton_worker_kv_pages", "role", 'state!~"free|cached"'),
                                 level("baton_worker_kv_pages", "role"))}, width=8, most=1),
    ],
}


def both_pools(title, unit, description, queries, **options):
    """The panel for prefill on the left, for decode on the right. `queries` makes the queries of a pool."""
    return [Panel(f"{name}: {title}", unit, description, queries(where), **options)
            for name, where in (("Prefill", PREFILL), ("Decode", DECODE))]


def queue(where):
    stage = "prefill" if where == PREFILL else "decode"
    return quantiles("baton_worker_queue_seconds", "", f'{where}, stage="{stage}"')


def prompt_tokens(where):
    tokens = {kind: rate(f"baton_worker_prompt_tokens_{kind}_total", "", where) for kind in ("computed", "cached", "received")}
    if where == DECODE:
        tokens["sampled"] = rate("baton_worker_output_tokens_sampled_total", "", where)
    return tokens


def cache_hits(where):
    kinds = [rate(f"baton_worker_prompt_tokens_{kind}_total", "instance", where) for kind in ("computed", "cached", "received")]
    return {"{{instance}}": ratio(kinds[1], f"({' + '.join(kinds)})")}


POOLS = {
    "Load": [
        *both_pools("sequences", "none", "Running: sequences that hold a place in the batch. Waiting: attempts that wait for "
                    "pages or a place.", lambda where: {
                        "running {{instance}}": level("baton_worker_running_sequences", "instance", where),
                        "waiting {{instance}}": level("baton_worker_waiting_sequences", "instance", where)}),
        *both_pools("places taken", "percentunit", "Running sequences over the places in the batch, waiting attempts over the "
                    "places in the queue.", lambda where: {
                        f"{name} {{{{instance}}}}": ratio(level(f"baton_worker_{name}_sequences", "instance", where),
                                                          level(f"baton_worker_max_{name}_sequences", "instance", where))
                        for name in ("running", "waiting")}, most=1),
        *both_pools("queue", "s", "Waiting for the first step. Prefill: of a prompt computed here. Decode: of a sequence that "
                    "was handed over.", queue),
    ],
    "Steps": [
        *both_pools("batch", "none", "Sequences in a step.", lambda where: {
            "mean {{instance}}": mean("baton_worker_step_sequences", "instance", where),
            "p95": quantile(0.95, "baton_worker_step_sequences", "", where)}),
        *both_pools("step time", "s", "Duration of a step.", lambda where: quantiles("baton_worker_step_seconds", "", where)),
        Panel("Prefill: prompt time", "s", "First step of a prompt to its first token.",
              quantiles("baton_worker_prefill_seconds", "", PREFILL)),
        Panel("Decode: output tokens", TOKENS, "Output tokens sampled, also those that a client never gets.",
              {"{{instance}}": rate("baton_worker_output_tokens_sampled_total", "instance", DECODE)}, stack=True),
    ],
    "Tokens": [
        *both_pools("tokens", TOKENS, "Prompt tokens by source: computed here, cached here, received from another worker. "
                    "Sampled: output tokens.", prompt_tokens),
        *both_pools("cache hits", "percentunit", "Share of prompt tokens whose pages were cached at the worker.", cache_hits,
                    most=1),
    ],
    "Pages": [
        *both_pools("pages", "none", "Pages by state. Free and cached pages are room for new sequences.", lambda where: {
            "{{state}}": level("baton_worker_kv_pages", "state", where)}, stack=True),
    ],
    "Placement": [
        Panel("Placements", PER_SECOND, "Attempts placed per second. Local: the decode worker computes the prompt. Remote: a "
              "prefill worker does.", {"{{prefill}}": rate("baton_placements_total", "prefill")}, width=8, stack=True),
        Panel("Local prefills", "percentunit", "Share of attempts whose prompt the decode worker computes.",
              {"{{model}}": share(rate("baton_placements_total", "model", LOCAL), rate("baton_placements_total", "model"))},
              width=8, most=1),
        Panel("Cached tokens per attempt", "none", "Expected: prompt tokens that the router believed cached when it placed an "
              "attempt. Found: prompt tokens cached at the worker that computes the prompt.",
              {"expected {{model}}": ratio(rate("baton_expected_cached_tokens_total", "model"),
                                           rate("baton_placements_total", "model")),
               "found {{model}}": ratio(rate("baton_worker_prompt_tokens_cached_total", "model", 'role!="decode"'),
                                        rate("baton_placements_total", "model"))}, width=8),
    ],
    "KV tiers": [
        Panel("Pages in tiers", "none", "KV pages in each worker's tiers, and the pages for which the tiers have room.",
              {"{{instance}} {{tier}}": level("baton_worker_kv_tier_pages", "instance, tier"),
               "room {{instance}} {{tier}}": level("baton_worker_kv_tier_max_pages", "instance, tier")}, width=8),
        Panel("Bytes in tiers", "bytes", "Bytes of the KV pages in tiers, by worker.",
              {"{{instance}} {{tier}}": level("baton_worker_kv_tier_bytes", "instance, tier")}, width=8),
        Panel("Pages that the pool lacked", PER_SECOND, "KV pages of admitted prompts that the pool lacked: a tier had the page, no "
              "tier had it, or a tier had it and computing was estimated to be faster.",
              {"hit {{tier}}": rate("baton_worker_kv_tier_hit_pages_total", "tier"),
               "missed": rate("baton_worker_kv_tier_missed_pages_total"),
               "not loaded": rate("baton_worker_kv_tier_not_loaded_pages_total")}, width=8),
        Panel("Pages moved", PER_SECOND, "KV pages written to tiers, evicted from tiers, and loaded back.",
              {"stored {{tier}}": rate("baton_worker_kv_tier_stored_pages_total", "tier"),
               "evicted {{tier}}": rate("baton_worker_kv_tier_evicted_pages_total", "tier"),
               "loaded {{tier}}": rate("baton_worker_kv_tier_loaded_pages_total", "tier")}, width=8),
        Panel("Time of a load", "s", "How long prompts waited for their KV pages from tiers. Resolved up to 1 s.",
              {"p95": or_zero(quantile(0.95, "baton_worker_kv_tier_load_seconds"))}, width=8),
        Panel("Lost pages", PER_SECOND, "KV pages that did not reach a tier, by reason, and pages whose checksum differed.",
              {"{{reason}} {{tier}}": rate("baton_worker_kv_tier_dropped_pages_total", "reason, tier"),
               "corrupt {{tier}}": rate("baton_worker_kv_tier_corrupt_pages_total", "tier")}, width=8),
    ],
}

BYTES, HANDOFFS = "baton_worker_kv_transfer_bytes_total", "baton_worker_kv_transfer_seconds_count"
TRANSFER, EXPOSED = "baton_worker_kv_transfer_seconds", "baton_worker_kv_transfer_exposed_seconds"
FAILURES = "baton_worker_kv_transfer_failures_total"
OF_HANDOFFS = 'outcome=~"peer_lost|pair_mismatch|quarantined|revoked|unknown_attempt"'


def failed_handoffs(by):
    failed = rate(FAILURES, by)
    return ratio(failed, f"({failed} + ({rate(HANDOFFS, by)} or 0 * {failed}))")  # a sender's first handoff may fail


KV_TRANSFER = {
    "Now": [
        now("KV bytes", "Bps", "KV bytes sent per second, in handoffs that worked.", rate(BYTES)),
        now("Handoffs", PER_SECOND, "Handoffs that worked, per second.", rate(HANDOFFS)),
        now("Transfer p95", "s", "95 % of KV transfers take less time.", quantile(0.95, TRANSFER)),
        now("Exposed share", "percentunit", "Share of the transfer time that follows the end of the prefill. Compute does not "
            "hide this part.", ratio(rate(f"{EXPOSED}_sum"), rate(f"{TRANSFER}_sum"))),
        now("Failed", "percentunit", "Share of handoffs that were cut off or lost.", failed_handoffs(""),
            colors=((0.001, ORANGE), (0.05, RED))),
        now("Quarantine", "none", "Pages to which a silent or lost peer may still write.",
            level("baton_worker_kv_pages", where='state="quarantined"'), colors=((1, ORANGE),)),
    ],
    "Throughput": [
        Panel("KV bytes sent", "Bps", "KV bytes sent per second, by the worker that sends and the transport.",
              {"{{role}} {{instance}} {{transport}}": rate(BYTES, "role, instance, transport")}, stack=True),
        Panel("Speed of a transfer", "Bps", "KV bytes of handoffs over the time of their transfers, by the worker that sends and "
              "the transport. A transfer that waits for the computation of its prompt is slow for this reason only.",
              {"{{role}} {{instance}} {{transport}}": ratio(rate(BYTES, "role, instance, transport"),
                                                            rate(f"{TRANSFER}_sum", "role, instance, transport"))}),
        Panel("Handoffs", PER_SECOND, "Handoffs that worked per second, by the worker that sends.",
              {"{{role}} {{instance}}": rate(HANDOFFS, "role, instance")}, stack=True),
        Panel("KV bytes per handoff", "bytes", "Mean KV bytes of a handoff that worked.",
              {"{{role}} {{instance}}": ratio(rate(BYTES, "role, instance"), rate(HANDOFFS, "role, instance"))}),
    ],
    "Time": [
        Panel("Transfer", "s", "First KV page sent to the other worker's report that the sequence has arrived.",
              quantiles(TRANSFER), width=8),
        Panel("Exposed part", "s", "The part of a transfer that follows the end of the prefill. Resolved up to 100 ms.",
              quantiles(EXPOSED), width=8),
        Panel("Exposed share", "percentunit", "Share of the transfer time that compute does not hide, by the worker that sends.",
              {"{{role}} {{instance}}": ratio(rate(f"{EXPOSED}_sum", "role, instance"), rate(f"{TRANSFER}_sum", "role, instance"))},
              width=8),
    ],
    "Failures": [
        Panel("Failed handoffs", PER_SECOND, "Handoffs that were cut off or lost per second, by the worker that sends.",
              {"{{role}} {{instance}}": rate(FAILURES, "role, instance")}),
        Panel("Share of failed handoffs", "percentunit", "Failed handoffs over all handoffs, by the worker that sends.",
              {"{{role}} {{instance}}": failed_handoffs("role, instance")}),
        Panel("Quarantine", "none", "Pages to which a silent or lost peer may still write, by receiver.",
              {"{{role}} {{instance}}": level("baton_worker_kv_pages", "role, instance", 'state="quarantined"')}),
        Panel("Oldest quarantine", "s", "How long the page that has been in quarantine longest has been there, by receiver.",
              {"{{role}} {{instance}}": level("baton_worker_quarantine_oldest_seconds", "role, instance", function="max")}),
        Panel("Attempts that handoffs end", PER_SECOND, "Attempts that ended for a reason of the handoff, by role and outcome.",
              {"{{role}} {{outcome}}": or_zero(rate("baton_worker_attempts_total", "role, outcome", OF_HANDOFFS), "outcome")}),
    ],
}

RETRIED = 'outcome!~"finished|migrated|cancelled|deadline_exceeded"'
WORKED = 'outcome!~"finished|handed_over|migrated|cancelled"'
CAPACITY = {
    "Workers": [
        Panel("Workers", "none", "Workers by state, as seen by the router that counts most in the state.",
              {"{{state}}": level("baton_workers", "state", function="max")}),
        Panel("Ready pairs", "none", "Pairs of workers that take requests, by router.",
              {"{{instance}}": level("baton_ready_pairs", "instance")}),
        Panel("Room in pages", "percentunit", "Share of pages that are free or cached, by worker.",
              {"{{role}} {{instance}}": ratio(level("baton_worker_kv_pages", "role, instance", ROOM),
                                              level("baton_worker_kv_pages", "role, instance"))}, most=1),
        Panel("Waiting sequences", "none", "Attempts that wait for pages or a place in the batch, by worker.",
              {"{{role}} {{instance}}": level("baton_worker_waiting_sequences", "role, instance")}),
    ],
    "Roles": [
        Panel("Desired workers", "none", "Workers of each role that the load wants, by the router's balance controller (--balance).",
              {"{{role}} {{model}}": level("baton_desired_workers", "role, model", function="max")}, width=8),
        Panel("Pressure of a role", "none", "Load of a role's workers, over the load that the workers can take.",
              {"{{role}} {{model}}": level("baton_role_pressure_ratio", "role, model", function="max")}, width=8),
        Panel("Changes of roles", PER_SECOND, "Changes of a worker's role that the controller asked for, by the new role and result.",
              {"{{role}} {{result}}": or_zero(rate("baton_role_switches_total", "role, result"), "result")}, width=8),
    ],
    "Attempts": [
        Panel("Attempts per request", "none", "Attempts that ended, over requests that ended. 1: no request needed another "
              "attempt.", {"{{model}}": ratio(rate("baton_attempts_total", "model"), rate("baton_requests_total", "model"))},
              width=8),
        Panel("Retries by outcome", PER_SECOND, "Attempts per second that neither finished nor migrated nor ended by the "
              "client's will.", {"{{outcome}}": or_zero(rate("baton_attempts_total", "outcome", RETRIED), "outcome")}, width=8,
              stack=True),
        Panel("Migrations", PER_SECOND, "Attempts per second that went on at another decode worker with their KV.",
              {"{{model}}": or_zero(rate("baton_attempts_total", "model", 'outcome="migrated"'), "model")}, width=8),
        Panel("Pauses", "s", "Gap between the last token of an attempt and the first token of the next, by the first attempt's "
              "outcome.", {f"p{percent} {{{{cause}}}}": or_zero(quantile(percent / 100, "baton_pause_seconds", "cause"), "cause")
                           for percent in (50, 95)}, width=8),
        Panel("Worker attempts that fail", PER_SECOND, "Attempts that ended early at a worker per second, by role and outcome. "
              "The log says whose fault the end is.",
              {"{{role}} {{outcome}}": or_zero(rate("baton_worker_attempts_total", "role, outcome", WORKED), "outcome")}, width=8),
        Panel("Tokens that differ", PER_SECOND, "Output tokens per second that came twice and differed. Any value above 0 is an "
              "error.", {"{{model}}": rate("baton_token_disagreements_total", "model")}, width=8),
    ],
    "Probes": [
        Panel("Probes", PER_SECOND, "Routers' probes of pairs that ended at a worker per second, by role and outcome.",
              {"{{role}} {{outcome}}": rate("baton_worker_probes_total", "role, outcome")}, width=24, height=6, stack=True),
    ],
    "Processes": [
        Panel("CPU", "none", "Cores in use, by process.",
              {"{{job}} {{instance}}": f"rate({series('process_cpu_seconds_total')}[$__rate_interval]) "
                                       f"and on (job, instance) {series('baton_build_info')}"}, width=8),
        Panel("Memory", "bytes", "Memory in RAM, by process.",
              {"{{job}} {{instance}}": of_baton("process_resident_memory_bytes")}, width=8),
        Panel("File descriptors", "percentunit", "Open file descriptors, over the most that a process may have open.",
              {"{{job}} {{instance}}": f"{series('process_open_fds')} / {of_baton('process_max_fds')}"}, width=8, most=1),
        Panel("Time since start", "s", "How long a process has run. A fall to 0 is a restart.",
              {"{{job}} {{instance}}": f"time() - {of_baton('process_start_time_seconds')}"}),
        Panel("Builds", "none", "Processes by build of Baton.",
              {"processes": f"count by (version, revision, compiler) ({series('baton_build_info')})"}, kind="table"),
    ],
}

DASHBOARDS = {
    "overview": ("Baton / Overview", "What clients see: latencies, requests, errors, objectives.", OVERVIEW),
    "pools": ("Baton / Pools", "Prefill and decode workers side by side.", POOLS),
    "kv_transfer": ("Baton / KV transfer", "Handoffs of KV pages between workers.", KV_TRANSFER),
    "capacity": ("Baton / Capacity and failures", "Workers, attempts, probes and processes.", CAPACITY),
}


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
    folder = folder if folder.is_dir() else folder.parent
    for name, (title, description, rows) in DASHBOARDS.items():
        made = dashboard_json(f"baton-{name.replace('_', '-')}", title, description, rows)
        (folder / f"{name}.json").write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
