"""effgrad, compiled."""

from effgrad_gradbench.tool import MODES, evaluation
from workloads import DERIVATIVE

MODE = "compiled"


def program(name, workload, mode=MODE):
    module = evaluation(name)
    function = module.FUNCTIONS[DERIVATIVE.get(name, workload)]
    return MODES[mode](function)


def prepare(arguments):
    return arguments


def finished(output):
    return output


def plain(output):
    return output
