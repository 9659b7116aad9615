"""The commands of the command line, one file each, imported when asked for."""

COMMAND_LINE = "robustbn.command_line"  # where the context of click keeps what was typed
