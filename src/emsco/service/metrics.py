"""Counters and monitors in the text format of Prometheus."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from emsco.service.counters import Key
from emsco.service.gate import BUCKETS
from emsco.service.profiles import SHIFT, UNAVAILABLE, UNSEEN, VALUES
from emsco.service.shelf import Served

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_Sample = tuple[dict[str, str], float]


def exposition(
    totals: Mapping[Key, float], served: Mapping[str, Served], watched: Mapping[str, Any], troubles: Mapping[str, str]
) -> str:
    """Return all metrics as text."""
    lines: list[str] = []
    for name, kind, said, samples in _families(totals, served, watched, troubles):
        lines += [f"# HELP {name} {said}", f"# TYPE {name} {kind}"]
        for labels, value in samples:
            suffix = labels.pop("__name__", "")
            inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
            lines.append(f"{name}{suffix}{{{inside}}} {value:.17g}" if inside else f"{name}{suffix} {value:.17g}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _families(
    totals: Mapping[Key, float], served: Mapping[str, Served], watched: Mapping[str, Any], troubles: Mapping[str, str]
) -> Iterator[tuple[str, str, str, list[_Sample]]]:
    yield "emsco_requests_total", "counter", "Requests answered.", [
        ({"route": key[1], "method": key[2], "status": key[3]}, n) for key, n in totals.items() if key[0] == "requests"
    ]  # fmt: skip
    yield "emsco_request_seconds", "histogram", "Time that requests took.", list(_histogram(totals))
    yield from _decided(totals, served)
    yield from _columns(totals)
    yield "emsco_outcomes_total", "counter", "True labels that were stored.", [
        ({"model": key[1]}, n) for key, n in totals.items() if key[0] == "outcomes"
    ]  # fmt: skip
    yield "emsco_model_info", "gauge", "The version of each model in use.", [
        ({"model": name, "version": model.version}, 1) for name, model in served.items()
    ]  # fmt: skip
    yield "emsco_model_loaded_timestamp_seconds", "gauge", "When the model was loaded.", [
        ({"model": name}, model.loaded_at) for name, model in served.items()
    ]  # fmt: skip
    yield "emsco_model_file_refused", "gauge", "Whether the file of a model cannot be used now.", [
        ({"model": name}, float(name in troubles)) for name in {**served, **troubles}
    ]  # fmt: skip
    yield "emsco_model_reloads_total", "counter", "Files that were loaded or refused since the start.", [
        ({"model": key[1], "result": key[2]}, n) for key, n in totals.items() if key[0] == "reloads"
    ]  # fmt: skip
    yield from _watches(watched)


def _histogram(totals: Mapping[Key, float]) -> Iterator[_Sample]:
    routes = dict.fromkeys(key[1] for key in totals if key[0] == "seconds")
    for route in routes:
        n = 0.0
        for bound in (*map(str, BUCKETS), "+Inf"):
            n += totals.get(("seconds", route, bound), 0.0)
            yield {"__name__": "_bucket", "route": route, "le": bound}, n
        yield {"__name__": "_sum", "route": route}, totals.get(("seconds_sum", route), 0.0)
        yield {"__name__": "_count", "route": route}, n


def _decided(
    totals: Mapping[Key, float], served: Mapping[str, Served]
) -> Iterator[tuple[str, str, str, list[_Sample]]]:
    exits: dict[tuple[str, str], float] = defaultdict(float)
    labels: dict[tuple[str, str], float] = defaultdict(float)
    rejects: dict[str, float] = defaultdict(float)
    for key, n in totals.items():
        if key[0] != "decided":
            continue
        _, model, version, stage, code = key
        exits[model, str(int(stage) + 1)] += n
        if not code:
            rejects[model] += n
        elif model in served and served[model].version == version:
            labels[model, str(served[model].classes[int(code)])] += n
    yield "emsco_exits_total", "counter", "Cases decided, by the stage where they left, from 1.", [
        ({"model": model, "stage": stage}, n) for (model, stage), n in exits.items()
    ]  # fmt: skip
    yield "emsco_corrections_total", "counter", "Cases that were decided again with corrected values; both count.", [
        ({"model": model}, sum(n for key, n in totals.items() if key[:2] == ("withdrawn", model)))
        for model in dict.fromkeys(key[1] for key in totals if key[0] == "withdrawn")
    ]  # fmt: skip
    yield "emsco_labels_total", "counter", "Labels given by the version in use.", [
        ({"model": model, "label": label}, n) for (model, label), n in labels.items()
    ]  # fmt: skip
    yield "emsco_rejects_total", "counter", "Cases that got no label.", [
        ({"model": model}, n) for model, n in rejects.items()
    ]  # fmt: skip
    yield "emsco_cost_total", "counter", "Price of all features bought.", [
        ({"model": key[1]}, n) for key, n in totals.items() if key[0] == "cost"
    ]  # fmt: skip


def _columns(totals: Mapping[Key, float]) -> Iterator[tuple[str, str, str, list[_Sample]]]:
    for kind, said in (
        (VALUES, "Values that were looked at: of every case, and of some rows of each table."),
        (UNAVAILABLE, "Those of them that could not be obtained."),
        (UNSEEN, "Those of them that are categories not seen in training."),
    ):
        name = "emsco_values_total" if kind == VALUES else f"emsco_values_{kind}_total"
        yield name, "counter", said, [
            ({"model": key[1], "column": key[2]}, n) for key, n in totals.items() if key[0] == kind
        ]  # fmt: skip
    yield "emsco_column_shift", "gauge", "Mean of a column of the first stage, in deviations from that of training.", [
        ({"model": model, "column": column}, mean) for (model, column), mean in shifts_of(totals).items()
    ]  # fmt: skip


def shifts_of(totals: Mapping[Key, float]) -> dict[tuple[str, str], float]:
    """Return how far the mean of each column is from that of training, in standard deviations."""
    shifts = {}
    for key, total in totals.items():
        if key[0] == SHIFT:
            n = totals[VALUES, *key[1:]] - totals.get((UNAVAILABLE, *key[1:]), 0.0)
            shifts[key[1], key[2]] = total / n if n else 0.0
    return shifts


def _watches(watched: Mapping[str, Any]) -> Iterator[tuple[str, str, str, list[_Sample]]]:
    every = [(name, watch) for name, record in watched.items() for watch in record["watches"]]
    labels = [{"model": name, "watch": watch["name"]} for name, watch in every]
    for name, said, values in (
        ("alarm", "Whether an alarm was raised.", [float(watch["alarm"] is not None) for _, watch in every]),
        ("evidence", "Evidence against the limit; 1 raises an alarm.", [watch["evidence"] for _, watch in every]),
        ("limit", "What the figure is at least, or a cost at most.", [watch["limit"] for _, watch in every]),
        ("found", "The figure so far.", [watch["found"] for _, watch in every]),
        ("cases", "Cases behind the figure.", [watch["cases"] for _, watch in every]),
    ):
        samples = [(dict(label), value) for label, value in zip(labels, values, strict=True) if value is not None]
        yield f"emsco_watch_{name}", "gauge", said, samples
