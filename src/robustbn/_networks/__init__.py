"""Files to networks, and back. One file a format."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robustbn._core.advice import Advice, Either, Setting, warn
from robustbn._core.allocate import telling_memory
from robustbn._core.calls import naming_the_nearest, require_network, require_path
from robustbn._core.file_names import name_of, url_of
from robustbn.exceptions import NetworkError, SettingError
from robustbn.network import BayesianNetwork

if TYPE_CHECKING:
    from robustbn._networks.parts import Parts

EXAMPLES = ("alarm",)
MAX_CELLS = 2**26  # half a GiB of float64
FORMATS = {  # suffix -> format; `<format>.py` reads and writes it
    ".json": "json",
    ".bif": "bif",
    ".xmlbif": "xmlbif",
    ".bifxml": "xmlbif",
    ".xml": "xmlbif",
    ".net": "net",
    ".xdsl": "xdsl",
    ".uai": "uai",
    ".csv": "edges",
    ".tsv": "edges",
    ".txt": "edges",
}
PICKLES = (".pkl", ".pickle", ".joblib", ".dill")


@telling_memory("Reading the network")
@naming_the_nearest
def read_network(
    path: str | Path,
    *,
    format: str | None = None,
    states: str | Path | Mapping[str, Sequence[Hashable]] | None = None,
    tables: bool = True,
    normalize: bool = False,
    max_cells: int = MAX_CELLS,
) -> BayesianNetwork:
    """Read a network from a file; every number in it is kept exactly.

    Parameters
    ----------
    path : str or Path
        The file, or its URL (through fsspec). Its suffix gives the format: `.json` (our own),
        `.bif`, `.xmlbif`, `.bifxml` or `.xml`, `.net` (Hugin), `.xdsl` (GeNIe), `.uai`, and `.csv`,
        `.tsv` or `.txt` (edges); each also followed by `.gz`.
    format : str or None, default=None
        The format, whatever the suffix: "json", "bif", "xmlbif", "net", "xdsl", "uai" or "edges".
    states : str, Path, dict or None, default=None
        For edges, the states of each node: a mapping, or a `.json`, `.csv` or `.tsv` file. For UAI,
        which has no names, the names of nodes and states in the order of the file.
    tables : bool, default=True
        Whether to read the probability tables; a fit does not need them.
    normalize : bool, default=False
        Whether to rescale configurations whose probabilities do not sum to 1; otherwise they are an
        error. Sums within 1e-6 of 1 are always kept as they are.
    max_cells : int, default=67108864
        The largest number of cells of the tables; larger networks are refused before memory is
        allocated.

    Raises
    ------
    NetworkError
        With the file and, where the format has lines, the line. A file that cannot be opened gives
        an error that is also a `FileNotFoundError`, `PermissionError` or other `OSError`.

    Examples
    --------
    >>> import robustbn, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "alarm.bif.gz"
    >>> robustbn.write_network(robustbn.example_network("alarm"), path)
    >>> robustbn.read_network(path) == robustbn.example_network("alarm")
    True
    """
    from robustbn._networks.files import find_file, read_bytes
    from robustbn._networks.parts import build_network

    require_path(path, "read_network(path)")
    found = find_file(path)
    source, name = name_of(found), choose_format(found, format)
    parts = _read_parts(name, read_bytes(found), source, states)
    return build_network(parts, source, tables=tables, normalize=normalize, max_cells=max_cells)


def _read_parts(
    name: str,
    data: bytes,
    source: str,
    states: str | Path | Mapping[str, Sequence[Hashable]] | None,
) -> Parts:
    from robustbn._networks.edges import read_states

    reader: Any = import_module(f"robustbn._networks.{name}")
    parts: Parts
    if name == "edges":
        if states is None:
            raise NetworkError(
                Advice(
                    f"{source}: an edge list does not say which states the nodes have. Give them: ",
                    Setting("states", "states.json"),
                    ". A table can give them, too: ",
                    Either(
                        'robustbn.states_from("rows.csv", "edges.csv").',
                        "robustbn states edges.csv rows.csv.",
                    ),
                )
            )
        parts = reader.read_parts(data, source, read_states(states))
    else:
        parts = reader.read_parts(data, source)
        if states is not None and name != "uai":
            raise NetworkError(
                f"{source} already has states; states= applies only to edge lists and UAI files."
            )
        if states is not None:
            parts = reader.rename(parts, read_states(states), source)
    return parts


@naming_the_nearest
def write_network(
    network: BayesianNetwork, path: str | Path, format: str | None = None, *, numbered: bool = False
) -> None:
    """Write a network to a file; every probability is written exactly.

    The file is written under a temporary name in the same folder and then renamed, so it is written
    completely or not at all.

    Parameters
    ----------
    network : BayesianNetwork
        The network to write, with or without tables (UAI needs them).
    path : str or Path
        The file; its suffix gives the format, as in `read_network`. Edge lists are not written,
        because they would lose states and tables.
    format : str or None, default=None
        The format, whatever the suffix.
    numbered : bool, default=False
        For UAI, whether to write nodes and states as numbers and drop their names.

    Examples
    --------
    >>> import robustbn, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "alarm.xdsl"
    >>> robustbn.write_network(robustbn.example_network("alarm"), path)
    >>> robustbn.read_network(path) == robustbn.example_network("alarm")
    True
    """
    require_network(network, "write_network(network, path)", path)
    require_path(path, "write_network(network, path)")
    path, url = Path(path), url_of(path)
    if url is not None:
        raise NetworkError(f"{url} is remote: write a local file, and copy it there.")
    name = choose_format(path, format)
    if name == "edges":
        raise NetworkError(
            f"{path}: an edge list holds neither states nor tables, so a network is not written "
            "to one. Write .json, or take `network.edges` and `network.states`."
        )
    if numbered and name != "uai":
        raise NetworkError(
            f"{path}: `numbered=` applies only to UAI files; this format keeps the names."
        )
    if network.reading and name != "json":
        warn(
            f"{path}: this format cannot store how columns are read ("
            f"{', '.join(list(network.reading)[:5])}): numbers that are cut, values that are "
            "merged, dates. A .json file does."
        )
    from robustbn._networks.files import encode, write_bytes

    writer: Any = import_module(f"robustbn._networks.{name}")
    text = writer.to_text(network, numbered=numbered) if name == "uai" else writer.to_text(network)
    write_bytes(encode(text, str(path)), path)


def example_network(name: str = "alarm") -> BayesianNetwork:
    """Return a published network that ships with the package.

    Parameters
    ----------
    name : str, default="alarm"
        The name of the network; "alarm" (Beinlich and others, 1989) is the only one.

    Examples
    --------
    >>> import robustbn
    >>> robustbn.example_network("alarm")
    BayesianNetwork(37 nodes, 46 edges, 243 configurations, 752 cells, with tables)
    """
    if name not in EXAMPLES:
        raise SettingError(f"No example network {name!r}; there are {', '.join(EXAMPLES)}.")
    from importlib.resources import files  # slow to import, and seldom needed

    from robustbn._networks.parts import build_network

    data = (files("robustbn") / "_networks" / "data" / f"{name}.json").read_bytes()
    source = f"example {name}"
    parts = _read_parts("json", data, source, None)
    return build_network(parts, source, tables=True, normalize=False, max_cells=MAX_CELLS)


def choose_format(path: Path, format: str | None = None) -> str:
    """Return the format that was named, or that the suffix stands for."""
    stem = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    suffix = stem.suffix.lower()
    known = f"networks are read from and written to {', '.join(FORMATS)} files (each also .gz)"
    if suffix in PICKLES:
        raise NetworkError(
            f"{name_of(path)}: {known}. A {suffix} file may run code when it is opened, so it is "
            "refused."
        )
    if format is not None:
        if format not in FORMATS.values():
            names = ", ".join(dict.fromkeys(FORMATS.values()))
            raise NetworkError(f"There is no network format {format!r}; there are {names}.")
        return format
    if suffix not in FORMATS:
        from robustbn._core.file_names import did_you_mean

        gone = "" if path.exists() else "there is no such file; "
        hint = Advice(did_you_mean(path, FORMATS) if name_of(path) == str(path) else "")
        if not str(hint):
            named = Setting("format", Either("...", "FORMAT"), "from_format")
            hint = Advice(" If the file has one of these formats, say which: ", named, ".")
        raise NetworkError(Advice(f"{name_of(path)}: {gone}{known}.", hint))
    return FORMATS[suffix]
