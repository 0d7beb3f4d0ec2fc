"""All that jaxwatch raises or warns of on purpose; ``docs/messages.md`` has a section for each slug."""

from typing import ClassVar


class JaxwatchError(Exception):
    """Base of all errors of jaxwatch: what is wrong, with the value, then the way out, then a slug."""

    slug: ClassVar[str] = "jaxwatch"

    def __init__(self, problem: str, way_out: str = "") -> None:
        slug = f"[{self.slug}]"
        text = " ".join(filter(None, [problem, way_out]))
        super().__init__(text if text.endswith(slug) else f"{text} {slug}")  # one that was pickled has it


class JaxwatchWarning(UserWarning):
    """Something that jaxwatch could not do; the program goes on untouched."""


class BadWatchError(JaxwatchError, ValueError):
    """``watch=`` or a field of ``Watch`` is of the wrong kind or out of range."""

    slug = "bad-watch"


class BadOptionError(JaxwatchError, ValueError):
    """An argument of a public function, or an environment variable, has a value that means nothing."""

    slug = "bad-option"


class NotWatchedError(JaxwatchError, TypeError):
    """``stats`` or ``no_retraces`` was given something that jaxwatch does not watch."""

    slug = "not-watched"


class RetraceError(JaxwatchError, RuntimeError):
    """A guard forbade a trace or compile; raised before XLA compiles anything."""

    slug = "retrace"


class LogUnwritableError(JaxwatchError, OSError):
    """The event log cannot be opened for writing."""

    slug = "log-unwritable"


class LogUnreadableError(JaxwatchError, OSError):
    """A log that was to be reported cannot be read."""

    slug = "log-unreadable"


class ReportUnwritableError(JaxwatchError, OSError):
    """A file that a command was to write cannot be written."""

    slug = "report-unwritable"


class ParquetError(JaxwatchError, OSError):
    """A folder of Parquet files cannot be written or read."""

    slug = "parquet"


class NoNativeCoreError(JaxwatchError, ImportError):
    """``JAXWATCH_CORE=native`` or ``attach`` needs the native core, and it is not there or does not fit this JAX."""

    slug = "no-native-core"


class PortTakenError(JaxwatchError, OSError):
    """The port for the metrics is in use, or may not be bound."""

    slug = "port-taken"


class BundleError(JaxwatchError, OSError):
    """The dashboards cannot be written where they are wanted, or are not there."""

    slug = "dashboards"


class LintPathError(JaxwatchError, OSError):
    """A file or folder for ``jaxwatch lint`` does not exist or cannot be read."""

    slug = "lint-path"


class NoServerError(JaxwatchError, OSError):
    """Nothing that ``jaxwatch top`` could watch answers at that address."""

    slug = "no-server"


class NoProgramError(JaxwatchError, FileNotFoundError):
    """The program that ``jaxwatch run`` was to start does not exist."""

    slug = "no-program"


class WorkloadError(JaxwatchError, RuntimeError):
    """What ``advise`` was to run cannot be compared: it fails by itself, ends too late, or jits nothing."""

    slug = "workload"


class TooFewSizesError(JaxwatchError, ValueError):
    """Fewer sizes than a growth can be fitted to."""

    slug = "too-few-sizes"


class BadScalingError(JaxwatchError, ValueError):
    """What ``jaxwatch scaling`` was given is nothing that it can measure."""

    slug = "bad-scaling"


class MissingExtraError(JaxwatchError, ImportError):
    """An optional dependency is not installed."""

    slug = "missing-extra"


class NotRegisteredError(JaxwatchError, KeyError):
    """``metrics.unregister`` was given a registry that has no jaxwatch collector."""

    slug = "not-registered"

    def __str__(self) -> str:
        """Return the message as it is; ``KeyError`` would quote it."""
        return str(self.args[0])
