"""The demo `examples/mixture`: its objective, its answers on Old Faithful, and how it refuses bad input."""

import json
from pathlib import Path

import numpy as np
import pytest

from effgrad import grad
from mixture import report
from mixture.__main__ import main
from mixture.data import read_points
from mixture.fit import fit
from mixture.objective import objective

ROOT = Path(__file__).resolve().parents[2]
FAITHFUL = ROOT / "examples" / "data" / "faithful.csv"
CASES = json.loads((ROOT / "tests" / "data" / "gradbench" / "gmm.json").read_text())["cases"]
PARAMETERS = ("alpha", "mu", "q", "l")


def arguments(case):
    given = case["input"]
    return [*(np.array(given[name]) for name in (*PARAMETERS, "x")), given["gamma"], given["m"]]


@pytest.mark.parametrize("case", CASES)
def test_objective_agrees_with_gradbench(case):
    value = objective(*arguments(case))
    np.testing.assert_allclose(value, case["output"]["objective"], rtol=1e-10)


@pytest.mark.parametrize("case", CASES)
def test_gradient_agrees_with_gradbench(case):
    gradient = grad(objective, argnums=(0, 1, 2, 3))(*arguments(case))
    for name, part in zip(PARAMETERS, gradient, strict=True):
        np.testing.assert_allclose(part, case["output"]["jacobian"][name], rtol=1e-10, atol=1e-10)


@pytest.mark.thinned(5)
@pytest.mark.parametrize("seed", range(10))
def test_every_seed_finds_both_clusters_of_old_faithful(seed):
    _, x = read_points(FAITHFUL)
    result = fit(x, 2, seed)
    assert np.all(np.abs(result.means - [[2.04, 54.5], [4.29, 80.0]]) < [0.02, 0.2])
    np.testing.assert_allclose(result.weights, [0.36, 0.64], atol=0.01)


def test_run_writes_a_picture_and_the_parameters(tmp_path, capsys):
    assert main([str(FAITHFUL), "--components", "2", "--out", str(tmp_path)]) == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["fit.png", "parameters.json"]
    assert (tmp_path / "fit.png").read_bytes().startswith(b"\x89PNG")
    written = json.loads((tmp_path / "parameters.json").read_text())
    assert written["columns"] == ["eruptions_min", "waiting_min"]
    assert written["gradient_evaluations"] > 0
    assert "gradient evaluations" in capsys.readouterr().out


BAD = {
    "empty": ("", "row 1, column 1"),
    "header only": ("a,b\n", "too few rows: 0"),
    "too few rows": ("a,b\n1,2\n3,4\n", "too few rows: 2"),
    "text": ("a,b\n1,2\n3,four\n", "row 3, column 2 (b): 'four'"),
    "text in the first row": ("1,two\n3,4\n", "row 1, column 2 (column 2): 'two'"),
    "NaN": ("a,b\n1,2\nnan,4\n", "row 3, column 1 (a): 'nan'"),
    "infinity": ("a,b\n1,inf\n", "row 2, column 2 (b): 'inf'"),
    "empty field": ("a,b\n1,\n", "row 2, column 2 (b): the value is missing"),
    "short row": ("a,b\n1\n", "row 2, column 2 (b): the value is missing"),
    "long row": ("a,b\n1,2,3\n", "row 2, column 3"),
    "constant column": ("a,b\n" + "".join(f"{i},7\n" for i in range(9)), "column 2 (b)"),
    "too few different rows": ("a\n" + "1\n" * 5 + "2\n" * 5, "fewer different rows"),
}


@pytest.mark.parametrize("text, message", BAD.values(), ids=BAD)
def test_bad_data_is_named_and_nothing_is_overwritten(tmp_path, capsys, text, message):
    data, out = tmp_path / "data.csv", tmp_path / "out"
    data.write_text(text)
    out.mkdir()
    (out / "parameters.json").write_text("earlier")
    components = "3" if "different" in message else "2"
    assert main([str(data), "--components", components, "--out", str(out)]) == 2
    assert message in capsys.readouterr().err
    assert [file.name for file in out.iterdir()] == ["parameters.json"]
    assert (out / "parameters.json").read_text() == "earlier"


def test_missing_file_is_named_and_makes_no_folder(tmp_path, capsys):
    out = tmp_path / "out"
    assert main([str(tmp_path / "none.csv"), "--components", "2", "--out", str(out)]) == 2
    assert "none.csv" in capsys.readouterr().err
    assert not out.exists()


def test_failure_while_writing_keeps_the_earlier_results(tmp_path, monkeypatch):
    (tmp_path / "parameters.json").write_text("earlier")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(report, "plot", fail)
    assert main([str(FAITHFUL), "--components", "2", "--out", str(tmp_path)]) == 2
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("parameters.json", "earlier")]


def test_missing_extra_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "rich.progress", None)
    assert main([str(FAITHFUL), "--components", "2", "--out", str(tmp_path)]) == 2
    assert "effgrad[optimize]" in capsys.readouterr().err
