"""Logs too large for one reader: event logs → Parquet (``export.py``), and a report on that (``report.py``), by DuckDB.

``schema.py`` reads the columns off the events' annotations, ``lines.py`` fills them, ``numbers.py`` tells processes
apart, ``duck.py`` opens DuckDB and the folder, ``findings.py`` gathers what is repeated. DuckDB is an extra; nothing
else of jaxwatch imports it.
"""
