"""The native core, built where there is a compiler; without one the Python twin does its work."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "jaxwatch._native.core",
            sources=["jaxwatch/_native/core.c"],
            define_macros=[("_GNU_SOURCE", "1")],
            extra_compile_args=["-std=c11", "-O2"],
            optional=True,
        )
    ]
)
