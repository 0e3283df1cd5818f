"""The sine and the cosine of one number, for code that waits for the result, in half the time of the C library's.

The sine of a number up to pi/2 is a polynomial. For other numbers, up to a million, it is the polynomial of the
distance to the nearest multiple of pi. The distance to pi itself is a subtraction; for other multiples, pi is in three
parts, so that the products are exact (Cody and Waite 1980, chapter 8). The polynomial's terms are added in pairs, so
that few operations wait for each other (Estrin 1960). The error is below three units in the last place. The C library
computes larger numbers, and all numbers if the processor has no fused multiply-add.
"""

import math

from effgrad.stage.native.scalars import Body, literal

# (sin(x) / x - 1) / x**2 by powers of x**2, interpolated at the Chebyshev nodes of [0, 1.58**2].
_SERIES = (
    -0.16666666666666666, 0.008333333333333314, -0.00019841269841253898, 2.7557319218874464e-06,
    -2.50521075804369e-08, 1.605897495602995e-10, -7.643895502615885e-13, 2.730517615374652e-15,
)  # fmt: skip
_LARGE = 1e6
# Pi in two parts of 53 bits, and in three of 33, 33 and 53.
_PI = math.pi, 1.2246467991473532e-16
_PARTS = tuple(map(float.fromhex, ("0x1.921fb544p+1", "0x1.0b4611a6p-33", "0x1.3198a2e037073p-68")))
# Adding this to a smaller number rounds that number to an integer, whose lowest bit is the lowest bit of the sum.
_ROUNDING = 1.5 * 2.0**52


def sine_text(name: str, fused: bool) -> Body:
    """Return the function `double @KERNEL(double %x)`, "sin" or "cos"; unless `fused`, it only calls the C library."""
    body = Body()
    body.lines += ["define double @KERNEL(double %x) {", "entry:"]
    if fused:
        _write(body, cosine=name == "cos")
    result = _call(body, name)
    body.lines += [f"  ret double {result}", "}"]
    return body


def _write(body: Body, cosine: bool) -> None:
    size = body.intrinsic("fabs", "double", "%x")
    if not cosine:
        _branch(body, size, math.pi / 2, "short", "other")
        # The sign is copied for the sake of negative zero.
        body.lines += [f"  ret double {body.intrinsic('copysign', 'double', _series(body, '%x'), '%x')}", "other:"]
    # The cosine is the sine of pi/2 minus the number, and the sine is the sine of pi minus the number.
    share = 0.5 if cosine else 1.0
    _branch(body, size, (share + 0.5) * math.pi, "folded", "far")
    nearly, rest = (literal(share * part, "double") for part in _PI)
    folded = _series(body, _binary(body, "fadd", _binary(body, "fsub", nearly, size), rest))
    sign = "0" if cosine else body.do(f"and i64 {_bits(body, '%x')}, {-(2**63)}")
    body.lines += [f"  ret double {_turned(body, folded, sign)}", "far:"]
    _branch(body, size, _LARGE, "long", "rest")
    # The cosine is the sine of x + pi/2, so its distance is to the nearest odd multiple of pi/2.
    moved = literal(0.5 if cosine else 0.0, "double")
    turns = _fused(body, "%x", literal(1 / math.pi, "double"), moved)
    rounded = _binary(body, "fadd", turns, literal(_ROUNDING, "double"))
    multiple = _binary(body, "fsub", _binary(body, "fsub", rounded, literal(_ROUNDING, "double")), moved)
    opposite, distance = body.do(f"fneg double {multiple}"), "%x"
    for part in _PARTS:
        distance = _fused(body, opposite, literal(part, "double"), distance)
    odd = body.do(f"shl i64 {_bits(body, rounded)}, 63")
    body.lines += [f"  ret double {_turned(body, _series(body, distance), odd)}", "rest:"]


def _series(body: Body, x: str) -> str:
    """Write the polynomial of the sine."""
    square = _binary(body, "fmul", x, x)
    terms, power = [literal(c, "double") for c in _SERIES], square
    while len(terms) > 1:
        terms = [_fused(body, power, b, a) for a, b in zip(terms[::2], terms[1::2], strict=True)]
        power = _binary(body, "fmul", power, power)
    return _fused(body, _binary(body, "fmul", x, square), terms[0], x)


def _branch(body: Body, size: str, limit: float, below: str, above: str) -> None:
    near = body.do(f"fcmp ole double {size}, {literal(limit, 'double')}")
    body.lines += [f"  br i1 {near}, label %{below}, label %{above}", f"{below}:"]


def _bits(body: Body, value: str) -> str:
    return body.do(f"bitcast double {value} to i64")


def _turned(body: Body, value: str, sign: str) -> str:
    """Write a value whose sign changes if the sign bit of the integer `sign` is set."""
    return body.do(f"bitcast i64 {body.do(f'xor i64 {_bits(body, value)}, {sign}')} to double")


def _binary(body: Body, operation: str, a: str, b: str) -> str:
    return body.do(f"{operation} double {a}, {b}")


def _fused(body: Body, a: str, b: str, c: str) -> str:
    """Write a * b + c, rounded once."""
    return body.intrinsic("fma", "double", a, b, c)


def _call(body: Body, name: str) -> str:
    body.declared.add(f"declare double @{name}(double) #0")
    return body.do(f"tail call double @{name}(double %x)")
