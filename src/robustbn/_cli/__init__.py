"""The commands of the command line, one file each, imported when asked for."""

import signal

ENDING = tuple(getattr(signal, n) for n in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, n))
COMMAND_LINE = "robustbn.command_line"  # where the context of click keeps what was typed
