"""Opening of a store by its name on a command line."""

from pathlib import Path

from onepass.log.store import Store, StoreError

SCHEMES = ("postgresql://", "postgres://")


def open_store(place: str, *, readonly: bool = False) -> Store:
    """Open the store at a place.

    Parameters
    ----------
    place : str
        "postgresql://..." for a database, a folder of Parquet files, or else a file of SQLite. A file that ends in
        .jsonl is read into memory, for reading only. "ARCHIVE+STORE" is a folder and one of these, read as one log.
    readonly : bool, default False
        Refuse a file or a folder that does not exist.

    Returns
    -------
    Store
        The store.

    Raises
    ------
    StoreError
        If it cannot be opened.
    """
    if place.startswith(SCHEMES):
        from onepass.log.postgres import PostgresStore

        return PostgresStore(place)
    path = Path(place)
    folder, plus, live = place.partition("+")
    if plus and not path.exists() and Path(folder).is_dir():
        from onepass.log.archive_view import JoinedStore

        return JoinedStore(open_store(folder), open_store(live, readonly=readonly))
    if readonly and not path.exists():
        raise StoreError(f"there is no store {place}")
    if path.is_dir():
        from onepass.log.parquet import ParquetStore

        return ParquetStore(path)
    if path.suffix == ".jsonl":
        return _load_jsonl(path)
    from onepass.log.sqlite import SqliteStore

    return SqliteStore(path, readonly=readonly)


def _load_jsonl(path: Path) -> Store:
    """Load the records of a file of JSON lines into memory."""
    from onepass.log.import_export import import_file
    from onepass.log.memory import MemoryStore

    if not path.exists():
        raise StoreError(f"there is no store {path}")
    store = MemoryStore()
    import_file(store, path)
    return store
