"""One measurement: what the user may give, and what is said of all else."""

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from jaxwatch import _scaling_probe as probe
from jaxwatch.errors import BadScalingError


def step(x: Any) -> Any:
    return x + 1


def unrolled(count: Any) -> Any:
    x = jnp.ones(3)
    for _ in range(count):
        x = jnp.sin(x)
    return x


@pytest.mark.parametrize(
    ("given", "count", "options"),
    [
        (lambda n: (step, (jnp.ones(n),)), 1, {}),
        (lambda n: (jax.jit(step), (jnp.ones(n),)), 1, {}),
        (lambda n: (step, jnp.ones(n)), 1, {}),
        (unrolled, 1, {"static_argnums": 0}),
        (jax.jit(unrolled, static_argnums=0), 1, {"static_argnums": 0}),
    ],
    ids=["pair", "pair with a jit", "flat", "of an int", "jitted, of an int"],
)
def test_each_form_is_taken(given: Any, count: int, options: dict[str, Any]) -> None:
    function, arguments, found = probe.program_of(given, 4)

    assert function in (step, unrolled)
    assert len(arguments) == count
    assert found == options


@pytest.mark.parametrize("text", ["json", ":", "json:", "json:nothing", "no_such_module:f", "json:__name__"])
def test_what_names_no_function_is_said(text: str) -> None:
    with pytest.raises(BadScalingError, match=r"\[bad-scaling\]"):
        probe.target_of(text)


def test_it_prints_figures_as_the_last_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "measured_by_the_probe"
    (tmp_path / f"{name}.py").write_text(
        "import jax.numpy as jnp\ndef f(n):\n    return (lambda x: x * n), jnp.ones(n)"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))

    assert probe.main(f"{name}:f", 3) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["equations"] == 1
    assert all(told[phase] > 0 for phase in ("trace", "lower", "compile"))
