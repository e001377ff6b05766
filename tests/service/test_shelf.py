import shutil

import pytest

from emsco import load
from emsco.exceptions import InvalidParameterError, ModelFileError
from emsco.service.problems import ProblemError
from emsco.service.settings import Source
from emsco.service.shelf import Shelf
from tests.service.conftest import serving
from tests.service.test_cases import ask


@pytest.fixture
def shelf_of():
    def make(*sources):
        said = []
        shelf = Shelf(tuple(Source(*source) for source in sources), lambda event, **facts: said.append((event, facts)))
        shelf.said = said
        return shelf

    return make


def replace(target, source):
    """Put another file in the place of one, in one step."""
    new = target.with_suffix(".new")
    shutil.copy(source, new)
    new.replace(target)


def test_a_replaced_file_is_loaded_and_requests_in_progress_keep_the_old_model(shelf_of, folder, tmp_path):
    path = tmp_path / "model.emsco"
    shutil.copy(folder / "mixed.emsco", path)
    shelf = shelf_of((path,))
    shelf.fill()
    old = shelf.get("model")
    assert shelf.look() == []
    replace(path, folder / "heart.emsco")
    assert shelf.look() == ["model"]
    new = shelf.get("model")
    assert new.version != old.version
    assert new.classes == [0, 1]
    assert old.classes == ["sick", "well"]
    assert old.model.session().step().columns == ("age",)


@pytest.mark.parametrize("broken", [b"", b"PK\x03\x04 nonsense", "cut"])
def test_a_bad_file_leaves_the_old_model_serving_and_says_so(shelf_of, folder, tmp_path, broken):
    path = tmp_path / "model.emsco"
    shutil.copy(folder / "mixed.emsco", path)
    shelf = shelf_of((path,))
    shelf.fill()
    version = shelf.get("model").version
    path.write_bytes(path.read_bytes()[:-100] if broken == "cut" else broken)
    assert shelf.look() == []
    assert shelf.get("model").version == version
    assert "cannot be loaded" in shelf.troubles["model"]
    assert shelf.said[-1][0] == "model refused"
    n_said = len(shelf.said)
    assert shelf.look() == []
    assert len(shelf.said) == n_said  # once
    replace(path, folder / "heart.emsco")
    assert shelf.look() == ["model"]
    assert shelf.troubles == {}
    path.unlink()
    shelf.look()
    assert shelf.get("model").classes == [0, 1]
    assert "there is no file" in shelf.troubles["model"]


def test_a_folder_is_served_as_it_changes(shelf_of, folder, tmp_path):
    shelf = shelf_of((tmp_path,))
    shelf.fill()
    assert dict(shelf.served) == {}
    shutil.copy(folder / "mixed.emsco", tmp_path / "a.emsco")
    (tmp_path / "b.emsco").write_bytes(b"broken")
    (tmp_path / "notes.txt").write_text("no model")
    (tmp_path / "no name!.emsco").write_bytes(b"")
    assert shelf.look() == ["a"]
    assert list(shelf.served) == ["a"]
    assert shelf.troubles.keys() == {"b", "no name!"}
    (tmp_path / "a.emsco").unlink()
    assert shelf.look() == ["a"]
    with pytest.raises(ProblemError, match="the models are none"):
        shelf.get("a")


def test_files_that_are_named_must_be_usable_at_the_start(shelf_of, folder, tmp_path):
    (tmp_path / "bad.emsco").write_bytes(b"bad")
    with pytest.raises(ModelFileError, match=r"bad\.emsco"):
        shelf_of((folder / "mixed.emsco",), (tmp_path / "bad.emsco",)).fill()
    with pytest.raises(ModelFileError, match="there is no file"):
        shelf_of((tmp_path / "nothing.emsco",)).fill()
    with pytest.raises(InvalidParameterError, match="both be called 'heart'"):
        shelf_of((folder / "heart.emsco",), (folder / "mixed.emsco", "heart")).fill()
    with pytest.raises(InvalidParameterError, match="no name of a model"):
        shelf_of((folder / "heart.emsco", "a/b")).fill()


def test_a_model_may_be_given_a_name(shelf_of, folder):
    shelf = shelf_of((folder / "heart.emsco", "ward-7"), (folder / "mixed.emsco",))
    shelf.fill()
    assert list(shelf.served) == ["ward-7", "mixed"]


def test_the_service_tells_of_a_file_that_it_cannot_use(folder, tmp_path):
    path = tmp_path / "model.emsco"
    shutil.copy(folder / "mixed.emsco", path)
    with serving(path) as client:
        before = ask(client, "model")
        path.write_bytes(b"broken")
        client.service.look()
        assert "cannot be loaded" in client.get("/models/model").json()["trouble"]
        assert "cannot be loaded" in client.get("/models").json()["models"][0]["trouble"]
        assert ask(client, "model") == before
        clf = load(folder / "mixed.emsco")
        clf.threshold = 0.6
        clf.save(path)
        client.service.look()
        assert client.get("/models/model").json()["trouble"] is None
        assert ask(client, "model")["version"] != before["version"]
