"""Bridges to other libraries, in memory: one file a library, each with `to_x` and `from_x`.

Every bridge carries nodes, parents in order, states in order and tables. What a library cannot hold
is refused with a reason; nothing is renamed without a word. Libraries are imported when a bridge is
crossed, so this package costs nothing until then.
"""
