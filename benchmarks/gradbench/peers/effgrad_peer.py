"""effgrad, compiled."""

from effgrad_gradbench.tool import MODES, built, evaluation
from workloads import DERIVATIVE

MODE = "compiled"


def program(name, workload, mode=MODE):
    return built(evaluation(name), DERIVATIVE.get(name, workload), MODES[mode])


def prepare(arguments):
    return arguments


def finished(output):
    return output


def plain(output):
    return output
