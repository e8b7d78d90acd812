import lzma
import os
from pathlib import Path

import numpy as np
import pooch
import pytest
import requests

from onepass.lab import DataNotFound, ExperimentError, datasets
from onepass.lab.datasets import NAMES, SOURCES, load
from onepass.lab.learners import kuairec

SHAPES = {
    "digits": (1797, 64, 10),
    "mnist": (70000, 784, 10),
    "optdigits": (5620, 64, 10),
    "cnae-9": (1080, 856, 9),
    "mfeat-zernike": (2000, 47, 10),
    "spambase": (4601, 57, 2),
    "german": (1000, 24, 2),
    "svmguide3": (1243, 21, 2),
    "ijcnn1": (49990, 22, 2),
    "cod-rna": (59535, 8, 2),
    "w7a": (24692, 300, 2),
    "cifar-10": (50000, 3072, 10),
}


def is_available(name: str) -> bool:
    folder = os.environ.get("ONEPASS_DATA")
    return name == "digits" or (
        folder is not None
        and any(all((Path(folder) / file).is_file() for file in form.files) for form in SOURCES[name].forms)
    )


def load_uncached(name: str) -> datasets.Dataset:
    return load.__wrapped__(name)  # past the cache of the process


@pytest.fixture
def empty_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No data folder, an empty cache, no network."""

    def refuse(*_: object, **__: object) -> None:
        raise requests.ConnectionError("no network")

    monkeypatch.delenv("ONEPASS_DATA", raising=False)
    monkeypatch.setattr(datasets, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(pooch, "retrieve", refuse)
    return tmp_path


@pytest.mark.parametrize("name", NAMES)
def test_every_data_set_has_the_published_shape_and_classes(name: str) -> None:
    if not is_available(name):
        pytest.skip(f"the files of {name} are not in $ONEPASS_DATA")
    data = load(name)
    assert (*data.rows.shape, data.classes) == SHAPES[name]
    assert data.rows.dtype == np.float64
    assert data.rows.flags.c_contiguous
    assert np.unique(data.labels).tolist() == list(range(data.classes))
    assert np.isfinite(data.rows).all()


def test_mnist_pixels_lie_where_their_class_says() -> None:
    if not is_available("mnist"):
        pytest.skip("the files of mnist are not in $ONEPASS_DATA")
    data = load("mnist")
    means = np.array([data.rows[data.labels == label].mean(axis=0) for label in range(10)])
    distances = ((data.rows[-2000:, None, :] - means) ** 2).sum(axis=2)
    assert (distances.argmin(axis=1) == data.labels[-2000:]).mean() > 0.75  # nearest class mean; chance is 0.1


def test_loaded_rows_cannot_be_changed_by_accident() -> None:
    with pytest.raises(ValueError, match="read-only"):
        load("digits").rows[0, 0] = 1.0


def test_an_unknown_name_is_answered_with_the_valid_ones() -> None:
    with pytest.raises(ExperimentError, match=r"'nist'.*digits, mnist, optdigits, cnae-9, mfeat-zernike, spambase"):
        load("nist")


EVERY = {**SOURCES, **datasets.INTERACTIONS, "kuairec": kuairec.SOURCE}


@pytest.mark.parametrize("name", EVERY)
def test_a_missing_data_set_says_where_to_get_and_where_to_put_its_files(name: str, empty_machine: Path) -> None:
    with pytest.raises(DataNotFound) as caught:
        datasets.find_files(name, EVERY[name])
    message = str(caught.value)
    assert isinstance(caught.value, FileNotFoundError)
    assert "ONEPASS_DATA" in message
    assert str(empty_machine) in message
    assert all(file in message for form in EVERY[name].forms for file in form.files)
    assert all(one.url in message for one in EVERY[name].downloads)
    assert "https://" in message


def test_libsvm_files_have_the_width_of_the_set_even_if_the_last_column_is_empty(
    empty_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (empty_machine / "libsvm").mkdir()
    (empty_machine / "libsvm" / "w7a").write_text("-1 3:1 299:1\n+1 1:1\n-1 2:1\n")
    with pytest.raises(ExperimentError, match=r"w7a is not w7a.*\(3, 300\).*\(24692, 300\)"):
        load_uncached("w7a")
    monkeypatch.setitem(SOURCES, "w7a", SOURCES["w7a"]._replace(counts=(3,)))
    data = load_uncached("w7a")
    assert data.rows.shape == (3, 300)
    assert data.rows[0, 298] == 1.0
    assert data.labels.tolist() == [0, 1, 0]


def test_cifar_10_is_read_in_its_binary_form(empty_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    table = rng.integers(256, size=(15, 3073), dtype=np.uint8)
    table[:, 0] = np.arange(15) % 3
    (empty_machine / "cifar-10-batches-bin").mkdir()
    for i, part in enumerate(np.split(table, 5), 1):
        (empty_machine / "cifar-10-batches-bin" / f"data_batch_{i}.bin").write_bytes(part.tobytes())
    monkeypatch.setitem(SOURCES, "cifar-10", SOURCES["cifar-10"]._replace(counts=(5, 5, 5)))
    data = load_uncached("cifar-10")
    np.testing.assert_array_equal(data.rows, table[:, 1:])
    np.testing.assert_array_equal(data.labels, table[:, 0])


def test_the_official_form_is_read_from_the_cache_too(empty_machine: Path) -> None:
    rows = np.random.default_rng(0).random((2000, 47))
    (empty_machine / "uci").mkdir()
    np.savetxt(empty_machine / "uci" / "mfeat-zer", rows)
    data = load_uncached("mfeat-zernike")
    np.testing.assert_array_equal(data.rows, rows)
    np.testing.assert_array_equal(data.labels, np.repeat(np.arange(10), 200))


def test_the_data_folder_comes_before_the_cache(empty_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = np.random.default_rng(1).random((2, 2000, 47))
    for folder, rows in ((empty_machine / "data", first), (empty_machine, second)):
        (folder / "uci").mkdir(parents=True)
        np.savetxt(folder / "uci" / "mfeat-zer", rows)
    monkeypatch.setenv("ONEPASS_DATA", str(empty_machine / "data"))
    np.testing.assert_array_equal(load_uncached("mfeat-zernike").rows, first)


def test_a_download_goes_to_the_cache_and_is_checked(empty_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def retrieve(url: str, known_hash: str | None, fname: str, path: Path, downloader: object) -> None:
        asked.append((url.rsplit("/", 1)[-1], known_hash, path / fname))
        raise ValueError("the hash of the downloaded file does not match")

    monkeypatch.setattr(pooch, "retrieve", retrieve)
    with pytest.raises(DataNotFound):
        load_uncached("mnist")
    file = "train-images-idx3-ubyte.gz"
    assert asked == [(file, "md5:f68b3c2dcbeaaa9fbdd348bbdeb94873", empty_machine / "mnist" / file)]


def test_a_downloaded_file_is_read(empty_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(2).random((2000, 47))

    def retrieve(url: str, known_hash: str | None, fname: str, path: Path, downloader: object) -> None:
        path.mkdir(parents=True)
        np.savetxt(path / fname, rows)

    monkeypatch.setattr(pooch, "retrieve", retrieve)
    np.testing.assert_array_equal(load_uncached("mfeat-zernike").rows, rows)


def test_another_file_of_the_right_name_is_refused_by_its_shape(empty_machine: Path) -> None:
    (empty_machine / "uci").mkdir()
    np.savetxt(empty_machine / "uci" / "spambase.data", np.zeros((10, 58)), delimiter=",")
    with pytest.raises(ExperimentError, match=r"spambase.data is not spambase.*\(10, 57\).*\(4601, 57\)"):
        load_uncached("spambase")


def test_wrong_classes_are_refused_even_in_the_right_shape(empty_machine: Path) -> None:
    (empty_machine / "uci").mkdir()
    np.savetxt(empty_machine / "uci" / "CNAE-9.data", np.ones((1080, 857)), delimiter=",", fmt="%d")
    with pytest.raises(ExperimentError, match=r"CNAE-9.data is not cnae-9.*\(1080,\) examples per class"):
        load_uncached("cnae-9")


@pytest.mark.parametrize("content", [b"", b"not a compressed file", lzma.compress(b"a,b\n1,x\n")[:-5]])
def test_a_damaged_file_is_named(empty_machine: Path, content: bytes) -> None:
    (empty_machine / "openml").mkdir()
    (empty_machine / "openml" / "optdigits.csv.xz").write_bytes(content)
    with pytest.raises(ExperimentError, match=r"optdigits.csv.xz cannot be read.*remove or replace"):
        load_uncached("optdigits")
