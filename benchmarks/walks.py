"""Every row of three data sets walked over HTTP, stage by stage, by two workers: `python -m benchmarks.walks`.

Label, confidence, stage and cost must be those of `decide`; a tenth of the values is unavailable.
"""

import asyncio
import json
from pathlib import Path
from tempfile import TemporaryDirectory
import warnings

import numpy as np
import pandas as pd
import uvloop

from benchmarks.load import Connection, request_of
from benchmarks.service import free_port, running, serve
from emsco import EMSCOClassifier, Evolution, load
from emsco.datasets import load_heart_disease, load_heart_failure, load_thyroid

N_CONNECTIONS = 12


def data_sets() -> dict[str, tuple[object, pd.DataFrame, np.ndarray]]:
    failure, disease, thyroid, other = (
        load_heart_failure(),
        load_heart_disease(),
        load_thyroid(),
        load_thyroid(subset="test"),
    )
    return {
        "heart-failure": (failure.prices, failure.data, failure.target.to_numpy()),
        "heart-disease": (disease.prices, disease.data, disease.target.to_numpy()),
        "thyroid": (
            thyroid.prices, pd.concat([thyroid.data, other.data], ignore_index=True),
            np.concatenate([thyroid.target, other.target]),
        ),
    }  # fmt: skip


async def walk(port: int, name: str, rows: list[dict[str, object]]) -> tuple[list[dict[str, object]], int]:
    """Return the decision of each row, and how many questions it took."""
    found: list[dict[str, object]] = [{}] * len(rows)
    todo, n_questions = iter(range(len(rows))), 0

    async def client() -> None:
        nonlocal n_questions
        connections = [Connection(port) for _ in range(2)]  # either worker may have them
        rng = np.random.default_rng(0)
        for i in todo:
            values: dict[str, object] = {}
            unavailable: list[str] = []
            while True:
                body = json.dumps({"values": values, "unavailable": unavailable}).encode()
                status, answer = await connections[rng.integers(2)].send(request_of(f"/models/{name}/next", body))
                assert status == 200, answer
                n_questions += 1
                said = json.loads(answer)
                if "decision" in said:
                    found[i] = said["decision"]
                    break
                for column in said["acquire"]["columns"]:
                    if rows[i][column] is None:
                        unavailable.append(column)
                    else:
                        values[column] = rows[i][column]
        for connection in connections:
            connection.close()

    await asyncio.gather(*(client() for _ in range(N_CONNECTIONS)))
    return found, n_questions


def main() -> None:
    rng = np.random.default_rng(0)
    with TemporaryDirectory() as folder:
        for name, (prices, data, target) in data_sets().items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                clf = EMSCOClassifier(
                    prices, search=Evolution(population_size=40, max_generations=5), max_stages=4, threshold=0.85,
                    choose="combined", final_estimator="search", random_state=0,
                ).fit(data, target)  # fmt: skip
            path = Path(folder) / f"{name}.emsco"
            clf.save(path)
            clf = load(path)
            frame = data.astype(object).mask(rng.random(data.shape) < 0.1, None)
            frame = frame.astype({c: data[c].dtype if data[c].dtype.kind == "O" else float for c in data})
            decisions = clf.decide(frame)
            rows = [{c: None if pd.isna(v) else v for c, v in row.items()} for row in frame.to_dict("records")]
            port = free_port()
            with running(serve(path, port, "--workers", "2"), port, "/health/ready"):
                found, n_questions = uvloop.run(walk(port, name, rows))
            wrong = 0
            for i, decision in enumerate(found):
                label = (
                    decisions.label.data[i].item()
                    if hasattr(decisions.label.data[i], "item")
                    else decisions.label.data[i]
                )
                wanted = (
                    label if decisions.conclusive[i] else None, label, decisions.confidence[i], decisions.stage[i],
                    decisions.cost[i],
                )  # fmt: skip
                keys = ("label", "best_guess", "confidence", "stage", "cost")
                wrong += tuple(decision[key] for key in keys) != wanted
            stages = np.bincount(decisions.stage).tolist()
            print(
                f"{name}: {len(rows):,} rows, {n_questions:,} questions, left at {stages}; {wrong} differ from decide",
                flush=True,
            )


if __name__ == "__main__":
    main()
