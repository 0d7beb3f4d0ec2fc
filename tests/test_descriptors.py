"""Descriptors that a program closes behind our back, and what it opens then."""

import os
import socket
from pathlib import Path

from jaxwatch._descriptors import close, file_of, is_own, remember


def test_a_socket_is_known_again_until_it_is_closed() -> None:
    one, other = socket.socketpair()
    with one, other:
        remember(one)
        assert is_own(one)
        assert not is_own(other)  # never remembered
        close(one)
        assert not is_own(one)
        close(one)


def test_a_file_that_has_got_the_number_is_neither_taken_for_the_socket_nor_closed(tmp_path: Path) -> None:
    one, other = socket.socketpair()
    with other:
        number = remember(one).fileno()
        os.close(number)
        with (tmp_path / "mine").open("w") as mine:
            assert mine.fileno() == number
            assert not is_own(one)
            close(one)
            mine.write("still open")
    assert (tmp_path / "mine").read_text() == "still open"


def test_a_descriptor_that_is_closed_is_no_file() -> None:
    assert file_of(-1) is None
