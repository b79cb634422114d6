"""Settings as YAML: read from a file, changed by `--set`, checked, and every mistake named by its field."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

Settings = TypeVar("Settings", bound=BaseModel)


class SettingsError(ValueError):
    """A recipe or a `--set` is unusable; the message names the field and what it wants."""


def dump_settings(settings: BaseModel) -> str:
    """Settings as a complete YAML recipe."""
    return yaml.safe_dump(settings.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def read_yaml(path: Path) -> dict[str, Any]:
    """The sections of a YAML file; raises `SettingsError` for a file that has none."""
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise SettingsError(f"{path}: not valid YAML: {error}") from error
    if not isinstance(raw, dict):
        raise SettingsError(f"{path}: a recipe is a mapping of sections such as 'model:' and 'problems:'")
    return raw


def checked(kind: type[Settings], raw: dict[str, Any], origin: str) -> Settings:
    """Raw settings as `kind`; raises `SettingsError` with every field that is wrong. `origin` names them in it."""
    try:
        return kind.model_validate(raw)
    except ValidationError as error:
        raise SettingsError(plain_errors(error, origin)) from error


def plain_errors(error: ValidationError, origin: str) -> str:
    """A line for each field that is wrong; `origin` names the file."""
    return "\n".join(
        f"{origin}: {'.'.join(map(str, e['loc'])) or 'settings'}: {_plain(e)}" for e in error.errors(include_url=False)
    )


def _plain(error: Any) -> str:
    if error["type"] == "extra_forbidden":
        return "unknown field"
    if error["type"] == "missing":
        return "missing"
    return f"{error['msg'].removeprefix('Value error, ')} (got {error['input']!r:.80})"


def apply_default(raw: dict[str, Any], dotted: str, value: Any) -> None:
    """Set a dotted field where the recipe does not say it."""
    *sections, field = dotted.split(".")
    place = raw
    for section in sections:
        inner = place.setdefault(section, {})
        if not isinstance(inner, dict):
            return  # the check of the section will name what is wrong with it
        place = inner
    place.setdefault(field, value)


def apply_override(raw: dict[str, Any], override: str) -> None:
    """Set `a.b=c` in nested mappings; raises `SettingsError` for what is no such text."""
    dotted, equals, value = override.partition("=")
    if not equals or not dotted.strip():
        raise SettingsError(f"--set {override!r}: write it as section.field=value")
    *sections, field = dotted.strip().split(".")
    place = raw
    for section in sections:
        inner = place.setdefault(section, {})
        if not isinstance(inner, dict):
            inner = place[section] = {}
        place = inner
    try:
        place[field] = yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise SettingsError(f"--set {override!r}: the value is not valid YAML") from error
