"""Models by Hugging Face id; cache, revision, token and offline mode are those of huggingface-hub."""

import re
import sys
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path

from sortformer.checkpoint.files import read_config
from sortformer.checkpoint.kinds import is_known, model_in
from sortformer.errors import InputError, first_line, refusal

__all__ = ["ModelId", "download", "parse_id"]

_FOLDER_FILES = ("config.json", "model.safetensors")


@dataclass(frozen=True, slots=True)
class ModelId:
    """The id of a model on the hub: ``owner/name``, or ``owner/name@revision``."""

    owner: str
    name: str
    revision: str | None = None

    @property
    def repository(self) -> str:
        """The id without its revision."""
        return f"{self.owner}/{self.name}"


def parse_id(text: str) -> ModelId | None:
    """Parse a model id; return None if ``text`` can only be a path."""
    match = re.fullmatch(r"(\w[\w.-]*)/(\w[\w.-]*)(?:@([\w./-]+))?", text)
    if match is None or match[2].endswith((".nemo", ".json", ".onnx", ".safetensors")):
        return None
    return ModelId(match[1], match[2], match[3])


def download(model_id: ModelId) -> Path:
    """Return the local folder of a model; download what the cache lacks.

    The files are ``config.json`` and ``model.safetensors`` or, if the repository lacks them or has them in another
    library's format, its only ``.nemo`` archive. The hub is queried for its files once, without retries; if that fails,
    the cache is used.

    Raises:
        InputError: if there is no such model, access is denied, or it can neither be fetched nor found in the cache.
    """
    # Imported late: it takes half a second, and a model on disk does not need it.
    import huggingface_hub
    from huggingface_hub import constants, errors

    if sys.stderr is None:  # in a program without a console, where a progress bar would fail
        huggingface_hub.utils.disable_progress_bars()
    name = model_id.repository
    try:
        info = huggingface_hub.HfApi().model_info(
            name, revision=model_id.revision, timeout=constants.HF_HUB_ETAG_TIMEOUT
        )
        fetch = partial(huggingface_hub.hf_hub_download, name, revision=model_id.revision)
        files = _wanted(name, [sibling.rfilename for sibling in info.siblings or []], fetch)
        places = [Path(fetch(file)) for file in files]
    except errors.GatedRepoError as error:
        raise InputError(
            f"the model {name} is gated: accept its terms at {constants.ENDPOINT}/{name}, then set HF_TOKEN"
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise InputError(
            f"there is no model '{name}', neither as a file or folder here nor on Hugging Face "
            "(if it is private, set HF_TOKEN)"
        ) from error
    except errors.RevisionNotFoundError as error:
        raise InputError(f"the model {name} on Hugging Face has no revision '{model_id.revision}'") from error
    except errors.HFValidationError as error:
        raise InputError(
            f"'{name}' is not a file or folder, nor a valid Hugging Face id: {first_line(error)}"
        ) from error
    except InputError:
        raise
    except Exception as error:  # no network, a server error, a full disk: they have no common class
        return _cached(model_id, error)
    return places[0].parent


def _wanted(name: str, files: Collection[str], fetch: Callable[[str], str]) -> tuple[str, ...]:
    """Return the files of a repository that make up the model; ``fetch`` returns the local path of one."""
    archives = tuple(file for file in files if file.endswith(".nemo") and "/" not in file)
    one, whole = len(archives) == 1, set(_FOLDER_FILES) <= set(files)
    if whole and (not one or is_known(read_config(Path(fetch(_FOLDER_FILES[0]))))):
        return _FOLDER_FILES
    if not one:
        raise InputError(
            f"the model {name} on Hugging Face has neither config.json and model.safetensors nor one .nemo file"
        )
    return archives


def _cached(model_id: ModelId, cause: Exception) -> Path:
    """Return the cached folder of a model that cannot be fetched, or raise an error that says why."""
    import huggingface_hub
    from huggingface_hub import errors

    with suppress(errors.LocalEntryNotFoundError, errors.HFValidationError):
        folder = Path(
            huggingface_hub.snapshot_download(
                model_id.repository,
                revision=model_id.revision,
                local_files_only=True,
                allow_patterns=[*_FOLDER_FILES, "*.nemo"],
            )
        )
        # The cache may hold the model in another library's format, or only some of its files.
        found = model_in(folder)
        if isinstance(found, Path) or (found is not None and all((folder / name).exists() for name in _FOLDER_FILES)):
            return folder
    raise InputError(
        f"'{model_id.repository}' is not a file or folder, it is not in the Hugging Face cache, and {_reason(cause)}"
    ) from cause


def _reason(cause: Exception) -> str:
    """Return why a model cannot be fetched."""
    from huggingface_hub import errors

    if isinstance(cause, errors.OfflineModeIsEnabled):
        return "offline mode is on (HF_HUB_OFFLINE)"
    refused = getattr(getattr(cause, "response", None), "status_code", None) == HTTPStatus.UNAUTHORIZED
    said = refusal(cause) if isinstance(cause, OSError) and cause.strerror else first_line(cause)
    return f"it cannot be downloaded ({said}){': is HF_TOKEN right?' if refused else ''}"
