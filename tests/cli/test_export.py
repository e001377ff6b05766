from tests.cli.calls import call


def test_export_writes_graphs(model, tmp_path, capsys):
    call(capsys, "export", model, tmp_path / "onnx")
    assert (tmp_path / "onnx" / "manifest.json").exists()
