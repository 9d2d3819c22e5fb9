# SPDX-License-Identifier: Apache-2.0
"""The forms of PromQL that the dashboards share. A form never returns NaN: where nothing happened, the series ends.

`where` adds matchers, `by` names labels to group by.
"""

# Metrics of routers without the label model.
OF_ROUTERS = {"baton_ready_pairs", "baton_workers", "baton_running_requests", "baton_max_running_requests"}


def series(metric, where=""):
    """The selected series of a metric. The pattern of a variable fits series without the label, too."""
    matchers = ['namespace=~"$namespace"']
    if metric not in OF_ROUTERS and metric.startswith("baton") and metric != "baton_build_info":
        matchers.append('model=~"$model"')
    if metric.startswith("baton_worker_"):
        matchers.append('role=~"$pool"')
    return f"{metric}{{{', '.join(matchers + ([where] if where else []))}}}"


def grouped(function, by):
    return f"{function} by ({by})" if by else function


def rate(metric, by="", where=""):
    return f"{grouped('sum', by)} (rate({series(metric, where)}[$__rate_interval]))"


def level(metric, by="", where="", function="sum"):
    return f"{grouped(function, by)} ({series(metric, where)})"


def ratio(part, whole):
    return f"{part} / ({whole} > 0)"


def share(part, whole):
    """A ratio that is 0 where `part` has no series. Both have the same labels."""
    return f"({part} or 0 * {whole}) / ({whole} > 0)"


def mean(histogram, by="", where=""):
    return ratio(rate(f"{histogram}_sum", by, where), rate(f"{histogram}_count", by, where))


def quantile(share, histogram, by="", where=""):
    """Without values, histogram_quantile returns NaN, which no comparison keeps."""
    le = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, {rate(f'{histogram}_bucket', le, where)}) >= 0"


def quantiles(histogram, by="", where="", shares=(0.5, 0.95, 0.99)):
    suffix = "".join(f" {{{{{label.strip()}}}}}" for label in by.split(",") if label)
    return {f"p{share * 100:g}{suffix}": quantile(share, histogram, by, where) for share in shares}


def or_zero(expression, label=""):
    """0 where nothing has happened yet: a counter with the label `outcome` or `cause` begins with the first event."""
    zero = f'label_replace(vector(0), "{label}", "none", "", "")' if label else "vector(0)"
    return f"{expression} or on () {zero}"


def of_baton(metric):
    """A metric of every process, for Baton's processes: others export the same names."""
    return f"{series(metric)} and on (job, instance) {series('baton_build_info')}"
