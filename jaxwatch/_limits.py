"""Every bound of jaxwatch, its default, and what happens at it. What overflows is counted, never silently lost."""

# Keys kept of one function object to compare with. At the bound the oldest but the first goes, counted as dropped "key"
KEYS_PER_FUNCTION = 256
# Signatures of a function whose failed trace is remembered. At the bound none is added.
FAILED_SIGNATURES = 64
# Leaves of a function object of which the shapes in its keys are counted, for advice. At the bound it starts anew.
PATHS_COUNTED = 16
# Leaves in all the keys kept of one function object: what they weigh. At the bound as above.
LEAVES_PER_FUNCTION = 50_000
# Levels of an argument's tree. A deeper one is taken as an argument that cannot be read.
TREE_LEVELS = 100
# Function objects of one definition whose keys are kept. At the bound the oldest goes; counted as dropped "key".
OBJECTS_PER_DEFINITION = 16
# Definitions with figures of their own. Beyond, all share the figures of "other"; counted as label overflow "function".
DEFINITIONS = 2_000
# Signatures counted one by one for a function. Beyond, "other"; counted as label overflow "signature".
SIGNATURES_PER_FUNCTION = 1_000
# Sites of eager compiles counted one by one. Beyond, "other"; counted as label overflow "site".
EAGER_SITES = 1_000
# Bytes of the log that one process writes. Beyond, lines are dropped, counted as "log_line", and warned of once.
LOG_BYTES = 256 * 1024 * 1024
# Seconds between two function_stats of a process.
STATS_EVERY_SECONDS = 60.0

# Equations of a program that are looked at. Beyond, its figures are of those, and say so.
PROGRAM_EQUATIONS = 200_000

# Elements of a constant that is part of a program's fingerprint; of a larger one its shape and dtype alone are.
FINGERPRINT_ELEMENTS = 10_000

# Watched functions within the trace of another one, and calls of each that are looked at. Beyond, they are not told.
INNER_FUNCTIONS = 64
INNER_CALLS = 64
# Of a program's inner functions and constants, those told with a miss.
INNER_TOLD = 5
CONSTANTS_TOLD = 5
# Outer functions and keys that are told apart of a function's calls within traces. Beyond, "other"; not looked at.
INLINED_OUTERS = 16
INLINED_KEYS = 256
# Numbers that one run of a program reads and writes, up to which they are told.
TOUCHED_TOLD = 10_000

# Bytes of constants in a program, and variants of a function within one, from which on they are told with advice.
CONSTANT_BYTES_TOLD = 1024 * 1024
VARIANTS_TOLD = 3

# Bytes of outputs that could be written into arguments, in all, from which on it is told; and arguments that are named.
DONATED_BYTES_TOLD = 1024 * 1024
DONATABLE_TOLD = 3

# Primitives, lines and loops of a program that are told with a miss; of the former, those beyond are summed as "other".
PARTS_TOLD = 5
LOOPS_TOLD = 3
# Equal blocks of equations in a row that are told as an unrolled loop, from so many on.
LOOP_BLOCKS = 8
# Equations that one block in place of all leaves out, of a loop that is told.
LOOP_EQUATIONS = 30
# Steps in the search for loops, for each equation of a jaxpr. Beyond, what was found so far is told.
LOOP_STEPS = 32
# Equal calls of a function without a jit in one program, from which on they are told; seconds of tracing and lowering
# that one must be expected to save before it is advised, and their share of all.
BODY_CALLS = 4
INNER_JIT_SECONDS_SAVED = 0.1
INNER_JIT_SHARE_SAVED = 0.05
# Seconds that lax.scan must be expected to save before it is advised, and their share of all: where most of it stays,
# the difference is not known well enough.
SCAN_SECONDS_SAVED = 0.5
SCAN_SHARE_SAVED = 0.3
# Programs that the report tells the lines of: so many, and without --all from so many seconds on.
SLOW_PROGRAMS = 5
SLOW_PROGRAM_SECONDS = 1.0

# Leaves and containers of a key that is told in full, where a miss has no known reason.
FULL_LEAVES = 200

# Leaves and containers of what a library was given that are searched for an argument. Beyond, its path alone is told.
GIVEN_LEAVES = 2_000

# Lengths of texts in events.
REPR_CHARACTERS = 80
ABSTRACT_CHARACTERS = 2_000
# Of a static value that is kept, to show where two long ones differ.
STATIC_CHARACTERS = 4_000
NAME_CHARACTERS = 200
CHANGES_NAMED = 20

# Events that wait for a subscribed callback. Beyond, they are dropped, counted as "hook_call".
HOOK_EVENTS = 1_000
# Seconds for which the end of a program, or close(), waits for those that are still to be delivered.
FLUSH_SECONDS = 5.0

# Console: a recompile is told when it cost at least so much, and one site at most once in so long.
CONSOLE_SECONDS_LOST = 0.1
CONSOLE_EVERY_SECONDS = 60.0
CONSOLE_SITES = 1_000
# Lines on what was compiled after the warm-up, of all sites in that time. Beyond, counted and told with the next one.
CONSOLE_STEADY_LINES = 10

# The line while something compiles: from so many seconds on, anew every so many.
PROGRESS_AFTER_SECONDS = 2.0
PROGRESS_EVERY_SECONDS = 1.0
# Threads whose last compile is remembered, as it may go on; beyond, those that compile nothing now are forgotten.
PROGRESS_THREADS = 64
# Names of which is told how long they took the last time. Beyond, the one that was compiled longest ago goes.
PROGRESS_NAMES = 256

# Metrics: label values, as grafana/METRICS.md promises.
LABEL_FUNCTIONS = 100
LABEL_FUNCTIONS_OF_USER = 50
LABEL_SIGNATURES_PER_FUNCTION = 10
LABEL_SIGNATURES = 200
LABEL_FINGERPRINTS = 10  # of one signature, where the figures are of many processes
LABEL_SITES = 100
ABSTRACT_LABEL_CHARACTERS = 200

# Keys of a function, and of all together, that a report in detail tells, and characters of all their texts. Beyond, the
# misses of further keys are summed, and told as left out.
REPORT_KEYS_PER_FUNCTION = 1_000
REPORT_KEYS = 20_000
REPORT_CHARACTERS = 16_000_000
# Functions in a page's table, and of those the ones whose keys it has, dearest first. Beyond, they are counted there.
REPORT_FUNCTIONS = 5_000
# Of one such key: changes that are told, and characters of each text. Beyond, changes are counted, and texts cut.
REPORT_CHANGES = 8
REPORT_TEXT_CHARACTERS = 300
# Misses whose key is known, so that a later one can be shown below the key that it was compared with. The oldest goes.
REPORT_COMPARED = 50_000
# Compiles that are drawn one by one. Beyond, the dearest are, and the others counted.
REPORT_POINTS = 4_000
# Lines with compiles outside jit that a report in detail tells, dearest first. Beyond, they are summed.
REPORT_EAGER_LINES = 200

# pytest: functions of a test that are counted one by one, and causes of each; beyond, "other". Misses of a test told
# with all that differed; beyond, they are counted. Paths of one reason that are causes of their own; beyond, their
# arguments are.
FUNCTIONS_PER_TEST = 500
CAUSES_PER_TEST = 100
MISSES_PER_TEST = 100
PATHS_PER_CAUSE = 3
# Misses told where a test fails; tests named in a line of the summary; rows of --jaxwatch-report without a number.
MISSES_TOLD = 5
TESTS_TOLD = 3
REPORT_ROWS = 10
