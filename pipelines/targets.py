"""What a `_target_` of the config may name: classes and functions of the right kind, of packages that are allowed."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import robust_sgld as rs
from robust_sgld.checks import InvalidInput

ALLOWED = ("robust_sgld",)
"""Packages that a `_target_` may name; nothing else is imported unless the config's `allow` names it."""

KINDS = {"problem": rs.Problem, "dro": rs.DRO, "sampler": rs.LangevinSampler}
"""The class that a group's target is, or derives from; the target of `data` is a function that returns a Dataset."""


def checked_allow(allow: Any) -> tuple[str, ...]:
    """The packages of the config's `allow`, ours first."""
    if not isinstance(allow, list) or not all(isinstance(name, str) and name.isidentifier() for name in allow):
        raise InvalidInput(f"allow must be a list of package names, as allow=[my_package], got {allow!r}.")
    return (*ALLOWED, *allow)


def find_target(group: str, node: Mapping[str, Any], allow: Sequence[str]) -> Callable[..., Any]:
    """What the node's `_target_` names; refuses what is not allowed, not there, or not of the group's kind."""
    path = node.get("_target_")
    if not isinstance(path, str) or path.split(".")[0] not in allow or "." not in path:
        raise InvalidInput(f"{group}._target_ must name something below {' or '.join(allow)}, got {path!r}.")
    target = _imported(group, path)
    # a module also has the names that it imports itself: those are not its own to offer
    if str(getattr(target, "__module__", "")).split(".")[0] not in allow or not _fits(group, target):
        wanted = f"a {KINDS[group].__name__}" if group in KINDS else "a function that returns a Dataset"
        raise InvalidInput(f"{group}._target_ must name {wanted}, and {path!r} is none.")
    return target


def _imported(where: str, path: str) -> Any:
    module, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError, TypeError):
        raise InvalidInput(f"{where}._target_ names {path!r}, which does not exist.") from None


def _fits(group: str, target: Any) -> bool:
    if group in KINDS:
        return inspect.isclass(target) and issubclass(target, KINDS[group]) and not inspect.isabstract(target)
    if not inspect.isfunction(target):
        return False
    returned = target.__annotations__.get("return")
    return (returned if isinstance(returned, str) else getattr(returned, "__name__", "")).split(".")[-1] == "Dataset"


def parameters(target: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the arguments that it takes."""
    return tuple(inspect.signature(target).parameters)


def check_keys(group: str, node: Mapping[str, Any], allow: Sequence[str]) -> None:
    """Every key of a node is an argument of its target (a sampler's theta0 belongs to the trial)."""
    ours = ("problem", "dro", *(["dim"] if group == "problem" else []))  # what the pipeline itself passes
    known = [key for key in parameters(find_target(group, node, allow)) if key not in ours]
    known += ["theta0"] if group == "sampler" else []
    for key in node:
        if key != "_target_" and key not in known:
            listed = f"it takes {', '.join(known)}" if known else "it takes none"
            raise InvalidInput(f"{group}.{key} is not a key of {node['_target_']}; {listed}.")


def call_target(group: str, node: Mapping[str, Any], allow: Sequence[str], **extra: Any) -> Any:
    """The target's object: its node's keys as arguments, and of `extra` what it takes."""
    target = find_target(group, node, allow)
    arguments = {key: _built(f"{group}.{key}", value, allow) for key, value in node.items() if key != "_target_"}
    arguments |= {key: value for key, value in extra.items() if key in parameters(target)}
    try:
        return target(**arguments)
    except InvalidInput as error:
        raise InvalidInput(f"{group}: {error}") from None


def _built(where: str, value: Any, allow: Sequence[str]) -> Any:
    """A value in which every mapping with a `_target_` has become the torch module that it names."""
    if isinstance(value, list):
        return [_built(f"{where}[{i}]", part, allow) for i, part in enumerate(value)]
    if not isinstance(value, Mapping):
        return value
    parts = {key: _built(f"{where}.{key}", part, allow) for key, part in value.items() if key != "_target_"}
    if "_target_" not in value:
        return parts
    make = _module_class(where, value["_target_"], allow)
    positional = parts.pop("_args_", [])
    try:
        return make(*positional, **parts)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidInput(f"{where}: {value['_target_']} cannot be made: {str(error).splitlines()[0]}") from None


def _module_class(where: str, path: Any, allow: Sequence[str]) -> Callable[..., Any]:
    """A class of torch.nn itself, or a torch module of an allowed package."""
    ours = isinstance(path, str) and "." in path and path.split(".")[0] in allow
    if not ours and not (isinstance(path, str) and re.fullmatch(r"torch\.nn\.[A-Z]\w*", path)):
        packages = " or ".join(["torch.nn", *allow])
        raise InvalidInput(f"{where}._target_ must name a torch module of {packages}, got {path!r}.")
    from torch.nn import Module

    found = _imported(where, path)
    if not inspect.isclass(found) or not issubclass(found, Module):
        raise InvalidInput(f"{where}._target_ must name a torch module, and {path!r} is none.")
    return found
