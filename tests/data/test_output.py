"""Files are written whole or not at all; what is not a regular file is written to and never replaced."""

import errno
import os
import stat
from threading import Thread

import pytest

from emsco.data.output import write_atomically, writing, writing_text
from emsco.exceptions import FileError, ModelFileError

posix = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes and links as POSIX has them")


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_new_file_has_the_usual_permissions_and_nothing_else_is_left(tmp_path):
    write_atomically(tmp_path / "new", b"text")
    assert (tmp_path / "new").read_bytes() == b"text"
    assert mode_of(tmp_path / "new") == 0o666 & ~umask()
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o666])
def test_a_replaced_file_keeps_its_permissions(tmp_path, mode):
    path = tmp_path / "private"
    path.write_bytes(b"old")
    path.chmod(mode)
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert mode_of(path) == mode


@posix
def test_a_file_is_private_while_it_replaces_a_private_one(tmp_path):
    path = tmp_path / "private"
    path.write_bytes(b"old")
    path.chmod(0o600)
    with writing(path) as output:
        output.write(b"secret")
        (temporary,) = (other for other in tmp_path.iterdir() if other != path)
        assert mode_of(temporary) == 0o600
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"secret"


@posix
def test_what_one_group_may_read_is_not_granted_to_another(tmp_path, monkeypatch):
    path = tmp_path / "shared"
    path.write_bytes(b"old")
    path.chmod(0o640)

    def chown(*_):
        raise PermissionError(errno.EPERM, "not yours")

    monkeypatch.setattr(os, "chown", chown)
    write_atomically(path, b"new")
    assert mode_of(path) == 0o600


@posix
def test_a_link_stays_and_its_target_is_replaced(tmp_path):
    (tmp_path / "models").mkdir()
    target, link, far = tmp_path / "models" / "v1", tmp_path / "current", tmp_path / "alias"
    target.write_bytes(b"old")
    target.chmod(0o600)
    link.symlink_to(target)
    far.symlink_to("current")
    for name in (link, far):
        write_atomically(name, name.name.encode())
        assert name.is_symlink()
        assert target.read_bytes() == name.name.encode()
    assert mode_of(target) == 0o600
    absent = tmp_path / "next"
    absent.symlink_to(tmp_path / "models" / "v2")
    write_atomically(absent, b"new")
    assert absent.is_symlink()
    assert (tmp_path / "models" / "v2").read_bytes() == b"new"


@posix
def test_a_pipe_is_written_through_and_stays(tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    with writing(pipe) as output:
        output.write(b"one ")
        assert output.tell() == 4
        output.write(b"two")
    reader.join()
    assert read == [b"one two"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@posix
def test_a_device_is_written_through_and_stays(tmp_path):
    device = tmp_path / "null"
    device.symlink_to("/dev/null")
    write_atomically(device, b"text")
    assert device.is_symlink()
    assert stat.S_ISCHR(device.stat().st_mode)
    assert [path.name for path in tmp_path.iterdir()] == ["null"]


@posix
def test_standard_output_is_not_replaced_even_where_it_leads_to_a_file(tmp_path):
    path = tmp_path / "log"
    with path.open("wb") as file:
        file.write(b"before ")
        file.flush()
        write_atomically(type(path)(f"/dev/fd/{file.fileno()}"), b"written ")
        file.seek(0, os.SEEK_END)
        file.write(b"after")
    assert path.read_bytes() == b"before written after"


def test_an_error_in_the_block_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def begin(opened, half):
        with opened as output:
            output.write(half)
            raise KeyError

    with pytest.raises(KeyError):
        begin(writing(path), b"half")
    with pytest.raises(KeyError):
        begin(writing_text(path), "half")
    assert path.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("name", ["fsync", "replace"])
def test_a_full_disk_is_said_and_leaves_the_old_file(tmp_path, monkeypatch, name):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, name, full)
    with pytest.raises(ModelFileError, match=r"file' cannot be written: No space left on device. Free some space"):
        write_atomically(path, b"new", ModelFileError)
    assert path.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full")
def test_a_full_device_is_said(tmp_path):
    with pytest.raises(FileError, match="No space left on device"):
        write_atomically(type(tmp_path)("/dev/full"), b"x" * 100_000)


def test_a_reader_that_has_seen_enough_is_not_an_error_of_the_file(tmp_path):
    read, write = os.pipe()
    os.close(read)
    try:
        with pytest.raises(BrokenPipeError):
            write_atomically(type(tmp_path)(f"/dev/fd/{write}"), b"x" * 100_000)
    finally:
        os.close(write)


def test_places_that_cannot_be_written_to_are_named(tmp_path):
    with pytest.raises(FileError, match=r"no folder .*nowhere.*create it first"):
        write_atomically(tmp_path / "nowhere" / "file", b"")
    with pytest.raises(FileError, match=r"is a folder; give the name of a file"):
        write_atomically(tmp_path, b"")
    with pytest.raises(FileError, match=r"cannot be written"):
        write_atomically(tmp_path / "a\0b", b"")
    with pytest.raises(FileError, match=r"cannot be written"):
        write_atomically(tmp_path / ("long" * 100), b"")


def test_a_long_name_leaves_room_for_the_temporary_file(tmp_path):
    path = tmp_path / ("n" * 255)
    write_atomically(path, b"text")
    assert path.read_bytes() == b"text"
