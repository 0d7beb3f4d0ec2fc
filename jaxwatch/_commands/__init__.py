"""The subcommands, each thin: parse, call, print. None imports what another one needs."""
