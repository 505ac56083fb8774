"""Who may log in: one user, one password per data folder."""

import hmac
import os
import re
import secrets
from pathlib import Path

from desk.stack.store import StoreError
from desk.stack.wire.messages import Login

FILE = "password"
_URL_SAFE = re.compile(r"[A-Za-z0-9._~-]{1,255}")


class Access:
    """The user and password that log in."""

    def __init__(self, user: str, password: str) -> None:
        for text in (user, password):
            if not _URL_SAFE.fullmatch(text):
                raise StoreError(
                    "User and password go into a connection string: letters, digits and . _ ~ - only."
                )
        self.user = user
        self.password = password

    @classmethod
    def of_folder(cls, folder: Path, user: str, password: str | None) -> "Access":
        """The given password, else the folder's own, made at random on first use (file mode 0600)."""
        if password is not None:
            return cls(user, password)
        path = folder / FILE
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return cls(user, path.read_text().strip())
        with os.fdopen(handle, "w") as file:
            file.write(secrets.token_urlsafe(24) + "\n")
        return cls.of_folder(folder, user, None)

    def allows(self, login: Login) -> bool:
        """Tokens never log in: none can be made."""
        if login.user is None or login.password is None:
            return False
        same_user = hmac.compare_digest(login.user.encode(), self.user.encode())
        return hmac.compare_digest(login.password.encode(), self.password.encode()) and same_user
