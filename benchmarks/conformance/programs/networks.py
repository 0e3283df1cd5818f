"""Neural networks."""

import collections
import importlib
from typing import Any

import numpy as np
from benchmarks.conformance.programs.checkout import Checkout, numpy_for_autograd, program


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


@program("HIPS/autograd", "the network of its examples, with `import numpy as np`: the posterior by weights")
def perceptron(checkout: Checkout) -> tuple[Any, ...]:
    numpy_for_autograd()
    example, rng = checkout.load("examples/neural_net.py"), np.random.default_rng(0)
    weights = example.init_random_params(0.5, [4, 5, 3], np.random.RandomState(0))
    x, y = rng.normal(size=(6, 4)), np.eye(3)[[0, 1, 2, 0, 1, 2]]
    return lambda w: example.log_posterior(w, x, y, 0.1), weights


@program("ddbourgin/numpy-ml", "`Conv2D`, `LayerNorm1D`: outputs of layers by their inputs")
def layers(checkout: Checkout) -> tuple[Any, ...]:
    checkout.bare("numpy_ml", "numpy_ml")
    vars(collections)["Hashable"] = collections.abc.Hashable  # its name before Python 3.10
    module, rng = importlib.import_module("numpy_ml.neural_nets.layers"), np.random.default_rng(0)
    np.random.seed(0)
    filters, norm = module.Conv2D(2, (3, 3), act_fn="Tanh"), module.LayerNorm1D()
    image, steps = rng.normal(size=(1, 6, 6, 2)), rng.normal(size=(4, 3))
    for layer, x in ((filters, image), (norm, steps)):
        layer.forward(x)  # which makes the weights

    def outputs(image: Any, steps: Any) -> Any:
        return [filters.forward(image, retain_derived=False), norm.forward(steps, retain_derived=False)]

    return outputs, image, steps
