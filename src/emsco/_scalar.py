"""Scalar functions that LLVM can inline and vectorise: population count, exp, logistic, a number at an address.

``exponential`` is built from IEEE operations in one fixed order (fma included, fast-math not), so a value does not
depend on whether it was computed alone, in a vector register or in the remainder of a loop. A row scored by itself
therefore gets the same bits as the same row inside a batch: the search, ``decide`` and a one-row call agree exactly.
"""

from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

_typed_intrinsic: Any = intrinsic  # its stub hides that the typing context is not passed by the caller

_LOG2_E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_ROUND = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to an integer, kept in the low mantissa bits
_LIMIT = 708.0  # exp(+-708) is still a normal number


@_typed_intrinsic
def popcount(typing_context: Any, word: Any) -> Any:
    """Count the set bits of a 64-bit word with one machine instruction."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), build


@_typed_intrinsic
def fma(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a * b + c, rounded once: one instruction, and the same bits in a vector as alone."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), build


@_typed_intrinsic
def double_at(typing_context: Any, address: Any) -> Any:
    """Return the number of double precision at an address in memory."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(builder.inttoptr(arguments[0], ir.DoubleType().as_pointer()))

    return types.float64(types.int64), build


@_typed_intrinsic
def single_at(typing_context: Any, address: Any) -> Any:
    """Return the number of single precision at an address in memory, as a double."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = builder.load(builder.inttoptr(arguments[0], ir.FloatType().as_pointer()))
        return builder.fpext(number, ir.DoubleType())

    return types.float64(types.int64), build


@_typed_intrinsic
def _bits_of(typing_context: Any, value: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), build


@_typed_intrinsic
def _float_of(typing_context: Any, bits: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), build


@njit(error_model="numpy")
def exponential(x: float) -> float:
    """Return exp(x), x clipped to +-708, within 2 units in the last place."""
    x = x if x > -_LIMIT else -_LIMIT
    x = x if x < _LIMIT else _LIMIT
    shifted = fma(x, _LOG2_E, _ROUND)
    whole = shifted - _ROUND
    r = fma(whole, -_LN2_LOW, fma(whole, -_LN2_HIGH, x))
    # Taylor series of exp on |r| <= ln(2) / 2; the first omitted term is below 2e-16.
    series = 1.0 / 479001600.0
    series = fma(series, r, 1.0 / 39916800.0)
    series = fma(series, r, 1.0 / 3628800.0)
    series = fma(series, r, 1.0 / 362880.0)
    series = fma(series, r, 1.0 / 40320.0)
    series = fma(series, r, 1.0 / 5040.0)
    series = fma(series, r, 1.0 / 720.0)
    series = fma(series, r, 1.0 / 120.0)
    series = fma(series, r, 1.0 / 24.0)
    series = fma(series, r, 1.0 / 6.0)
    series = fma(series, r, 0.5)
    series = fma(series, r, 1.0)
    series = fma(series, r, 1.0)
    power: float = _float_of((_bits_of(shifted) << 52) + 0x3FF0000000000000)
    result: float = series * power
    return result


@njit(error_model="numpy")
def logistic(margin: float) -> float:
    """Return 1 / (1 + exp(-margin))."""
    p: float = 1.0 / (1.0 + exponential(-margin))
    return p
