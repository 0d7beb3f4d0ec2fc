"""One source: its findings."""

import ast
import warnings

from jaxwatch._lint import jits
from jaxwatch._lint.engine import Machine
from jaxwatch._lint.rules import Finding
from jaxwatch._lint.scopes import read

def check(source, pedantic=False):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(source)
    m = Machine(read(tree))
    jits.look(m)
    return sorted(f for f in m.findings.values() if pedantic or f.certain)
