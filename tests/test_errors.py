"""Errors: one form, and bases that callers who do not know us catch."""

import pickle
import re

import pytest

from jaxwatch import errors
from jaxwatch.errors import JaxwatchError, JaxwatchWarning

ALL = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, JaxwatchError)]
OTHERS = [kind for kind in ALL if kind is not JaxwatchError]


@pytest.mark.parametrize("kind", ALL)
def test_an_error_says_problem_way_out_and_slug(kind: type[JaxwatchError]) -> None:
    assert str(kind("x is bad.", "Give y.")) == f"x is bad. Give y. [{kind.slug}]"


@pytest.mark.parametrize("kind", ALL)
def test_without_a_way_out_there_are_no_two_blanks(kind: type[JaxwatchError]) -> None:
    assert str(kind("x is bad.")) == f"x is bad. [{kind.slug}]"


@pytest.mark.parametrize("kind", OTHERS)
def test_every_error_is_also_one_of_pythons_own(kind: type[JaxwatchError]) -> None:
    assert any(base.__module__ == "builtins" and base is not Exception for base in kind.__bases__)


def test_slugs_are_distinct_lower_case_words() -> None:
    slugs = [kind.slug for kind in ALL]

    assert len(set(slugs)) == len(slugs)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", slug) for slug in slugs)


@pytest.mark.parametrize("kind", ALL)
def test_an_error_crosses_processes(kind: type[JaxwatchError]) -> None:
    sent = kind("x is bad.", "Give y.")
    came = pickle.loads(pickle.dumps(sent))  # noqa: S301 -- our own

    assert type(came) is kind
    assert str(came) == str(sent)


def test_the_warning_is_one_that_users_may_filter() -> None:
    assert issubclass(JaxwatchWarning, UserWarning)
    assert not issubclass(JaxwatchWarning, JaxwatchError)
