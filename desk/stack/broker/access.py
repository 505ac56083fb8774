"""Who may log in: one user, one password per data folder."""

import contextlib
import hmac
import os
import re
import secrets
from pathlib import Path

from desk.stack.store import StoreError, unwritable
from desk.stack.wire.messages import Login

FILE = "password"
_URL_SAFE = re.compile(r"[A-Za-z0-9._~-]{1,255}")


def check(*texts: str | None) -> None:
    """Refuse, with StoreError, a user or password that cannot be used; None is one that is not given."""
    if not all(text is None or _URL_SAFE.fullmatch(text) for text in texts):
        raise StoreError("User and password go into a connection string: letters, digits and . _ ~ - only.")


class Access:
    """The user and password that log in."""

    def __init__(self, user: str, password: str) -> None:
        check(user, password)
        self.user = user
        self.password = password

    @classmethod
    def of_folder(cls, folder: Path, user: str, password: str | None) -> "Access":
        """The given password, else the folder's own, made at random on first use (file mode 0600)."""
        if password is not None:
            return cls(user, password)
        return cls(user, _kept(folder / FILE) or _made(folder))

    def allows(self, login: Login) -> bool:
        """Tokens never log in: none can be made."""
        if login.user is None or login.password is None:
            return False
        same_user = hmac.compare_digest(login.user.encode(), self.user.encode())
        return hmac.compare_digest(login.password.encode(), self.password.encode()) and same_user


def _kept(path: Path) -> str:
    """The password of the folder; "" when there is none, or an empty file."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise StoreError(f"The password file {path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise StoreError(f"The password file {path} cannot be read: it is not text.") from error


def _made(folder: Path) -> str:
    """A new password, kept in `folder`: whole under its name or not at all."""
    password = secrets.token_urlsafe(24)
    unfinished = folder / f"{FILE}.new"
    try:
        # the folder's lock is ours: what lies there is left of a start that was cut off
        unfinished.unlink(missing_ok=True)
        with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(password + "\n")
        unfinished.replace(folder / FILE)
    except OSError as error:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise unwritable(error, folder) from error
    return password
