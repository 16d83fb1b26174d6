"""Whether what lies at a path can have been put there by nobody else: files, directories, and the way to them.

A file of the cache is executed.  As sshd does for keys, every directory on the way is looked at: who can write to one
of them can put another directory in the place of the next.  A sticky one, such as /tmp, does not allow that.
"""

import os
import stat

OTHERS = stat.S_IWGRP | stat.S_IWOTH
UNMAPPED = 65534  # how a user namespace shows every owner that it does not know, such as the host's root


def distrust_link(info: os.stat_result) -> str | None:
    """Somebody else's link in a directory that all may write to, such as /tmp, could lead anywhere."""
    if stat.S_ISLNK(info.st_mode) and info.st_uid not in (os.geteuid(), 0):
        return f"is a symbolic link of user {info.st_uid}"
    return None


def distrust(info: os.stat_result) -> str | None:
    """What speaks against a file or a directory of the cache, None if nothing does."""
    if info.st_uid != os.geteuid():
        return f"belongs to user {info.st_uid}"
    if info.st_mode & OTHERS:
        return f"is writable by others (mode {stat.S_IMODE(info.st_mode):04o})"
    return None


def distrust_way(directory: str) -> str | None:
    """What speaks against the directories above, up to the root: by the path as it is given, and with links resolved.

    Raises OSError.
    """
    for path in dict.fromkeys([*parents(os.path.abspath(directory)), *parents(os.path.realpath(directory))]):
        info = os.stat(path)
        if info.st_uid not in (os.geteuid(), 0, UNMAPPED):
            return f"lies in {path}, which belongs to user {info.st_uid}"
        if info.st_mode & OTHERS and not info.st_mode & stat.S_ISVTX:
            mode = f"mode {stat.S_IMODE(info.st_mode):04o}"
            return f"lies in {path}, which others can write to ({mode}; chmod go-w {path} makes it safe)"
    return None


def parents(path: str) -> list[str]:
    """Of an absolute path, the nearest first."""
    found = []
    while (above := os.path.dirname(path)) != path:
        found.append(above)
        path = above
    return found


def make_private(directory: str) -> None:
    """The directory, and those above that are missing, with mode 0700, as the XDG specification says; umask may allow
    groups to write.  Raises OSError."""
    missing = [directory, *parents(directory)]
    for path in reversed(missing):
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            pass
        except OSError:  # such as those of a file system that can only be read
            if not os.path.isdir(path):
                raise
