"""Models by Hugging Face id: cache, revision, token and offline mode are huggingface-hub's own."""

import re
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path

from sortformer.checkpoint.files import read_config
from sortformer.checkpoint.kinds import is_known, model_file
from sortformer.errors import InputError, first_line, refusal

__all__ = ["ModelId", "download", "parse_id"]

_FOLDER_FILES = ("config.json", "model.safetensors")


@dataclass(frozen=True, slots=True)
class ModelId:
    """What names a model on the hub: ``owner/name``, or ``owner/name@revision``."""

    owner: str
    name: str
    revision: str | None = None

    @property
    def repository(self) -> str:
        """The id without its revision."""
        return f"{self.owner}/{self.name}"


def parse_id(text: str) -> ModelId | None:
    """Return the id that ``text`` is, or None where it can only be a path."""
    match = re.fullmatch(r"(\w[\w.-]*)/(\w[\w.-]*)(?:@([\w./-]+))?", text)
    if match is None or match[2].endswith((".nemo", ".json", ".onnx", ".safetensors")):
        return None
    return ModelId(match[1], match[2], match[3])


def download(model_id: ModelId) -> Path:
    """Return the local folder of a model, fetched where the cache lacks it.

    It gets ``config.json`` and ``model.safetensors``, or the one ``.nemo`` archive of a repository without them, or
    with those of another library. The hub is asked for its files once, without retries: where it does not answer, the
    cache must do.

    Raises:
        InputError: if there is no such model, it may not be read, or it cannot be fetched and the cache lacks it.
    """
    # Imported late: it takes half a second, and a model on disk does not need it.
    import huggingface_hub
    from huggingface_hub import constants, errors

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
            f"the model {name} is given to those who accept its terms: do so at {constants.ENDPOINT}/{name}, "
            "then set HF_TOKEN"
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
            f"'{name}' is no file or folder here, and no id of Hugging Face's: {first_line(error)}"
        ) from error
    except InputError:
        raise
    except Exception as error:  # no network, a server that fails, a full disk: the hub has no class for all
        return _cached(model_id, error)
    return places[0].parent


def _wanted(name: str, files: Collection[str], fetch: Callable[[str], str]) -> tuple[str, ...]:
    """Return which files of a repository are the model; ``fetch`` gives the local path of one."""
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
    """Return the cached folder of a model that cannot be asked for, or say why there is none."""
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
        # Another library may have left its own form of it there, or somebody the beginning of ours.
        file = model_file(folder)
        if file is not None and (file.suffix == ".nemo" or all((folder / name).exists() for name in _FOLDER_FILES)):
            return folder
    raise InputError(
        f"'{model_id.repository}' is no file or folder here, it is not in the Hugging Face cache, and {_reason(cause)}"
    ) from cause


def _reason(cause: Exception) -> str:
    """Why a model cannot be fetched."""
    from huggingface_hub import errors

    if isinstance(cause, errors.OfflineModeIsEnabled):
        return "offline mode is on (HF_HUB_OFFLINE)"
    refused = getattr(getattr(cause, "response", None), "status_code", None) == HTTPStatus.UNAUTHORIZED
    said = refusal(cause) if isinstance(cause, OSError) and cause.strerror else first_line(cause)
    return f"it cannot be fetched from there ({said}){': is HF_TOKEN right?' if refused else ''}"
