"""The native core, built where there is a compiler; and the dashboards, which a wheel has within the package."""

import shutil
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_py import build_py

BUNDLE = ("dashboards/*.json", "rules/*.yml", "alerts/*.yml", "provisioning/*/*.yml", "runbook.md", "METRICS.md")


class BuildWithDashboards(build_py):
    """Copies what ``jaxwatch dashboards export`` writes into the package; a checkout is read as it is."""

    def run(self) -> None:
        """Build."""
        super().run()
        if self.editable_mode:
            return
        source, target = Path("grafana"), Path(self.build_lib, "jaxwatch", "_grafana")
        for path in (path for pattern in BUNDLE for path in source.glob(pattern)):
            copy = target / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)


setup(
    cmdclass={"build_py": BuildWithDashboards},
    ext_modules=[
        Extension(
            "jaxwatch._native.core",
            sources=["jaxwatch/_native/core.c"],
            define_macros=[("_GNU_SOURCE", "1")],
            extra_compile_args=["-std=c11", "-O2"],
            optional=True,
        )
    ],
)
