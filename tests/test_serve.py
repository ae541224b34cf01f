"""The server of `examples/serve.py`, over real HTTP: many clients, killed in the middle, nothing is lost."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fracts
from fracts import FracRidge

SERVE = Path(fracts.__file__).parents[1] / "examples" / "serve.py"

pytestmark = pytest.mark.skipif(not SERVE.exists(), reason="needs the checkout: examples lie beside fracts/")

CLIENTS, HOURS = 6, 12


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Server:
    def __init__(self, folder, port):
        self.command = [sys.executable, str(SERVE), str(folder), "--port", str(port)]
        self.port = port

    def start(self):
        environment = os.environ | {"PYTHONPATH": str(SERVE.parents[1]), "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(self.command, env=environment)
        for _ in range(600):
            try:
                assert self.ask("GET", "/openapi.json")[0] == 200
                return
            except OSError:
                assert self.process.poll() is None, "the server ended"
                time.sleep(0.1)
        raise TimeoutError("the server did not answer")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def ask(self, method, path, body=None):
        """Status and JSON of the answer; OSError or HTTPException where there is none."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def post(self, name, ds, y):
        return self.ask("POST", f"/series/{name}", json.dumps({"ds": str(ds), "y": y}))

    def forecast(self, name, query=""):
        return self.ask("GET", f"/series/{name}/forecast{query}")


def model():
    t = np.arange(600)
    hours = pd.date_range("2024-01-01", periods=600, freq="h")
    y = np.sin(2 * np.pi * t / 24) + 0.3 * np.random.default_rng(0).normal(size=600)
    return FracRidge(3, season_lengths=24, n_modes=6).fit(pd.Series(y, hours, name="load"))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    model().save(folder / "weights.safetensors")
    server = Server(folder, free_port())
    try:
        server.start()
        yield server
    finally:
        server.kill()


def values_of(client):
    return np.random.default_rng(client).normal(size=HOURS).round(3)


@pytest.mark.slow
def test_no_acknowledged_observation_is_lost_when_the_server_is_killed(server):
    hours = pd.date_range("2024-02-01", periods=HOURS, freq="h")
    acknowledged = [0] * CLIENTS
    troubles = []

    def client(number):
        for hour, value in zip(hours, values_of(number), strict=True):
            while True:
                try:
                    code, told = server.post(f"road%20{number}", hour, value)
                except (OSError, HTTPException):
                    time.sleep(0.05)
                    continue
                # Where it was written but the server died before it said so, the row is told to be known.
                if code == 200 or (code == 409 and f"rows up to {hour}" in told["detail"]):
                    break
                troubles.append(told)
                return
            acknowledged[number] += 1

    threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    while sum(acknowledged) < CLIENTS * HOURS // 3 and not troubles:
        time.sleep(0.005)
    server.kill()
    told = list(acknowledged)
    server.start()
    for number, count in enumerate(told):
        if count:
            assert pd.Timestamp(server.forecast(f"road%20{number}")[1]["cutoff"]) >= hours[count - 1]
    for thread in threads:
        thread.join(timeout=120)
    assert troubles == [] and acknowledged == [HOURS] * CLIENTS
    assert 0 < sum(told) < CLIENTS * HOURS

    fitted = model()
    for number in range(CLIENTS):
        local = fitted.apply(pd.Series(values_of(number)[:1], hours[:1]))
        for at in range(1, HOURS):
            local.update(pd.Series(values_of(number)[at : at + 1], hours[at : at + 1]))
        expected = local.predict(5, level=80)
        found = server.forecast(f"road%20{number}", "?horizon=5&level=80")[1]
        np.testing.assert_allclose([found[k] for k in ("y", "lo", "hi")], expected.to_numpy().T, rtol=1e-9)
        assert [pd.Timestamp(ds) for ds in found["ds"]] == list(expected.index)


def test_clients_that_race_for_one_hour_get_one_acknowledgement(server):
    outcomes = []

    def client(value):
        outcomes.append(server.post("raced", "2024-03-01", value)[0])

    threads = [threading.Thread(target=client, args=(float(value),)) for value in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == [200] + [409] * 7


@pytest.mark.parametrize(
    ("ds", "y", "code", "told"),
    [
        ("2024-02-29T23:00", 1.0, 409, "rows up to 2024-03-02"),
        ("2024-03-02T00:00", 1.0, 409, "rows up to 2024-03-02"),
        ("2024-03-02T01:30", 1.0, 409, "not on the grid"),
        ("2024-03-02T01:00", 1e200, 409, "beyond float64"),
        ("no hour", 1.0, 422, ""),
        ("2024-03-02T01:00", "many", 422, ""),
    ],
)
def test_what_cannot_be_learned_is_refused_with_its_reason_and_nothing_moves(server, ds, y, code, told):
    server.post("steady", "2024-03-02", 2.0)  # refused where the case before posted it
    before = server.forecast("steady")
    refused, answer = server.post("steady", ds, y)
    assert refused == code and told in str(answer["detail"])
    assert server.forecast("steady") == before


@pytest.mark.parametrize(
    ("path", "code"), [("unknown", 404), ("steady?horizon=0", 422), ("steady?level=100", 422), ("..%2f", 404)]
)
def test_questions_without_an_answer_are_told_apart(server, path, code):
    if path.startswith("steady"):
        server.post("steady", "2024-03-02", 2.0)
    name, _, query = path.partition("?")
    assert server.forecast(name, f"?{query}")[0] == code


def test_a_missing_value_moves_the_clock(server):
    server.post("patchy", "2024-03-02", 2.0)
    assert server.post("patchy", "2024-03-02T05:00", None) == (200, {"cutoff": "2024-03-02T05:00:00"})
