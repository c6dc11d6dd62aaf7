"""Start of commands: few imports, complete help, closed standard streams, and the version."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import sortformer
from tests.cli.conftest import Cli
from tests.marks import NEEDS_DEV_FULL

RTTM = "SPEAKER meeting 1 0.000 1.000 <NA> <NA> a <NA> <NA>\n"


@pytest.mark.parametrize(
    "arguments", [["--help"], ["diarize", "--help"], ["mechanisms"], ["score", "{rttm}", "{rttm}"]]
)
def test_what_needs_no_model_imports_no_torch_and_help_nothing_that_takes_long(tmp_path: Path, arguments: list[str]):
    (tmp_path / "meeting.rttm").write_text(RTTM)
    heavy = (
        {"torch"} if "--help" not in arguments else {"torch", "scipy", "pyannote", "soundfile", "av", "yaml", "rich"}
    )
    given = [argument.format(rttm=tmp_path / "meeting.rttm") for argument in arguments]
    program = (
        "import sys\nfrom sortformer.cli import main\n"
        f"try:\n    main({given!r})\nexcept SystemExit as left:\n    assert not left.code\n"
        f"assert not {heavy!r} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


def test_the_package_itself_imports_nothing_heavy():
    program = "import sys, sortformer\nassert not {'torch', 'numpy', 'importlib.metadata'} & set(sys.modules)"
    subprocess.run([sys.executable, "-S", "-c", program], check=True, cwd=Path(sortformer.__file__).parents[1])


def test_public_names_are_there():
    for name in sortformer.__all__:
        assert getattr(sortformer, name) is not None
        assert name in dir(sortformer)
    with pytest.raises(AttributeError, match="no attribute 'Diariser'"):
        sortformer.Diariser  # noqa: B018 # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("group", [[], ["manifest"]])
def test_no_description_is_cut_off(cli: Cli, monkeypatch: pytest.MonkeyPatch, group: list[str]):
    monkeypatch.setenv("COLUMNS", "80")
    shown = cli(*group, "--help").out
    assert "Commands:" in shown
    assert "..." not in shown.partition("Commands:")[2]


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_what_was_closed_before_the_start_is_empty_or_goes_nowhere(tmp_path: Path, closed: int):
    given, out = tmp_path / "given.rttm", tmp_path / "out.txt"
    given.write_text("SPEAKER m 1 0.00 1.50 <NA> <NA> a <NA> <NA>\n")
    python = f'"{sys.executable}" -W default::ResourceWarning'
    command = f'{python} -m sortformer score "{given}" "{given}" > "{out}" {closed}{"<" if not closed else ">"}&-'
    done = subprocess.run(command, shell=True, check=False, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert ("TOTAL" in out.read_text()) == (closed != 1)


@pytest.mark.parametrize(("name", "code"), [("given.rttm", 0), ("absent.rttm", 1)])
@pytest.mark.parametrize("full", [False, pytest.param(True, marks=NEEDS_DEV_FULL)])
def test_where_nothing_can_be_said_the_exit_code_stays(tmp_path: Path, name: str, code: int, full: bool):
    """Stderr is a pipe that nobody reads, or a full disk."""
    (tmp_path / "given.rttm").write_text(RTTM)
    (tmp_path / "late.uem").write_text("meeting 1 5 9\n")  # said to begin after the last turn
    command = [sys.executable, "-m", "sortformer", "score", "given.rttm", name, "--uem", "late.uem"]
    if full:
        stderr = os.open("/dev/full", os.O_WRONLY)
    else:
        reader, stderr = os.pipe()
        os.close(reader)
    done = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=stderr, text=True, check=False)
    os.close(stderr)
    assert (done.returncode, "TOTAL" in done.stdout) == (code, code == 0)


@pytest.mark.parametrize(
    ("given", "spin"),
    [({}, "1000"), ({"GOMP_SPINCOUNT": "5"}, "5"), ({"OMP_WAIT_POLICY": "ACTIVE"}, None)],
    ids=["nobody decided", "another count", "another policy"],
)
def test_threads_wait_asleep_unless_it_was_decided_otherwise(given: dict[str, str], spin: str | None):
    program = (
        "import os, sys\nimport sortformer.__main__ as command\nassert 'torch' not in sys.modules\n"
        "sys.argv = ['sortformer', '--version']\n"
        "try:\n    command.main()\nexcept SystemExit:\n    print(os.environ.get('GOMP_SPINCOUNT'))"
    )
    free = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    done = subprocess.run([sys.executable, "-c", program], env=free | given, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == str(spin)


def test_version(cli: Cli):
    assert cli("--version").out == f"sortformer {sortformer.__version__}\n"


def test_a_command_that_does_not_exist(cli: Cli):
    outcome = cli("diarise")
    assert outcome.code == 2
    assert "diarise" in outcome.err
