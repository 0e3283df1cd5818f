"""Neural networks."""

from typing import Any

import numpy as np
from benchmarks.conformance.programs.checkout import Checkout, program


@program("jaymody/picoGPT", "`gpt2`: logits of a small transformer, by all its weights")
def transformer(checkout: Checkout) -> tuple[Any, ...]:
    gpt, rng, width = checkout.load("gpt2.py"), np.random.default_rng(0), 8
    linear = lambda m, n: {"w": rng.normal(size=(m, n)) * 0.3, "b": rng.normal(size=n) * 0.1}  # noqa: E731
    norm = lambda: {"g": rng.uniform(0.5, 1.5, size=width), "b": rng.normal(size=width) * 0.1}  # noqa: E731
    block = {
        "mlp": {"c_fc": linear(width, 4 * width), "c_proj": linear(4 * width, width)},
        "attn": {"c_attn": linear(width, 3 * width), "c_proj": linear(width, width)},
        "ln_1": norm(), "ln_2": norm(),
    }  # fmt: skip
    weights = {
        "wte": rng.normal(size=(11, width)), "wpe": rng.normal(size=(6, width)), "blocks": [block], "ln_f": norm()
    }  # fmt: skip
    return lambda weights: gpt.gpt2([3, 1, 4, 1, 5], **weights, n_head=2), weights


@program("karpathy/micrograd", "`Value`: an expression of its graph, and the gradient by its own backward pass")
def graph_of_values(checkout: Checkout) -> tuple[Any, ...]:
    value = checkout.package("micrograd.engine").Value

    def expression(x: Any, y: Any) -> Any:
        a, b = value(x), value(y)
        c = (a * b + b**3).relu() + 2 * a / (b - a) + (-a).relu()
        c.backward()
        return c.data, a.grad, b.grad

    return expression, -4.0, 2.5


@program("nicodjimenez/lstm", "`LstmNetwork`: hidden states of three steps and the gradient by its own backward pass")
def recurrent(checkout: Checkout) -> tuple[Any, ...]:
    lstm, inputs = checkout.load("lstm.py"), np.random.default_rng(0).normal(size=(3, 4))

    def states(weights: Any, bias: Any) -> Any:
        parameters = lstm.LstmParam(5, 4)
        parameters.wg, parameters.bf = weights, bias
        network = lstm.LstmNetwork(parameters)
        for x in inputs:
            network.x_list_add(x)
        return [node.state.h for node in network.lstm_node_list]

    return states, np.random.default_rng(1).normal(size=(5, 9)), np.random.default_rng(2).normal(size=5)
