"""Checks the arguments of public functions. A function's signature, with Options, is the list of
its arguments."""

from __future__ import annotations

import difflib
import functools
import inspect
import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict, TypeVar, Union, cast

from numpy.typing import DTypeLike

from .errors import InvalidArgument

Progress = Callable[[int, int], None]

_Function = TypeVar("_Function", bound=Callable[..., Any])

# Words of NumPy and PyTorch that mean the same as ours.
_SYNONYMS = {"dim": "axis", "keepdim": "keepdims", "descending": "largest", "a": "x", "input": "x"}

# Words of theirs for what there is not.
_EXPLANATIONS = {
    "dtype": "results have the type of the input, which cast= converts",
    "out": "results are new arrays",
    "where": "all elements count; select them before the call",
}


class Options(TypedDict, total=False):
    """Options of one call. `timeout` is in seconds and covers all attempts. `feature_level` is
    DirectML's, such as "5.0". Of a caller's executions that wait for the device, the one with the
    greatest `priority` runs first. `cast` is a type to which inputs are converted. `progress` is
    called with the number of input bytes that were sent, and with their total; a thread of gRPC may
    call it. True shows a progress bar, if tqdm is installed. `keep` is the name under which the result
    stays on the server, or one for each of several: the call returns a ResidentTensor in its place."""

    timeout: float | None
    feature_level: str | None
    priority: int
    cast: DTypeLike | None
    progress: Union[Progress, bool, None]
    keep: Any


def _check_seconds(name: str, value: Any) -> None:
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}; it must be a number of seconds.")
    if not float(value) > 0:
        raise InvalidArgument(f"{name} is {value!r}; it must be above 0 seconds.")


def _check_integer(name: str, value: Any) -> None:
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}; it must be an integer.")


def _check_count(name: str, value: Any) -> None:
    _check_integer(name, value)
    if value < 1:
        raise InvalidArgument(f"{name} is {value}; it must be at least 1.")


def _check_progress(name: str, value: Any) -> None:
    if not callable(value) and not isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}; it must be a function of two numbers, or True.")


# Of arguments that several functions have, and that are not sent to the server.
_CHECKS: Mapping[str, Callable[[str, Any], None]] = {
    "timeout": _check_seconds, "connect_timeout": _check_seconds, "max_attempts": _check_count,
    "priority": _check_integer, "progress": _check_progress}


def check_options(named: Mapping[str, Any]) -> None:
    for name in named.keys() & _CHECKS.keys():
        if named[name] is not None:
            _CHECKS[name](name, named[name])


def checked(function: _Function) -> _Function:
    """The function, which raises TypeError for an unknown argument and names the nearest one.
    Checks the values of options, too."""
    parameters = list(inspect.signature(function).parameters.values())
    places = {parameter.name: place for place, parameter in enumerate(parameters)
              if parameter.kind is not parameter.VAR_KEYWORD}
    if len(places) < len(parameters):
        places |= dict.fromkeys(Options.__annotations__, len(parameters))
    known = places.keys() - {"self"}

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        if not named.keys() <= known:
            named = _translated(function.__name__, places, len(arguments), named)
        check_options(named)
        return function(*arguments, **named)

    return cast(_Function, call)


def nearest(name: str, names: Sequence[str], *, synonyms: Mapping[str, str] = _SYNONYMS,
            takes: str = "it takes") -> str:
    """The end of a sentence about an unknown name."""
    words = [word for word, ours in synonyms.items() if ours in names]
    close = difflib.get_close_matches(name, [*names, *words], 1)
    return f"did you mean '{close[0]}'?" if close else f"{takes} {', '.join(names)}."


def _translated(function: str, places: Mapping[str, int], positional: int,
                named: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by our names. The first `positional` parameters have a value already."""
    translated = {name: value for name, value in named.items() if name in places}
    for name in named.keys() - places.keys():
        ours = _SYNONYMS.get(name, "")
        if ours not in places:
            explanation = _EXPLANATIONS.get(name)
            names = [each for each in places if each != "self"]
            raise TypeError(f"{function}() has no argument '{name}': {explanation}." if explanation
                            else f"{function}() has no argument '{name}'; {nearest(name, names)}")
        if ours in translated or places[ours] < positional:
            raise TypeError(f"{function}() got both '{ours}' and '{name}', which mean the same.")
        translated[ours] = named[name]
    return translated
