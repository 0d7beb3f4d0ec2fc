"""The files of the pages."""

import pytest

from jaxwatch._pages import page_file


@pytest.mark.parametrize("name", ["index.html", "page.css", "page.js", "report.css", "report.js"])
def test_the_files_are_there_and_name_nothing_outside(name: str) -> None:
    found = page_file(name).decode()

    assert found
    assert "http:" not in found.replace("http://www.w3.org/2000/svg", "")
    assert "https:" not in found
    assert "@import" not in found


def test_a_file_that_is_not_there_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        page_file("other.css")
